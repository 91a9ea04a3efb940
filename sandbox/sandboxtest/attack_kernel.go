package sandboxtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// contained is what a case of the kernel's boundary needs.
var contained = []Capability{CommandsReal, Contained}

func kernelCases() []testCase {
	return []testCase{
		{name: "attack 25 no system call beyond what toolchains need", needs: contained, run: systemCalls},
		{name: "attack 26 and 27 no precondition of an escape is there", needs: contained, run: escapes},
		{name: "attack 17 no service of the host is reachable", needs: contained, run: hostServices},
	}
}

// systemCalls runs kernelprobe, a program of its own because a shell cannot make these calls.
func systemCalls(t *testing.T, ws box) {
	if _, err := ws.Write(t.Context(), core.WriteFile{Path: "/tmp/probe.gz", Data: kernelProbe(t)}); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for line := range strings.Lines(ws.must(t, "gunzip /tmp/probe.gz && chmod +x /tmp/probe && /tmp/probe > /tmp/out; split -n l/1/2 /tmp/out") + ws.must(t, "split -n l/2/2 /tmp/out")) {
		name, result, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(name, "allowed "):
			if result != "ok" {
				t.Errorf("%s: %s, although programs need it", name, result)
			}
		case result != "EPERM" && result != "ENOSYS":
			t.Errorf("%s: %s, want EPERM or ENOSYS", name, result)
		default:
			refused++
		}
	}
	if refused < 100 {
		t.Errorf("only %d calls were tried", refused)
	}
	t.Logf("sandboxtest: %d system calls and socket families refused", refused)
}

// kernelProbe is the probe for this machine, static and compressed.
func kernelProbe(t *testing.T) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kernelprobe")
	_, here, _, _ := runtime.Caller(0)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./kernelprobe")
	build.Dir, build.Env = filepath.Dir(here), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kernelprobe: %v\n%s", err, out)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// Escape is one way out of a container, or a step on it. Try is a shell text that succeeds (exit 0) where
// the way is open. It changes nothing on a host where it is, and undoes what it did in the container.
type Escape struct{ Name, Try string }

