package sandboxtest

import (
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// protected is what a case needs that an ordinary process is open to.
var protected = []Capability{CommandsReal, Contained, InitProtected}

func initAttacks() []testCase {
	return []testCase{
		{name: "every signal by every call", needs: protected, run: everySignal},
		{name: "a flood of signals", needs: protected, run: signalFlood},
		{name: "a signal by the kernel's hand", needs: protected, run: signalByKernel},
		{name: "its memory descriptors and environment", needs: protected, run: initSecrets},
		{name: "the names of its descriptors and namespaces", needs: protected, run: initNames},
		{name: "its limits priority and place", needs: contained, run: initLimits},
		{name: "what it reads and writes cannot be opened", needs: protected, run: initStreams},
		{name: "its program cannot be replaced", needs: contained, run: initProgram},
		{name: "the mounts and namespaces below it", needs: contained, run: initMounts},
		{name: "KILL and STOP", needs: contained, run: killInit},
	}
}

// syscalls is a Python that calls the kernel: call(number, …) is "ok" or the name of an error.
const syscalls = `
import ctypes, errno, os, platform, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
arm = platform.machine() == "aarch64"
N = {n: (b if arm else a) for n, a, b in [
    ("kill", 62, 129), ("tkill", 200, 130), ("tgkill", 234, 131), ("rt_sigqueueinfo", 129, 138), ("rt_tgsigqueueinfo", 297, 240),
    ("pidfd_open", 434, 434), ("pidfd_send_signal", 424, 424), ("pidfd_getfd", 438, 438), ("ptrace", 101, 117),
    ("process_vm_readv", 310, 270), ("process_vm_writev", 311, 271), ("kcmp", 312, 272), ("prlimit64", 302, 261),
    ("setpriority", 141, 140), ("ioprio_set", 251, 30), ("sched_setscheduler", 144, 119), ("sched_setparam", 142, 118),
    ("sched_setaffinity", 203, 122), ("sched_setattr", 314, 274), ("migrate_pages", 256, 238), ("move_pages", 279, 239),
    ("process_madvise", 440, 440), ("process_mrelease", 448, 448), ("get_robust_list", 274, 100), ("setns", 308, 268),
    ("unshare", 272, 97), ("mount", 165, 40), ("umount2", 166, 39), ("pivot_root", 155, 41), ("chroot", 161, 51)]}
buf = ctypes.create_string_buffer(256)
def call(name, *args):
    ctypes.set_errno(0)
    args = [ctypes.c_void_p(a) if isinstance(a, int) else a for a in args]
    return "ok" if libc.syscall(ctypes.c_long(N[name]), *args) >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
def none(**tried):
    for name, result in tried.items():
        if result == "ok": print(name, "was allowed")
def opens(path, flags):
    try: os.close(os.open(path, flags)); return "ok"
    except OSError as e: return errno.errorcode[e.errno]
def writes(path):
    try:
        with open(path, "wb", buffering=0) as f: f.write(b"1")
        return "ok"
    except OSError as e: return errno.errorcode[e.errno]
threads = os.listdir("/proc/1/task")
`

// python runs a script behind syscalls and demands that it prints nothing.
func (ws box) python(t *testing.T, script string) {
	t.Helper()
	res, err := ws.Run(t.Context(), core.Command{Shell: "python3 - <<'END'\n" + syscalls + script + "\nEND"})
	if err != nil && ws.lost(t.Context()) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if out := string(res.Head) + string(res.Tail); res.Exit != 0 || out != "" {
		t.Errorf("exit %d: %s", res.Exit, out)
	}
}

func everySignal(t *testing.T, ws box) {
	ws.python(t, `
siginfo = (ctypes.c_int * 32)(0, 0, 1)  # si_code 1 is what the kernel says of a real fault
for s in range(1, 65):
    if s in (signal.SIGKILL, signal.SIGSTOP): continue
    call("kill", 1, s)
    for thread in threads:
        call("tkill", int(thread), s)
        call("tgkill", 1, int(thread), s)
    siginfo[0] = s
    none(rt_sigqueueinfo=call("rt_sigqueueinfo", 1, s, siginfo), rt_tgsigqueueinfo=call("rt_tgsigqueueinfo", 1, 1, s, siginfo))
    none(pidfd_send_signal=call("pidfd_send_signal", 0, s, siginfo, 0))
fd = libc.syscall(ctypes.c_long(N["pidfd_open"]), 1, 0)
if fd >= 0: none(pidfd_send_signal=call("pidfd_send_signal", fd, 9, 0, 0), pidfd_getfd=call("pidfd_getfd", fd, 0, 0))
`)
}

func signalFlood(t *testing.T, ws box) {
	ws.python(t, `
for i in range(20000):
    for s in (1, 10, 11, 15, 17, 34, 64): os.kill(1, s)
    call("tgkill", 1, 1, 17)
`)
}

// signalByKernel makes the kernel send the signal: of a pipe's readiness, a timer, a message queue, a
// parent's death, a terminal, a child that names its own exit signal.
func signalByKernel(t *testing.T, ws box) {
	ws.python(t, `
import fcntl
for s in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGKILL, 34, 64):
    r, w = os.pipe()
    try:
        fcntl.fcntl(r, fcntl.F_SETOWN, 1); fcntl.fcntl(r, 10, int(s))  # F_SETSIG
        fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(w, b"x")
    except OSError: pass
    os.close(r); os.close(w)
# A child that names its own exit signal, and is left behind to PID 1.
for s in (11, 7, 9, 34):
    if os.fork() == 0:
        libc.syscall(ctypes.c_long(220 if arm else 56), s, 0, 0, 0, 0)
        os._exit(0)
    os.wait()
`)
}

func initSecrets(t *testing.T, ws box) {
	ws.python(t, `
for name in ("mem", "environ", "auxv", "maps", "smaps", "pagemap", "stack", "syscall", "io", "personality", "auxv", "timers", "map_files"):
    none(**{"open_" + name: opens("/proc/1/" + name, os.O_RDONLY)})
for name in ("mem", "clear_refs", "oom_score_adj", "oom_adj", "comm", "coredump_filter", "autogroup", "timerslack_ns", "sched", "uid_map", "setgroups", "attr/current", "make-it-fail"):
    none(**{"write_" + name: writes("/proc/1/" + name)})
for thread in threads:
    none(task_mem=opens("/proc/1/task/%s/mem" % thread, os.O_RDWR), task_comm=writes("/proc/1/task/%s/comm" % thread))
for link in ("cwd", "root", "exe", "fd/0"):
    try: os.readlink("/proc/1/" + link); print("read the link", link)
    except OSError: pass
iov = (ctypes.c_void_p * 2)(ctypes.addressof(buf), 8)
none(attach=call("ptrace", 16, 1, 0, 0), seize=call("ptrace", 0x4206, 1, 0, 0), readv=call("process_vm_readv", 1, iov, 1, iov, 1, 0),
    writev=call("process_vm_writev", 1, iov, 1, iov, 1, 0), kcmp=call("kcmp", 1, os.getpid(), 0, 0, 0), madvise=call("process_madvise", 0, iov, 1, 4, 0))
`)
}

// initNames tells nothing that could be used. gVisor shows it.
func initNames(t *testing.T, ws box) {
	ws.python(t, `
for name in ("fd", "fdinfo", "map_files", "task/1/fd"):
    try: print("listed", name, os.listdir("/proc/1/" + name))
    except OSError: pass
for link in ("ns/pid", "ns/mnt", "ns/net"):
    try: print("read the link", link, os.readlink("/proc/1/" + link))
    except OSError: pass
none(robust=call("get_robust_list", 1, buf, buf))
`)
}

func initLimits(t *testing.T, ws box) {
	ws.python(t, `
for resource in range(16):
    none(prlimit=call("prlimit64", 1, resource, (ctypes.c_uint64 * 2)(0, 0), 0))
for thread in threads:
    none(prlimit_thread=call("prlimit64", int(thread), 7, (ctypes.c_uint64 * 2)(0, 0), 0) if thread != "0" else "")
none(nice=call("setpriority", 0, 1, 19), nice_user=call("setpriority", 2, 0, 19), nice_uid=call("setpriority", 2, 1000, 19), nice_group=call("setpriority", 1, 1, 19),
    io=call("ioprio_set", 1, 1, 3 << 13), io_user=call("ioprio_set", 3, 0, 3 << 13), idle=call("sched_setscheduler", 1, 5, buf), param=call("sched_setparam", 1, buf),
    affinity=call("sched_setaffinity", 1, 8, (ctypes.c_uint64 * 1)(1)), attr=call("sched_setattr", 1, buf, 0),
    migrate=call("migrate_pages", 1, 8, buf, buf), move=call("move_pages", 1, 0, 0, 0, 0, 0), reap=call("process_mrelease", 0, 0))
`)
}

func initStreams(t *testing.T, ws box) {
	ws.python(t, `
for fd in range(64):
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_NONBLOCK):
        none(**{"fd_%d" % fd: opens("/proc/1/fd/%d" % fd, flags)})
# What a command inherits: no descriptor but the three.
print("\n".join(f for f in os.listdir("/proc/self/fd") if int(f) > 3), end="")
`)
	if got := ws.must(t, `for f in 0 1 2; do readlink /proc/$$/fd/$f; done | sed 's/\[[0-9]*\]//'; tty; exec 3<>/dev/tty || echo none`); !strings.HasPrefix(got, "/dev/null\npipe:\npipe:\nnot a tty\n") || !strings.HasSuffix(got, "none\n") {
		t.Errorf("a command's streams are %q", got)
	}
}

func initProgram(t *testing.T, ws box) {
	if got := ws.must(t, `for f in /opt/toolbox/toolboxd /proc/1/exe; do
		(echo x > $f) 2>/dev/null && echo wrote; rm -f $f 2>/dev/null && echo removed; mv /tmp/x $f 2>/dev/null && echo moved; chmod 777 $f 2>/dev/null && echo changed
	done; (mkdir -p /tmp/t && mv /opt/toolbox /tmp/t) 2>/dev/null && echo moved; true`); got != "" {
		t.Errorf("%q", got)
	}
}

func initMounts(t *testing.T, ws box) {
	ws.python(t, `
none(mount=call("mount", b"none", b"/workspace/repo", b"tmpfs", 0, 0), bind=call("mount", b"/tmp", b"/workspace/repo", 0, 4096, 0), umount=call("umount2", b"/workspace", 2),
    umount_tmp=call("umount2", b"/tmp", 2), pivot=call("pivot_root", b"/tmp", b"/tmp"), chroot=call("chroot", b"/tmp"), userns=call("unshare", 0x10000000), pidns=call("unshare", 0x20000000),
    mntns=call("unshare", 0x20000), setns=call("setns", 0, 0))
`)
	if got := ws.must(t, `mv /workspace/repo /workspace/old 2>/dev/null && echo moved; mv /workspace/.platform /workspace/p 2>/dev/null && echo moved; rmdir /workspace/home 2>/dev/null && echo removed; true`); got != "" {
		t.Errorf("%q", got)
	}
}

// killInit uses a sandbox of its own: some runtimes let PID 1 be killed. Then it is lost, and says so.
func killInit(t *testing.T, ws box) {
	other := box{PlatformWorkspace: ws.open(t), open: ws.open}
	_, err := other.Run(t.Context(), core.Command{Shell: "for i in 1 2 3 4 5; do kill -STOP 1; kill -KILL 1; done; kill -KILL -1; echo survived"})
	if err != nil && ws.mortal {
		wantCode(t, "after KILL", err, "sandbox_lost")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	other.unharmed(t)
}
