package docker_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/sandbox/docker/dockertest"
)

// Every row of the table, as the daemon has it and from inside.
func TestControls_AllHoldOnALiveSandbox(t *testing.T) {
	t.Parallel()
	all, err := dockertest.New(t).Audit(t.Context(), spec().Limits)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if !v.Held {
			t.Errorf("%s (%s): %s", v.Name, v.Why, v.Differs)
		}
	}
	t.Logf("hardening: %d controls hold, from inside and as inspected", len(all))
}

// Each row can fail: a container without any of the settings breaks all but those that nothing of it breaks.
func TestControls_AreFoundMissing(t *testing.T) {
	t.Parallel()
	config := dockertest.Config(t)
	r := dockertest.Open(t, config)
	ref := dockertest.Docker(t, "run", "-d", "-i", "--label", "agent-sandboxing.instance="+config.Instance, "--runtime", config.Runtime,
		"--device", "/dev/null:/dev/other", "--security-opt", "seccomp=unconfined", "--user", "0", "--network", "none", "--cgroupns", "host", "--env", "GITHUB_TOKEN=x", "--volume", "/var/run:/host", "--tmpfs", "/run:rw,exec",
		"--sysctl", "net.ipv4.ip_forward=1", "--shm-size", "1m", "--ulimit", "core=1", "--entrypoint", "bash", config.Image)
	all, err := r.AuditOf(t.Context(), ref, spec().Limits, func(shell string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "docker", "exec", ref, "bash", "-c", shell).CombinedOutput()
		if _, exited := errors.AsType[*exec.ExitError](err); exited {
			err = nil
		}
		return string(out), err
	})
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	for _, v := range all {
		if v.Held {
			held = append(held, v.Name)
		} else {
			t.Logf("%s: %s", v.Name, v.Differs)
		}
	}
	if diff := cmp.Diff([]string{"runtime", "no network", "IPC of its own"}, held); diff != "" {
		t.Errorf("rows that hold all the same (-want +got)\n%s", diff)
	}
}

// probe makes each system call with arguments that would succeed or fail otherwise when it is allowed,
// and prints the name of the error.
const probe = `
import ctypes, errno, json
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_void_p(a) if isinstance(a, int) else a for a in args])
    return "ok" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
buf = ctypes.create_string_buffer(256)
NEWUSER, NEWNET = 0x10000000, 0x40000000
print(json.dumps({
    "io_uring_setup": call(425, 1, buf), "bpf": call(321, 0, buf, 64), "userfaultfd": call(323, 0),
    "perf_event_open": call(298, buf, 0, -1, -1, 0), "add_key": call(248, b"user", b"x", b"y", 1, -3),
    "keyctl": call(250, 0, -3, 0), "request_key": call(249, b"user", b"x", 0, -3), "ptrace": call(101, 0, 0, 0, 0),
    "process_vm_readv": call(310, 1, buf, 1, buf, 1, 0), "process_vm_writev": call(311, 1, buf, 1, buf, 1, 0),
    "kcmp": call(312, 1, 1, 0, 0, 0), "mount": call(165, b"none", b"/tmp", b"tmpfs", 0, 0), "umount2": call(166, b"/tmp", 0),
    "pivot_root": call(155, b"/tmp", b"/tmp"), "chroot": call(161, b"/tmp"), "fsopen": call(430, b"tmpfs", 0),
    "open_tree": call(428, -100, b"/tmp", 1), "move_mount": call(429, -100, b"/tmp", -100, b"/tmp", 0),
    "fsmount": call(432, -1, 0, 0), "mount_setattr": call(442, -100, b"/tmp", 0, buf, 32), "setns": call(308, 0, 0),
    "unshare_user": call(272, NEWUSER), "unshare_net": call(272, NEWNET), "clone_user": call(56, NEWUSER | 17, 0, 0, 0, 0),
    "clone3": call(435, buf, 88), "pidfd_send_signal": call(424, 0, 0, 0, 0), "pidfd_getfd": call(438, 0, 0, 0),
    "rt_sigqueueinfo_init": call(129, 1, 10, buf), "rt_tgsigqueueinfo_init": call(297, 1, 1, 10, buf),
    "prlimit_init": call(302, 1, 7, 0, buf), "setpriority_init": call(141, 0, 1, 19), "setpriority_user": call(141, 2, 0, 19),
    "ioprio_set_init": call(251, 1, 1, 0), "sched_setaffinity_init": call(203, 1, 8, buf), "sched_setscheduler_init": call(144, 1, 3, buf),
    "sched_setattr_init": call(314, 1, buf, 0), "sched_setparam_init": call(142, 1, buf),
    "init_module": call(175, buf, 1, b""), "finit_module": call(313, 0, b"", 0), "delete_module": call(176, b"x", 0),
    "kexec_load": call(246, 0, 0, 0, 0), "reboot": call(169, 0, 0, 0, 0), "swapon": call(167, b"/tmp/x", 0), "acct": call(163, 0),
    "settimeofday": call(164, 0, 0), "clock_settime": call(227, 0, buf), "adjtimex": call(159, buf), "sethostname": call(170, b"x", 1),
    "iopl": call(172, 3), "ioperm": call(173, 0, 1, 1), "quotactl": call(179, 0, 0, 0, 0), "syslog": call(103, 3, buf, 9),
    "open_by_handle_at": call(304, -1, buf, 0), "name_to_handle_at": call(303, -100, b"/tmp", buf, buf, 0),
    "lookup_dcookie": call(212, 0, buf, 9), "fanotify_init": call(300, 0, 0), "mbind": call(237, 0, 0, 0, 0, 0, 0),
    "move_pages": call(279, 0, 0, 0, 0, 0, 0), "memfd_secret": call(447, 0), "process_madvise": call(440, 0, 0, 0, 0, 0),
    "af_vsock": call(41, 40, 1, 0), "af_alg": call(41, 38, 5, 0), "af_packet": call(41, 17, 3, 0), "af_bluetooth": call(41, 31, 3, 0),
    "af_key": call(41, 15, 3, 2), "netlink_audit": call(41, 16, 3, 9), "netlink_netfilter": call(41, 16, 3, 12), "raw_socket": call(41, 2, 3, 1),
}))
`

