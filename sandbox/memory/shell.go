package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"agent-sandboxing/sandbox/toolbox/server"
)

// shell is the toolbox's Commands without processes.
type shell struct {
	jail *jail
}

var _ server.Commands = (*shell)(nil)

// Run interprets a shell text. What it started in the background ends with it.
func (s *shell) Run(ctx context.Context, c server.Shell, out io.Writer) (server.Exit, error) {
	merged := &gate{to: out}
	defer merged.close()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(c.Text), "bash")
	if err != nil {
		fmt.Fprintln(merged, err)
		return server.Exit{Code: 2}, nil
	}
	if usesProcessSubstitution(file) {
		fmt.Fprintln(merged, "bash: process substitution is not available in this environment")
		return server.Exit{Code: 2}, nil
	}
	input, err := os.Open(os.DevNull)
	if err != nil {
		return server.Exit{}, err
	}
	defer input.Close()
	options := append(s.jail.options(),
		interp.Env(expand.ListEnviron(c.Env...)),
		interp.StdIO(input, merged, merged),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.execute }),
	)
	runner, err := interp.New(options...)
	if err != nil {
		return server.Exit{}, fmt.Errorf("make the interpreter: %w", err)
	}
	runner.Dir = c.Dir // as commands see it: it need not be a folder of this machine
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	return exitOf(ctx, runner.Run(running, file))
}

func exitOf(ctx context.Context, err error) (server.Exit, error) {
	status, ok := errors.AsType[interp.ExitStatus](err)
	switch {
	case ctx.Err() != nil:
		return server.Exit{Code: 137, Signal: "KILL", Interrupted: true}, nil
	case err == nil:
		return server.Exit{}, nil
	case ok:
		return server.Exit{Code: int(status)}, nil
	default:
		return server.Exit{Code: 1}, nil
	}
}

func usesProcessSubstitution(file *syntax.File) bool {
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		if _, ok := n.(*syntax.ProcSubst); ok {
			found = true
		}
		return !found
	})
	return found
}

// Program runs the platform's git, the one real program here.
func (s *shell) Program(ctx context.Context, p server.Program) (server.Exit, error) {
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Dir = p.Dir
	cmd.Env = append([]string{"PATH=" + filepath.Dir(cmd.Path)}, p.Env...)
	cmd.Stdout = p.Stdout
	cmd.WaitDelay = time.Second // for a body that nobody sends
	if p.Stdin != nil {
		cmd.Stdin = p.Stdin
		defer p.Stdin.Close()
	}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return server.Exit{Code: exit.ExitCode(), Interrupted: ctx.Err() != nil}, nil
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return server.Exit{}, err
}

// KillAll has nothing to end: a command's goroutines end with it.
func (s *shell) KillAll() int { return 0 }

// gate serialises the writes of a pipeline's parts and drops what comes after the end.
type gate struct {
	mu     sync.Mutex
	to     io.Writer
	closed bool
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, io.ErrClosedPipe
	}
	return g.to.Write(p)
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
