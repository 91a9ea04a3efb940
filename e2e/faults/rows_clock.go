package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"agent-sandboxing/core/github/githubtest/seed"
	"agent-sandboxing/e2e/person"
)

// clockRows run the product beside a database whose clock is not its own.
func clockRows() []row {
	return []row{
		{"F16: the database's clock is an hour ahead", func(ctx context.Context, b *bench) (string, error) { return b.clocks(ctx, "+1h") }},
		{"F16: the database's clock is an hour behind", func(ctx context.Context, b *bench) (string, error) { return b.clocks(ctx, "-1h") }},
	}
}

// clocks runs web and worker on a database server whose time is faked: a turn, the death of its worker
// and the next message are what they are elsewhere, and pages know that a worker is there.
func (b *bench) clocks(ctx context.Context, offset string) (code string, err error) {
	server, stop, err := b.fakedPostgres(ctx, offset)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, stop()) }()
	owner := b.owner
	if err := b.moveTo(ctx, server); err != nil {
		return "", err
	}
	if b.owner, err = person.SignIn(ctx, "http://"+b.productAddr, "http://"+b.githubAddr, seed.Owner); err == nil {
		code, err = b.underOtherClock(ctx, server)
	}
	b.owner = owner
	instance, lookErr := instanceOf(ctx, server["DATABASE_URL"])
	err = errors.Join(err, lookErr, b.moveTo(ctx, nil), owner.WaitReady(ctx))
	if lookErr == nil {
		err = errors.Join(err, b.removeAll(ctx, instance)) // nobody else would: it is another installation's
	}
	return code, err
}

// moveTo runs web and worker in another environment.
func (b *bench) moveTo(ctx context.Context, change map[string]string) error {
	err := errors.Join(b.signal(ctx, "worker", syscall.SIGTERM), b.signal(ctx, "web", syscall.SIGTERM))
	if err != nil {
		return err
	}
	if out, err := b.once(ctx, change, "migrate"); err != nil {
		return fmt.Errorf("migrate: %w: %s", err, out)
	}
	return errors.Join(b.start("web", change), b.start("worker", change))
}

func (b *bench) underOtherClock(ctx context.Context, server map[string]string) (string, error) {
	id, name, err := b.working(ctx)
	if err != nil {
		return "", err
	}
	page, err := b.owner.Do(ctx, http.MethodGet, "/chat-sessions/"+id, http.Header{"Accept": {"text/html"}}, nil)
	if err != nil || strings.Contains(string(page.Body), "No worker is running") {
		return "", fmt.Errorf("the page does not know of the worker: %w", err)
	}
	if err := errors.Join(b.signal(ctx, "worker", syscall.SIGKILL), b.start("worker", server)); err != nil {
		return "", err
	}
	code, err := b.failed(ctx, id, "worker_lost")
	if err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, id, name)
}

// fakedPostgres starts a database server whose clock differs by offset from everybody's.
func (b *bench) fakedPostgres(ctx context.Context, offset string) (server map[string]string, stop func() error, err error) {
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libraries) == 0 {
		return nil, nil, errors.New("faketime is not installed. Run: apt-get install faketime")
	}
	dir := b.dir + "-clock" + offset // beside it: the server runs as another user
	run := func(ctx context.Context, what string) error {
		cmd := exec.CommandContext(ctx, "scripts/test-postgres", what)
		cmd.Env = append(os.Environ(), "TEST_POSTGRES_DIR="+dir, "LD_PRELOAD="+libraries[0], "FAKETIME="+offset, "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_NO_CACHE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("test-postgres %s: %w: %s", what, err, out)
		}
		return nil
	}
	stop = func() error { return run(context.WithoutCancel(ctx), "stop") }
	if err := run(ctx, "start"); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return map[string]string{"DATABASE_URL": "host=" + dir + " user=postgres dbname=postgres"}, stop, nil
}