func TestHardening_SystemCallsAreRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Fatal("the probe has the call numbers of amd64 only; add those of this machine")
	}
	b := start(t, dockertest.New(t), spec())
	exit, out := b.sh(t, "python3 - <<'EOF'"+probe+"EOF")
	var got map[string]string
	if err := json.Unmarshal([]byte(out), &got); err != nil || exit != 0 {
		t.Fatalf("probe: exit %d, %v: %s", exit, err, out)
	}
	if len(got) < 60 {
		t.Errorf("only %d calls were tried", len(got))
	}
	fallBack := map[string]bool{"clone3": true, "io_uring_setup": true, "pidfd_send_signal": true}
	for name, result := range got {
		want := "EPERM"
		if fallBack[name] {
			want = "ENOSYS"
		}
		if result != want {
			t.Errorf("%s: %s, want %s", name, result, want)
		}
	}
}

// What ordinary work needs must go through the same filter.
func TestHardening_OrdinaryWorkGoesOn(t *testing.T) {
	t.Parallel()
	b := start(t, dockertest.New(t), spec())
	for name, text := range map[string]string{
		"git":     "git init -q r && cd r && echo a > a && git add . && git -c user.name=T -c user.email=t@example.com commit -qm m && git gc -q && git fsck",
		"bash":    "for i in 1 2 3; do (sleep 0; echo $i) & done; wait; ulimit -n 1024; nice -n 5 true; timeout 5 true; mkfifo /tmp/p; trap 'echo x' USR1; kill -USR1 $$",
		"python":  `python3 -c 'import multiprocessing as m, socket, threading; p = m.Pool(2); print(p.map(abs, [-1])); s = socket.socket(); s.bind(("127.0.0.1", 0)); threading.Thread(target=print).start()'`,
		"ripgrep": "cd /tmp && echo needle > hay && rg needle",
		"pipes":   "yes | head -n 100000 | sort -u | xargs -P 4 -n 1 echo | tee /tmp/out | wc -l",
	} {
		if exit, out := b.sh(t, text); exit != 0 {
			t.Errorf("%s: exit %d: %s", name, exit, out)
		}
	}
}
