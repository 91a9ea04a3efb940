package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is one of the product's.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// with is the environment with some variables changed; an empty value takes one away.
func (b *bench) with(change map[string]string) []string {
	env := maps.Clone(b.env)
	maps.Copy(env, change)
	var list []string
	for k, v := range env {
		if v != "" {
			list = append(list, k+"="+v)
		}
	}
	return list
}

// start runs a role until it is stopped or killed. Its log is kept.
func (b *bench) start(role string, change map[string]string) error {
	return b.startAs(role, role, change)
}

// startAs starts one more process of a role, under another name.
func (b *bench) startAs(name, role string, change map[string]string) error {
	log, err := os.OpenFile(filepath.Join(b.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()                   // the child has its own
	cmd := exec.Command(b.binary, role) //nolint:noctx // stop and kill end it
	cmd.Env, cmd.Stdout, cmd.Stderr = b.with(change), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(p.exited)
	}()
	b.running[name] = p
	return nil
}

// signal ends a role by a signal and waits for its end.
func (b *bench) signal(ctx context.Context, role string, sig syscall.Signal) error {
	p := b.running[role]
	if p == nil {
		return nil
	}
	delete(b.running, role)
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.wait(ctx)
}

func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newWorker runs the worker in another environment.
func (b *bench) newWorker(ctx context.Context, change map[string]string) error {
	if err := b.signal(ctx, "worker", syscall.SIGTERM); err != nil {
		return err
	}
	return b.start("worker", change)
}

// crashWorker kills the worker and runs it again. It ends its leases, as 20 s would, and says how many
// turns it had. That leases end by themselves is for the rows about two workers and about clocks.
func (b *bench) crashWorker(ctx context.Context, change map[string]string) (turns int, err error) {
	if err := b.signal(ctx, "worker", syscall.SIGKILL); err != nil {
		return 0, err
	}
	count, err := b.query(ctx, "WITH lost AS (UPDATE chat_sessions SET lease_until = now() - interval '1 second' WHERE lease_owner IS NOT NULL RETURNING 1) SELECT count(*) FROM lost")
	if err == nil {
		_, err = fmt.Sscan(count, &turns)
	}
	return turns, errors.Join(err, b.start("worker", change))
}

// once runs a command of the product that shall end by itself, and returns what it said.
func (b *bench) once(ctx context.Context, change map[string]string, args ...string) (string, error) {
	return b.program(ctx, change, b.binary, args...)
}

func (b *bench) program(ctx context.Context, change map[string]string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = b.with(change), &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return out.String(), errors.New("it did not end by itself")
	}
	return out.String(), err
}