// Escapes are the known classes: what configuration leaves open, what a container runtime left open once,
// and what the kernel offers to those who are root somewhere.
func Escapes() []Escape {
	return []Escape{
		// Configuration.
		{"a Docker socket", `find / -name 'docker*.sock' 2>/dev/null | grep -q .`},
		{"a socket of another engine", `find / \( -name 'containerd*.sock*' -o -name 'crio.sock' -o -name 'podman.sock' -o -name 'containerd.sock*' \) 2>/dev/null | grep -q .`},
		{"a service account of a cluster", `find / -path '*/secrets/kubernetes.io*' 2>/dev/null | grep -q .`},
		{"an effective capability", `grep -q 'CapEff:.*[1-9a-f]' /proc/self/status`},
		{"a capability in the bounding set", `grep -q 'CapBnd:.*[1-9a-f]' /proc/self/status`},
		{"no limit on new privileges", `grep -q 'NoNewPrivs:.*0' /proc/self/status`},
		{"no system call filter", `grep -q 'Seccomp:.*0' /proc/self/status`},
		{"a folder of the host", `awk '{print $5}' /proc/self/mountinfo | grep -vE '^/($|proc|sys|dev|etc/(hosts|hostname|resolv.conf)$|workspace$|opt/toolbox$|tmp$|run$)' | grep -q .`},
		{"the host's processes", `test "$(cat /proc/1/comm)" != toolboxd`},
		{"the host's network", `awk -F: 'NR > 2 {print $1}' /proc/net/dev | tr -d ' ' | grep -qvx lo`},
		{"the host's shared memory", `awk 'NR > 1' /proc/sysvipc/shm | grep -q .`},
		{"the host's cgroups", `grep -qE 'docker|system.slice' /proc/self/cgroup`},
		{"a block device", `find /dev -type b | grep -q .`},
		{"a block device by number", `mknod /tmp/disk b 8 0 && rm /tmp/disk`},
		{"memory by number", `mknod /tmp/mem c 1 1 && rm /tmp/mem`},
		{"memory, ports, kernel log, or virtual machines", `for f in /dev/mem /dev/kmem /dev/port /dev/kmsg /dev/kvm /dev/vhost-vsock; do (: < $f) 2>/dev/null && exit 0; done; exit 1`},
		{"being root", `test "$(id -u)" = 0`},
		{"the runtime's own secrets in the environment", `env | grep -qE '^[A-Z_]*(TOKEN|SECRET|PASSWORD|API_KEY)[A-Z_]*='`},
		// Users and files.
		{"a setuid program", `find / -xdev -perm /6000 -type f | grep -q .`},
		{"becoming root by setuid", `python3 -c 'import os; os.setuid(0)'`},
		{"becoming another by setgroups", `python3 -c 'import os; os.setgroups([0])'`},
		{"su", `su root -c true < /dev/null`},
		{"an account in /etc/passwd", `(: >> /etc/passwd)`},
		{"passwords", `(: < /etc/shadow)`},
		{"a program that belongs to root", `cp /bin/true /tmp/rooted; chown 0:0 /tmp/rooted; s=$(stat -c %u /tmp/rooted); rm /tmp/rooted; test "$s" = 0`},
		{"a file capability of one's own", `python3 -c 'import os, struct; open("/tmp/capable", "w"); os.setxattr("/tmp/capable", "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0))'`},
		{"a file capability in the image", `python3 -c '
import os, sys
for top in ("/bin", "/sbin", "/usr", "/opt"):
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                if "security.capability" in os.listxattr(folder + "/" + name, follow_symlinks=False): sys.exit(0)
            except OSError: pass
sys.exit(1)'`},
		{"a library in every program", `(: >> /etc/ld.so.preload)`},
		{"the image's programs", `test -w /usr/bin/env || (: >> /usr/bin/newprogram)`},
		{"a job of another time", `(: >> /etc/crontab) || (: >> /etc/profile)`},
		{"the resolver's and hosts' files", `(: >> /etc/hosts) || (: >> /etc/resolv.conf)`},
		// What runtimes left open once.
		{"the program of PID 1", `test -w /proc/1/exe || test -w /opt/toolbox/toolboxd || (: >> /opt/toolbox/x)`},
		{"a descriptor that leads out", `python3 -c '
import os, stat, sys
for fd in os.listdir("/proc/self/fd"):
    try: mode = os.fstat(int(fd)).st_mode
    except OSError: continue
    if stat.S_ISDIR(mode) and os.readlink("/proc/self/fd/" + fd) != "/proc/%d/fd" % os.getpid(): sys.exit(0)
sys.exit(1)'`},
		{"the memory of PID 1", `(: < /proc/1/mem) || cat /proc/1/environ`},
		{"the descriptors of PID 1", `for n in 0 1 2 3 4 5 6 7 8; do (: < /proc/1/fd/$n) 2>/dev/null && exit 0; done; exit 1`},
		{"the root of PID 1", `ls /proc/1/root/ || ls /proc/1/cwd/`},
		{"an abstract socket of the host", `awk 'NR > 1 {print $8}' /proc/net/unix | grep -q @`},
		// Kernel interfaces.
		{"a release agent", `find /sys/fs/cgroup -name release_agent -writable 2>/dev/null | grep -q .`},
		{"mounting cgroups", `mkdir -p /tmp/m && { mount -t cgroup -o memory none /tmp/m || mount -t cgroup2 none /tmp/m; } && umount /tmp/m`},
		{"lifting a limit", `find /sys/fs/cgroup -type f -writable 2>/dev/null | grep -q .`},
		{"making kernel settings writable", `mount -o remount,bind,rw /sys || mount -o remount,bind,rw /proc/sys`},
		{"the core pattern", `(: >> /proc/sys/kernel/core_pattern)`},
		{"the module loader's path", `(: >> /proc/sys/kernel/modprobe)`},
		{"the device helper's path", `(: >> /sys/kernel/uevent_helper)`},
		{"a binary format", `(: >> /proc/sys/fs/binfmt_misc/register) || mount -t binfmt_misc none /proc/sys/fs/binfmt_misc`},
		{"the magic keys", `(: >> /proc/sysrq-trigger)`},
		{"any kernel setting", `find /proc/sys -type f -writable 2>/dev/null | grep -q .`},
		{"any device setting", `find /sys -type f -writable 2>/dev/null | grep -q .`},
		{"the machine's power", `(: >> /sys/power/state)`},
		{"the firmware's variables", `ls /sys/firmware/*/ 2>/dev/null | grep -q .`},
		{"debugging the kernel", `ls /sys/kernel/debug /sys/kernel/tracing 2>/dev/null | grep -q '^[a-z]'`},
		{"kernel memory", `head -c 1 /proc/kcore | grep -q .`},
		{"kernel addresses", `grep -vq '^0000000000000000' /proc/kallsyms`},
		{"interrupt counts", `grep -q . /proc/interrupts`},
		{"kernel messages", `dmesg | grep -q .`},
		{"keys of others", `grep -q . /proc/keys`},
		{"power use of others", `cat /sys/devices/virtual/powercap/*/*/energy_uj | grep -q .`},
		{"a user namespace", `unshare --user true`},
		{"being root in a user namespace", `unshare --user --map-root-user --mount mount -t tmpfs none /tmp`},
		{"a mount namespace", `unshare --mount true`},
		{"a network namespace", `unshare --net true`},
		{"the namespaces of PID 1", `nsenter --target 1 --mount true`},
		{"another root", `chroot / true`},
		{"a mount", `mkdir -p /tmp/m && mount -t tmpfs none /tmp/m && umount /tmp/m`},
		{"a mount over a system file", `: > /tmp/p && mount --bind /tmp/p /etc/hostname && umount /etc/hostname`},
		{"another /proc", `mkdir -p /tmp/m && mount -t proc none /tmp/m && umount /tmp/m`},
		{"an overlay", `cd /dev/shm && mkdir -p m u w && mount -t overlay -o lowerdir=/etc,upperdir=u,workdir=w none m && umount m`},
		{"a loop device", `losetup --find`},
		{"raw packets", `python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'`},
		{"whole frames", `python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)'`},
		{"the hypervisor's sockets", `python3 -c 'import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)'`},
		{"the kernel's ciphers", `python3 -c 'import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)'`},
		{"audit messages", `python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)'`},
		// Under gVisor a process may call itself what it likes: the host does not hear of it.
		{"a higher priority than the host's", `uname -r | grep -q gvisor && exit 1; python3 -c 'import os; os.nice(-5)'`},
		{"the host's name", `hostname "$(uname -n)"`},
		{"core dumps", `ulimit -Hc | grep -qv '^0$'`},
		{"programs in shared places", `cp /bin/true /run/x && /run/x || { cp /bin/true /dev/shm/x && /dev/shm/x; }`},
	}
}

