package server

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// run executes one command and answers how it ended. Only one runs at a time: what it leaves behind
// is killed by killing everything.
func (s *server) run(ctx context.Context, a wire.RunArgs) (any, error) {
	dir, err := s.files.dir(a.Dir)
	if err != nil {
		return nil, err
	}
	if err := s.lockPrograms(ctx); err != nil {
		return nil, err
	}
	defer s.unlockPrograms()
	env := s.files.env()
	for _, e := range a.Env {
		if !strings.Contains(string(e), "=") || strings.ContainsRune(string(e), 0) {
			return nil, wire.Fail(wire.BadRequest, string(e))
		}
		env = append(env, string(e))
	}
	if strings.ContainsRune(string(a.Shell), 0) {
		return nil, wire.Fail(wire.BadRequest, "command")
	}
	out := newCapture(s.files, a)
	defer out.close()
	limited, cancel := context.WithTimeout(ctx, time.Duration(a.Timeout)*time.Millisecond)
	defer cancel()
	began := time.Now()
	exit, broke, err := s.watched(limited, a, Shell{Text: string(a.Shell), Dir: dir, Env: env}, out)
	if err != nil {
		return nil, err
	}
	result := wire.RunResult{
		Exit:      exit.Code,
		Signal:    exit.Signal,
		TimedOut:  ctx.Err() == nil && broke == nil && errors.Is(limited.Err(), context.DeadlineExceeded) && exit.Interrupted,
		OverQuota: errors.Is(broke, errOverBudget),
		HostFull:  errors.Is(broke, errHostFull),
		OOMKilled: exit.OOMKilled,
		Memory:    exit.Memory,
		Survivors: exit.Survivors,
		Duration:  time.Since(began).Microseconds(),
	}
	out.fill(&result)
	return result, nil
}

// watched runs a command under the workspace's budget; broke says why that ended it.
func (s *server) watched(ctx context.Context, a wire.RunArgs, c Shell, out io.Writer) (exit Exit, broke, err error) {
	if a.MaxBytes <= 0 && a.MaxEntries <= 0 && a.MinFree <= 0 {
		exit, err = s.commands.Run(ctx, c, out)
		return exit, nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	s.budget.dir = s.files.layout.Workspace
	s.budget.bytes, s.budget.entries, s.budget.minFree = a.MaxBytes, a.MaxEntries, a.MinFree
	var watch sync.WaitGroup
	watch.Go(func() { s.budget.watch(ctx, stop) })
	exit, err = s.commands.Run(ctx, c, out)
	stop(nil)
	watch.Wait()
	if cause := context.Cause(ctx); exit.Interrupted && (errors.Is(cause, errOverBudget) || errors.Is(cause, errHostFull)) {
		broke = cause
	}
	return exit, broke, err
}

// dir is where a command starts, as commands know it.
func (f *Files) dir(name wire.Name) (string, error) {
	p, err := f.existing(name, true)
	if err != nil {
		return "", err
	}
	defer p.close()
	if !p.info.IsDir() {
		return "", wire.Fail(wire.NotADirectory, p.name())
	}
	workspace, tmp := f.layout.seen()
	if p.prefix == tmpName {
		return path.Join(tmp, p.rel), nil
	}
	return path.Join(workspace, "repo", p.rel), nil
}

// env is the fixed part of a command's environment. Commands adds PATH. Nothing in it lets a program wait
// for a person: there is no terminal, and an editor fails. One that did nothing and succeeded would let
// git go on with a text that nobody wrote.
func (f *Files) env() []string {
	workspace, tmp := f.layout.seen()
	return append([]string{
		"HOME=" + path.Join(workspace, "home"),
		"TMPDIR=" + tmp,
		"LANG=C.UTF-8",
		"PAGER=cat",
		"GIT_PAGER=cat",
		"GIT_TERMINAL_PROMPT=0",
		"EDITOR=false",
		"VISUAL=false",
		"GIT_EDITOR=false",
		"GIT_SEQUENCE_EDITOR=false",
		"TERM=dumb",
		"NO_COLOR=1",
		"CI=1",
	}, f.layout.Env...)
}
