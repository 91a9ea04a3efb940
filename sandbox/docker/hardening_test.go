package docker_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/sandboxtest"
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
	ref := weak(t)
	all, err := dockertest.New(t).AuditOf(t.Context(), ref, spec().Limits, func(shell string) (string, error) { return inWeak(t, ref, shell), nil })
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

// Each of the escapes can succeed: a container with everything that can be given away is open to all but
// those that this machine, its kernel or Docker closes to anybody.
func TestEscapes_AreOpenInAWeakContainer(t *testing.T) {
	t.Parallel()
	closed := []string{
		"the host's network", "a block device", "memory, ports, kernel log, or virtual machines", // not given, so that nothing can be harmed
		"a release agent", "lifting a limit", "any device setting", "the device helper's path", "the machine's power", // read-only but for a privileged one
		// Not in every kernel, or not in every configuration of one.
		"debugging the kernel", "kernel memory", "power use of others", "the kernel's ciphers", "a loop device", "the module loader's path", "the magic keys",
		"a binary format", "the hypervisor's sockets", "the firmware's variables", "interrupt counts", "kernel addresses", "keys of others",
		"a user namespace", "being root in a user namespace",
	}
	ref := weak(t)
	if parentHasNoNewPrivileges(t, ref) {
		closed = append(closed, "no limit on new privileges")
	}
	inWeak(t, ref, "chmod u+s /usr/bin/su; ipcmk --shmem 1; "+
		`python3 -c 'import os, struct; os.setxattr("/usr/bin/su", "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0))'`)
	listener := exec.CommandContext(t.Context(), "docker", "exec", "-d", ref, "python3", "-c",
		`import socket, time; s = socket.socket(socket.AF_UNIX); s.bind("\0abstract"); s.listen(); time.sleep(600)`)
	if out, err := listener.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	open := sandboxtest.OpenEscapes(t, sandboxtest.Escapes(), func(shell string) string {
		return inWeak(t, ref, "exec 7</host; "+shell)
	})
	t.Logf("%d of %d are open", len(open), len(sandboxtest.Escapes()))
	if dockertest.Runtime() != "runc" { // gVisor closes many by itself, and which depends on its version
		if len(open) < 25 {
			t.Errorf("only these are open: %q", open)
		}
		return
	}
	for _, e := range sandboxtest.Escapes() {
		if !slices.Contains(open, e.Name) && !slices.Contains(closed, e.Name) {
			t.Errorf("%s is not open even here: the attempt proves nothing", e.Name)
		}
	}
}

// weak starts a container with what a careless operator gives away, except what could harm the host.
func weak(t *testing.T) string {
	t.Helper()
	config := dockertest.Config(t)
	dockertest.Open(t, config)
	args := []string{
		"run", "-d", "-i", "--label", "agent-sandboxing.instance=" + config.Instance, "--runtime", config.Runtime,
		"--device", "/dev/null:/dev/other", "--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined", "--security-opt", "apparmor=unconfined",
		"--security-opt", "label=disable", "--security-opt", "no-new-privileges=false", "--user", "0",
		"--cgroupns", "host", "--env", "GITHUB_TOKEN=x", "--volume", "/var/run:/host:ro", "--tmpfs", "/run:rw,exec", "--network", "none",
		"--sysctl", "net.ipv4.ip_forward=1", "--shm-size", "1m", "--ulimit", "core=1048576", "--tmpfs", "/run/secrets/kubernetes.io", "--entrypoint", "bash",
	}
	for _, c := range []string{"SYS_ADMIN", "SYS_PTRACE", "SYS_CHROOT", "SYSLOG", "SYS_NICE", "NET_ADMIN"} {
		args = append(args, "--cap-add", c)
	}
	return dockertest.Docker(t, append(args, config.Image)...)
}

// parentHasNoNewPrivileges tells whether the container's own parent may not gain privileges. That is
// inherited by every process and can never be taken back (prctl(2)): where the daemon was started under it,
// no option of a container lifts it.
func parentHasNoNewPrivileges(t *testing.T, ref string) bool {
	t.Helper()
	status := func(pid, field string) string {
		data, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if value, found := strings.CutPrefix(line, field+":"); found {
				return strings.TrimSpace(value)
			}
		}
		t.Fatalf("process %s has no %s", pid, field)
		return ""
	}
	return status(status(dockertest.Docker(t, "inspect", "--format", "{{.State.Pid}}", ref), "PPid"), "NoNewPrivs") == "1"
}

// inWeak runs a shell text in a container that may end by it; docker exec then waits for ever now and then,
// under gVisor.
func inWeak(t *testing.T, ref, shell string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", "exec", ref, "bash", "-c", shell)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out)
}