func escapes(t *testing.T, ws box) {
	all := Escapes()
	if open := OpenEscapes(t, all, func(shell string) string { return ws.must(t, shell) }); len(open) > 0 {
		t.Errorf("open: %q", open)
	}
	t.Logf("sandboxtest: %d escapes contained", len(all))
}

// OpenEscapes are the names of those ways that are open where run executes a shell text and returns what it
// printed. One that was not tried to its end fails the test.
func OpenEscapes(t testing.TB, all []Escape, run func(shell string) string) []string {
	t.Helper()
	var script strings.Builder
	for i, e := range all { // each in a shell of its own, so that the attempt may end it
		fmt.Fprintf(&script, "if ( %s ) > /dev/null 2>&1; then echo open %d; else echo contained %d; fi\n", e.Try, i, i)
	}
	said := strings.Split(run(script.String()), "\n")
	var open []string
	for i, e := range all {
		switch {
		case slices.Contains(said, fmt.Sprintf("open %d", i)):
			open = append(open, e.Name)
		case !slices.Contains(said, fmt.Sprintf("contained %d", i)):
			t.Errorf("%s: not tried", e.Name)
		}
	}
	return open
}

// hostServices listens on every address of this machine and tries each from inside, and what a host or a
// cloud is known to offer.
func hostServices(t *testing.T, ws box) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	targets := []string{
		"127.0.0.1:" + port, "127.0.0.1:2375", "127.0.0.1:2376", "127.0.0.1:5432", "127.0.0.1:8080", "127.0.0.1:9090", "127.0.0.1:10250", "[::1]:" + port,
		"172.17.0.1:" + port, "172.17.0.1:2375", "172.18.0.1:" + port, "10.0.0.1:" + port, "192.168.0.1:" + port, "10.96.0.1:443",
		"169.254.169.254:80", "[fd00:ec2::254]:80", "100.100.100.200:80", "0.0.0.0:" + port, "[::]:" + port, "[::ffff:169.254.169.254]:80",
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && !network.IP.IsLoopback() {
			targets = append(targets, net.JoinHostPort(network.IP.String(), port))
		}
	}
	out := ws.must(t, fmt.Sprintf(`python3 - %s <<'EOF'
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host.strip("[]"), int(port)), 5).close()
        print("reached", target)
    except OSError: pass
print("tried", len(sys.argv) - 1)
EOF`, strings.Join(targets, " ")))
	if want := fmt.Sprintf("tried %d\n", len(targets)); out != want {
		t.Errorf("%q, want %q", out, want)
	}
	t.Logf("sandboxtest: %d addresses unreachable", len(targets))
}
