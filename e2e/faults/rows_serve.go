package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agent-sandboxing/core/github/githubtest/seed"
	"agent-sandboxing/e2e/person"
)

// singleRows run the product as one process with a Postgres of its own. They come last: from the
// first on there is no other.
func singleRows() []row {
	return []row{
		{"serve: Postgres is killed in the middle of a turn", func(ctx context.Context, b *bench) (string, error) {
			if err := b.single(ctx); err != nil {
				return "", err
			}
			return b.serveGone(ctx, func() error {
				pid, err := b.postgres()
				if err != nil {
					return err
				}
				serve := b.running["serve"]
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
				defer cancel()
				if err := serve.wait(ctx); err != nil { // it ends by itself, and says why
					return fmt.Errorf("serve without its Postgres: %w", err)
				}
				return nil
			})
		}},
		{"serve: killed in the middle of a turn", func(ctx context.Context, b *bench) (string, error) {
			if err := b.single(ctx); err != nil {
				return "", err
			}
			return b.serveGone(ctx, func() error { return b.signal(ctx, "serve", syscall.SIGKILL) })
		}},
		{"serve: stopped in the middle of a turn", func(ctx context.Context, b *bench) (string, error) {
			if err := b.single(ctx); err != nil {
				return "", err
			}
			return b.serveGone(ctx, func() error { return b.signal(ctx, "serve", syscall.SIGTERM) })
		}},
		{"serve: stopped, nothing is left running", func(ctx context.Context, b *bench) (string, error) {
			if err := b.single(ctx); err != nil {
				return "", err
			}
			if err := b.signal(ctx, "serve", syscall.SIGTERM); err != nil {
				return "", err
			}
			left, err := b.host(ctx, "ps", "-aq", "--filter", "label=agent-sandboxing.instance="+b.instance)
			if err != nil {
				return "", err
			}
			if _, err := b.postgres(); err == nil || len(left) > 0 {
				return "", fmt.Errorf("%d containers are left; Postgres: %w", len(left), err)
			}
			return "nothing left", b.removeAll(ctx, b.instance)
		}},
	}
}

func (b *bench) serveEnv() map[string]string {
	return map[string]string{"DATABASE_URL": "", "ENCRYPTION_KEYS": "", "DATA_DIR": filepath.Join(b.dir, "serve")}
}

// single goes over to one process.
func (b *bench) single(ctx context.Context) error {
	if b.running["serve"] != nil {
		return nil
	}
	if b.running["web"] != nil {
		err := errors.Join(b.signal(ctx, "web", syscall.SIGTERM), b.signal(ctx, "worker", syscall.SIGTERM), b.removeAll(ctx, b.instance))
		if err != nil {
			return err
		}
	}
	if err := b.start("serve", b.serveEnv()); err != nil {
		return err
	}
	var err error
	b.owner, err = person.SignIn(ctx, "http://"+b.productAddr, "http://"+b.githubAddr, seed.Owner)
	return err
}

// postgres is the process id of the one that serve runs.
func (b *bench) postgres() (int, error) {
	text, err := os.ReadFile(filepath.Join(b.dir, "serve", "postgres", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, err
	}
	return pid, syscall.Kill(pid, 0)
}

// serveGone ends serve while a turn runs and starts it again.
func (b *bench) serveGone(ctx context.Context, end func() error) (string, error) {
	id, name, err := b.working(ctx)
	if err != nil {
		return "", err
	}
	if err := end(); err != nil {
		return "", err
	}
	delete(b.running, "serve")
	if err := b.start("serve", b.serveEnv()); err != nil {
		return "", err
	}
	if err := b.owner.WaitReady(ctx); err != nil {
		return "", err
	}
	code, err := b.failed(ctx, id, "worker_lost", "worker_stopped", "database_unavailable")
	if err != nil {
		return code, err
	}
	if b.instance, err = b.instanceOfServe(ctx); err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, id, name)
}

// instanceOfServe reads from the volumes, of which serve alone has some, whose they are.
func (b *bench) instanceOfServe(ctx context.Context) (string, error) {
	words, err := b.host(ctx, "volume", "ls", "--filter", "label=agent-sandboxing.sandbox", "--format", `{{.Label "agent-sandboxing.instance"}}`)
	if err != nil {
		return "", err
	}
	if len(words) == 0 {
		return "", errors.New("there is no volume")
	}
	return words[0], nil
}
