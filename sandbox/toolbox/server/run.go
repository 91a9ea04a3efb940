package server

import (
	"context"
	"errors"
	"path"
	"strings"
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
	exit, err := s.commands.Run(limited, Shell{Text: string(a.Shell), Dir: dir, Env: env}, out)
	if err != nil {
		return nil, err
	}
	result := wire.RunResult{
		Exit:      exit.Code,
		Signal:    exit.Signal,
		TimedOut:  ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) && exit.Interrupted,
		OOMKilled: exit.OOMKilled,
		Survivors: exit.Survivors,
		Duration:  time.Since(began).Microseconds(),
	}
	out.fill(&result)
	return result, nil
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

// env is the fixed part of a command's environment. Commands adds PATH.
func (f *Files) env() []string {
	workspace, tmp := f.layout.seen()
	return append([]string{
		"HOME=" + path.Join(workspace, "home"),
		"TMPDIR=" + tmp,
		"LANG=C.UTF-8",
		"PAGER=cat",
		"GIT_PAGER=cat",
		"GIT_TERMINAL_PROMPT=0",
		"TERM=dumb",
		"NO_COLOR=1",
		"CI=1",
	}, f.layout.Env...)
}
