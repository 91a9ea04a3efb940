package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runner starts git the one way the control plane may: a fixed program, a fixed environment, our
// configuration alone, an explicit repository, no hooks and no protocol but the one asked for.
type runner struct {
	program string        // absolute path of git
	home    string        // an empty folder: HOME and working directory of every child
	caFile  string        // "" means the system's certificates
	stall   time.Duration // without progress, which ends what talks to a server
}

// call is one git command.
type call struct {
	dir     string // --git-dir
	config  []string
	args    []string
	stdin   io.Reader
	stdout  io.Writer
	remote  *remote       // of the commands that talk to a server
	lock    *lock         // inherited, so that an orphan still holds it
	limits  limits        // besides gitMemory, which no command may exceed
	timeout time.Duration // 0 means localTimeout
}

// limits bound a child, and what it starts, by the kernel; 0 leaves a resource as it is. They are set
// after it has started: what it is to be protected from arrives later, on its stdin or from a
// server, or is too slow to matter before.
type limits struct {
	cpu  uint64 // seconds
	file uint64 // bytes of the largest file that it may write
}

// gitMemory is the address space of one git, in bytes. Whatever it reads was made by strangers, on
// GitHub as well as in a sandbox.
const gitMemory = 2 << 30

const (
	localTimeout = 2 * time.Minute
	maxStderr    = 64 << 10
	maxOutput    = 256 << 20
	credentialFD = 3 // in the child; the lock follows
	killWait     = 5 * time.Second
)

// errOutputLimit says that a command wrote more than we take.
var errOutputLimit = errors.New("output limit reached")

// errTimeLimit is the cause of a child that our own clock ended.
var errTimeLimit = errors.New("time limit reached")

// fixedConfig goes with every command. The repositories' own config files are ours too, but a
// setting here also beats whatever a later version of git reads by default.
var fixedConfig = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"core.quotePath=off",
	"core.askPass=",
	"core.compression=1",
	"core.bigFileThreshold=1m", // a small pack may hold huge files: larger ones are streamed, never held
	"core.packedGitWindowSize=16m",
	"core.packedGitLimit=256m",
	"credential.helper=",
	"gc.auto=0",
	"maintenance.auto=false",
	"protocol.allow=never",
	"http.followRedirects=false",
	"transfer.credentialsInUrl=die",
	"transfer.fsckObjects=true",
	"fetch.recurseSubmodules=false",
	"push.recurseSubmodules=no",
	"advice.detachedHead=false",
}

// newRunner finds git once; a later change of PATH changes nothing.
func newRunner(program, home, caFile string) (runner, error) {
	if program == "" {
		program = "git"
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return runner{}, fmt.Errorf("find git: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return runner{}, fmt.Errorf("find git: %w", err)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return runner{}, fmt.Errorf("make an empty home: %w", err)
	}
	return runner{program: path, home: home, caFile: caFile}, nil
}

// env is the whole environment of a child. Nothing of our own process is passed on.
func (r runner) env() []string {
	return []string{
		"PATH=" + filepath.Dir(r.program) + ":/usr/bin:/bin",
		"HOME=" + r.home,
		"LC_ALL=C",
		"TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_OPTIONAL_LOCKS=0",
	}
}

// child is a running git.
type child struct {
	cmd    *exec.Cmd
	verb   string
	stderr *head
	ended  func() error // why its context is done, nil while it is not
	stop   context.CancelFunc
}

// start runs c in a process group of its own, which dies with ctx.
func (r runner) start(ctx context.Context, c call) (*child, error) {
	if c.timeout == 0 {
		c.timeout = localTimeout
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.timeout, errTimeLimit)
	config := append(append([]string{}, fixedConfig...), c.config...)
	var credential *os.File
	if c.remote != nil {
		config = append(config, c.remote.config(r.caFile, r.stall)...)
		f, err := c.remote.credential()
		if err != nil {
			stop()
			return nil, err
		}
		credential = f
		defer credential.Close()
	}
	args := make([]string, 0, 2*len(config)+len(c.args)+1)
	for _, kv := range config {
		args = append(args, "-c", kv)
	}
	args = append(append(args, "--git-dir="+c.dir), c.args...)
	cmd := exec.CommandContext(ctx, r.program, args...)
	cmd.Dir, cmd.Env = r.home, r.env()
	stderr := &head{limit: maxStderr}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killWait
	cmd.ExtraFiles = []*os.File{credential}
	if c.lock != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.lock.file)
	}
	if err := cmd.Start(); err != nil {
		stop()
		return nil, fmt.Errorf("start git %s: %w", c.verb(), err)
	}
	started := &child{cmd: cmd, verb: c.verb(), stderr: stderr, ended: func() error { return context.Cause(ctx) }, stop: stop}
	if err := c.limits.apply(cmd.Process.Pid); err != nil {
		stop()
		return nil, errors.Join(err, started.wait())
	}
	return started, nil
}

