package dockertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	daemonFolder = "/var/tmp"             // a real disk, and short: a socket's path has 107 bytes at most
	daemonPrefix = "private-docker-"      // then the process that owns it, then something random
	startWithin  = 90 * time.Second       // all attempts together
	firstWait    = 100 * time.Millisecond // between two attempts, doubled each time
)

// DaemonOptions say how a private daemon differs from a plain one.
type DaemonOptions struct {
	// LiveRestore keeps containers running while the daemon is away.
	LiveRestore bool
	// Runtimes are OCI runtimes beside runc, by name.
	Runtimes map[string]OCIRuntime
	// Images are loaded from the shared daemon before the first use.
	Images []string
}

// OCIRuntime is one more runtime of a daemon.
type OCIRuntime struct {
	Path string   `json:"path"`
	Args []string `json:"runtimeArgs,omitempty"`
}

// underTest registers gVisor, as make runsc built it, when that is what the tests are about.
func (o *DaemonOptions) underTest() error {
	if Runtime() != "runsc" || o.Runtimes != nil {
		return nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	path := filepath.Join(cache, "agent-sandboxing", "bin", "runsc")
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("run make runsc: %w", err)
	}
	o.Runtimes = map[string]OCIRuntime{"runsc": {Path: path, Args: []string{"--oci-seccomp"}}}
	return nil
}

// Daemon is a Docker daemon of one suite's own, which may be killed, hung and started again at will.
// It has no bridge and touches no firewall rule. It needs root, or sudo without a password.
type Daemon struct {
	dir     string
	group   string // of the cgroups of all its containers
	options DaemonOptions

	process *exec.Cmd     // nil while it is down
	exited  chan struct{} // closed when process has ended
}

