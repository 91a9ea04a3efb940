package server

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent-sandboxing/sandbox/toolbox/wire"
)

const (
	// standardPath is PATH when the image has none.
	standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// termGrace is the time between TERM and KILL. Cancel has to be over in 2 s, all of it.
	termGrace = 300 * time.Millisecond
	// drainGrace bounds the wait for the end of the output when the program and its tree are gone. It
	// is used up only when a process cannot be killed.
	drainGrace = time.Second
)

// Processes runs real programs and owns every child of this process: it alone waits for them, for
// the orphans that it inherits too. There must be one of it, and nothing else that starts programs.
type Processes struct {
	path    string
	killer  killer
	memory  memoryGroup
	forker  *forker // nil where the sandbox is not this process's alone
	signals chan os.Signal
	done    chan struct{}
	reaping sync.WaitGroup

	// mu is held while a child is started and while one is reaped, so that no exit is missed and no
	// signal goes to a number that is somebody else's by now.
	mu       sync.Mutex
	children map[int]*child
}

// child is a program that was started here.
type child struct {
	pid    int
	status unix.WaitStatus
	exited chan struct{} // closed with status set
}

// NewProcesses takes over the children of this process: as PID 1 all of the sandbox, else, as a
// subreaper, its own descendants. path is PATH of what it runs, "" for the standard one.
func NewProcesses(path string) (*Processes, error) {
	if path == "" {
		path = standardPath
	}
	p := &Processes{
		path:     path,
		signals:  make(chan os.Signal, 1),
		done:     make(chan struct{}),
		children: map[int]*child{},
	}
	if os.Getpid() == 1 {
		reserveThreads()
		p.killer, p.memory, p.forker = killEverything{}, findMemoryGroup(), newForker()
	} else {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, err
		}
		p.killer = killDescendants{}
	}
	signal.Notify(p.signals, unix.SIGCHLD)
	p.reaping.Go(p.reapLoop)
	return p, nil
}

// Close stops reaping.
func (p *Processes) Close() {
	signal.Stop(p.signals)
	close(p.done)
	p.reaping.Wait()
	if p.forker != nil {
		p.forker.close()
	}
}

func (p *Processes) reapLoop() {
	for {
		select {
		case <-p.signals:
			p.reap()
		case <-p.done:
			return
		}
	}
}

// reap collects every child that has ended.
func (p *Processes) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if c := p.children[pid]; c != nil {
			delete(p.children, pid)
			c.status = status
			close(c.exited)
		}
	}
}

// Run executes a shell text with bash, both outputs in one pipe.
func (p *Processes) Run(ctx context.Context, c Shell, out io.Writer) (Exit, error) {
	return p.execute(ctx, Program{
		Argv:   []string{"bash", "--noprofile", "--norc", "-c", c.Text},
		Dir:    c.Dir,
		Env:    c.Env,
		Stdout: out,
	}, true)
}

// Program runs one of the platform's own. Its messages go nowhere: they are no business of users.
func (p *Processes) Program(ctx context.Context, program Program) (Exit, error) {
	return p.execute(ctx, program, false)
}

func (p *Processes) execute(ctx context.Context, program Program, merge bool) (Exit, error) {
	streams, err := openStreams(program, merge)
	if err != nil {
		return Exit{}, wire.Fail(wire.CommandFailed, program.Argv[0])
	}
	kills := p.memory.kills()
	c, err := p.start(program, streams.child)
	streams.closeChild()
	if err != nil {
		streams.abort()
		return Exit{}, wire.Fail(wire.CommandFailed, program.Argv[0])
	}
	streams.copy(program)
	exit := Exit{}
	select {
	case <-c.exited:
	case <-ctx.Done():
		exit.Interrupted = true
		p.terminate(c)
	}
	// Whatever it left is killed, so that nothing holds the pipe and nothing outlives the command.
	left := p.KillAll()
	if !exit.Interrupted {
		exit.Survivors = left
	}
	<-c.exited
	streams.finish(program, drainGrace)
	exit.Code, exit.Signal = exitOf(c.status)
	if exit.OOMKilled = p.memory.kills() > kills; exit.OOMKilled {
		exit.Memory = p.memory.limit()
	}
	return exit, nil
}

// start forks. Each program has a session and process group of its own.
func (p *Processes) start(program Program, files []uintptr) (*child, error) {
	env := append([]string{"PATH=" + p.path}, program.Env...)
	file, err := lookPath(program.Argv[0], p.path)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pid := 0
	fork := func() {
		pid, err = syscall.ForkExec(file, program.Argv, &syscall.ProcAttr{
			Dir:   program.Dir,
			Env:   env,
			Files: files,
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
	}
	if p.forker != nil {
		p.forker.do(fork)
	} else {
		fork()
	}
	if err != nil {
		return nil, err
	}
	c := &child{pid: pid, exited: make(chan struct{})}
	p.children[pid] = c
	return c, nil
}

// terminate asks the group to end and gives it a moment.
func (p *Processes) terminate(c *child) {
	p.mu.Lock()
	if p.children[c.pid] == c {
		_ = unix.Kill(-c.pid, unix.SIGTERM)
	}
	p.mu.Unlock()
	select {
	case <-c.exited:
	case <-time.After(termGrace):
	}
}

// KillAll ends every process but this one and waits until they are gone.
func (p *Processes) KillAll() int {
	return p.killer.killAll(p.reap)
}

func exitOf(status unix.WaitStatus) (code int, signal string) {
	if status.Signaled() {
		name := unix.SignalName(status.Signal())
		if len(name) > 3 {
			name = name[3:] // without SIG
		}
		return 128 + int(status.Signal()), name
	}
	return status.ExitStatus(), ""
}

// lookPath finds a program in the folders of path, whatever this process has for PATH.
func lookPath(name, path string) (string, error) {
	for _, dir := range strings.Split(path, ":") {
		file := dir + "/" + name
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", exec.ErrNotFound
}