// wait returns when the child and its pipes have ended.
func (c *child) wait() error {
	defer c.stop()
	err := c.cmd.Wait()
	if err == nil {
		return nil
	}
	if cause := c.ended(); cause != nil && !errors.Is(cause, errTimeLimit) {
		return cause
	} else if cause != nil {
		err = cause
	}
	return &gitError{verb: c.verb, stderr: c.stderr.String(), cause: err}
}

func (r runner) run(ctx context.Context, c call) error {
	started, err := r.start(ctx, c)
	if err != nil {
		return err
	}
	return started.wait()
}

// output returns what c writes to stdout.
func (r runner) output(ctx context.Context, c call) ([]byte, error) {
	out := &capped{limit: maxOutput}
	c.stdout = out
	err := r.run(ctx, c)
	if out.over {
		err = errOutputLimit
	}
	return out.buf.Bytes(), err
}

// line is output without its last newline.
func (r runner) line(ctx context.Context, c call) (string, error) {
	out, err := r.output(ctx, c)
	return strings.TrimSuffix(string(out), "\n"), err
}

func (c call) verb() string {
	for _, arg := range c.args {
		if !strings.HasPrefix(arg, "-") && arg != "" {
			return arg
		}
	}
	return ""
}

func (l limits) apply(pid int) error {
	for resource, max := range map[int]uint64{unix.RLIMIT_AS: gitMemory, unix.RLIMIT_CPU: l.cpu, unix.RLIMIT_FSIZE: l.file} {
		if max == 0 {
			continue
		}
		if err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: max, Max: max}, nil); err != nil {
			return fmt.Errorf("limit git: %w", err)
		}
	}
	return nil
}

// gitError is a git that did not end well. Its text names no line of stderr, which may hold a
// server's words; classification reads them from the field.
type gitError struct {
	verb   string
	stderr string
	cause  error
}

func (e *gitError) Error() string { return "git " + e.verb + ": " + e.cause.Error() }
func (e *gitError) Unwrap() error { return e.cause }

// says reports whether stderr holds one of the texts.
func (e *gitError) says(texts ...string) bool {
	for _, t := range texts {
		if strings.Contains(e.stderr, t) {
			return true
		}
	}
	return false
}

// remote reports whether a line that the other side sent holds text.
func (e *gitError) remote(text string) bool {
	for line := range strings.Lines(e.stderr) {
		if strings.HasPrefix(line, "remote:") && strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// signal is what killed git, 0 when nothing did.
func (e *gitError) signal() syscall.Signal {
	if exit, ok := errors.AsType[*exec.ExitError](e.cause); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}

// exhausted says that git, or one that it started, was ended by a limit of the kernel's.
func (e *gitError) exhausted() bool {
	return e.signal() != 0 || e.says("ut of memory", "died of signal", "mmap failed")
}

// head keeps the first bytes and swallows the rest, so that a chatty child never blocks.
type head struct {
	bytes.Buffer
	limit int
}

func (h *head) Write(p []byte) (int, error) {
	if room := h.limit - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// capped fails at the limit, which ends the child that writes to it.
type capped struct {
	buf   bytes.Buffer
	limit int
	over  bool
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.limit - c.buf.Len(); len(p) > room {
		c.buf.Write(p[:room])
		c.over = true
		return room, errOutputLimit
	}
	return c.buf.Write(p)
}