// OpenDaemon starts a daemon. Whatever happens, Close has to be called; what a process that was killed
// left behind goes with the next OpenDaemon.
func OpenDaemon(ctx context.Context, options DaemonOptions) (*Daemon, error) {
	if err := sweep(ctx); err != nil {
		return nil, err
	}
	if err := options.underTest(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(daemonFolder, daemonPrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, err
	}
	d := &Daemon{dir: dir, group: "/" + filepath.Base(dir), options: options}
	err = d.configure()
	if err == nil {
		err = d.Start(ctx)
	}
	for _, image := range options.Images {
		if err == nil {
			err = d.load(ctx, image)
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return d, nil
}

func (d *Daemon) configure() error {
	if err := os.Chmod(d.dir, 0o755); err != nil { //nolint:gosec // others must reach the socket
		return err
	}
	return d.write()
}

// write writes the configuration file, in which is nothing of the machine's own.
func (d *Daemon) write() error {
	text, err := json.Marshal(map[string]any{"runtimes": d.options.Runtimes, "live-restore": d.options.LiveRestore})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, "daemon.json"), text, 0o600)
}

// SetLiveRestore changes what the next Start does with containers that still run.
func (d *Daemon) SetLiveRestore(on bool) error {
	d.options.LiveRestore = on
	return d.write()
}

// Host is the daemon's address, as in DOCKER_HOST.
func (d *Daemon) Host() string { return "unix://" + d.Socket() }

// Socket is the path of the daemon's socket.
func (d *Daemon) Socket() string { return filepath.Join(d.dir, "docker.sock") }

// Log is the path of what the daemon says.
func (d *Daemon) Log() string { return filepath.Join(d.dir, "dockerd.log") }

// Start starts the daemon and waits until it answers. One that was killed leaves a pid file and
// containerd's, and the next may then fail more than once before it comes up.
func (d *Daemon) Start(ctx context.Context) error {
	if d.process != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for wait := firstWait; ; wait *= 2 {
		err := d.attempt(ctx)
		if err == nil {
			return nil
		}
		if pause(ctx, wait) != nil {
			return fmt.Errorf("the private Docker daemon does not come up: %w\n%s", err, tail(d.Log()))
		}
	}
}

func (d *Daemon) attempt(ctx context.Context) error {
	if err := d.forget(ctx); err != nil {
		return err
	}
	log, err := os.OpenFile(d.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	args := asRoot("dockerd",
		"--config-file", filepath.Join(d.dir, "daemon.json"), "--host", d.Host(), "--group", strconv.Itoa(os.Getgid()),
		"--data-root", filepath.Join(d.dir, "data"), "--exec-root", filepath.Join(d.dir, "exec"), "--pidfile", d.pidFile(),
		"--bridge=none", "--iptables=false", "--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent="+d.group,
		// On a machine with a containerd of its own, what this daemon finds there must be its own too.
		"--containerd-namespace", filepath.Base(d.dir), "--containerd-plugins-namespace", filepath.Base(d.dir)+"-plugins")
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // Kill and Close end it
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for the suite, which then closes it
	if err := cmd.Start(); err != nil {
		return err
	}
	d.process, d.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}(d.exited)
	for {
		if d.answers(ctx) {
			return nil
		}
		select {
		case <-d.exited:
			d.process = nil
			return errors.New("it ended at once")
		default:
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return errors.Join(err, d.Kill(context.WithoutCancel(ctx)))
		}
	}
}

// forget removes the marks of a daemon that is no more, so that a number that is used again by
// another process does not look like it.
func (d *Daemon) forget(ctx context.Context) error {
	for _, path := range []string{d.pidFile(), d.containerdPID()} {
		if pid, err := pidOf(path); err == nil && !d.owns(pid) {
			if err := root(ctx, "rm", "-f", path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Daemon) answers(ctx context.Context) bool {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.Socket())
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/_ping", nil)
	if err != nil {
		return false
	}
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// Kill ends the daemon with SIGKILL, as a crash does. Containers stay; with LiveRestore the next Start
// finds them running, else it ends them.
func (d *Daemon) Kill(ctx context.Context) error { return d.end(ctx, "KILL") }

// Stop ends the daemon in order. Without LiveRestore it stops the containers first.
func (d *Daemon) Stop(ctx context.Context) error { return d.end(ctx, "TERM") }

func (d *Daemon) end(ctx context.Context, signal string) error {
	if d.process == nil {
		return nil
	}
	if err := d.signal(ctx, signal); err != nil {
		return err
	}
	select {
	case <-d.exited:
		d.process = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Crash ends the daemon and every process of its containers at once, as a power cut does.
func (d *Daemon) Crash(ctx context.Context) error {
	return errors.Join(d.Kill(ctx), slay(ctx, d.dir))
}

// Processes are those of the daemon's containers, whether it runs or not.
func (d *Daemon) Processes() []int { return inside(filepath.Base(d.dir)) }

// Shim is the process that keeps one container.
func (d *Daemon) Shim(container string) (int, error) {
	for _, pid := range naming(d.dir) {
		if names(pid, "containerd-shim") && names(pid, container) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no process keeps the container %s", container)
}

// Signal sends one to a process of the daemon or of its containers.
func (d *Daemon) Signal(ctx context.Context, name, pid string) error {
	return root(ctx, "kill", "-"+name, pid)
}

// Freeze makes the daemon hang: its socket takes connections and never answers.
func (d *Daemon) Freeze(ctx context.Context) error { return d.signal(ctx, "STOP") }

// Thaw ends a Freeze.
func (d *Daemon) Thaw(ctx context.Context) error { return d.signal(ctx, "CONT") }

func (d *Daemon) signal(ctx context.Context, name string) error {
	pid, err := pidOf(d.pidFile())
	if err != nil || !d.owns(pid) {
		if d.process == nil {
			return errors.New("the private Docker daemon is down")
		}
		pid = d.process.Process.Pid // it has not come that far; sudo passes it on
	}
	return d.Signal(ctx, name, strconv.Itoa(pid))
}

// Run runs the docker command against this daemon and returns what it printed.
func (d *Daemon) Run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", append([]string{"-H", d.Host()}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w\n%s", strings.Join(args, " "), err, &said)
	}
	return strings.TrimSpace(string(out)), nil
}

func (d *Daemon) pidFile() string { return filepath.Join(d.dir, "dockerd.pid") }
func (d *Daemon) containerdPID() string {
	return filepath.Join(d.dir, "exec", "containerd", "containerd.pid")
}

// pause waits, or says that ctx has ended.
func pause(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(long):
		return nil
	}
}

// tail is the end of a file, for a failure's text.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text[max(0, len(text)-4000):])
}
