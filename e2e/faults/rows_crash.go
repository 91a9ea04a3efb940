package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/github/githubtest/seed"
	"agent-sandboxing/e2e/person"
)

// crashRows end processes of the product.
func crashRows() []row {
	return []row{
		{"the worker is killed in the middle of a turn", func(ctx context.Context, b *bench) (string, error) {
			return b.duringTurn(ctx, func(string) error {
				return b.crashWorker(ctx, nil)
			}, nil, "worker_lost")
		}},
		{"the worker is killed while it prepares", func(ctx context.Context, b *bench) (string, error) {
			b.github.Fail(slowMint)
			id, err := b.create(ctx, "mdlinks", "file first.txt")
			if err != nil {
				return "", err
			}
			if _, err := b.until(ctx, id, "was prepared", func(s state) bool { return s.State == "preparing" }); err != nil {
				return "", err
			}
			if err := b.crashWorker(ctx, nil); err != nil {
				return "", err
			}
			if err := b.completed(ctx, id); err != nil {
				return "", fmt.Errorf("it was not prepared again: %w", err)
			}
			return "prepared again", b.goesOn(ctx, id, "first.txt")
		}},
		{"the worker is stopped in the middle of a turn", func(ctx context.Context, b *bench) (string, error) {
			return b.duringTurn(ctx, func(string) error { return b.newWorker(ctx, nil) }, nil, "worker_stopped")
		}},
		{"the worker is killed in the middle of a publish", func(ctx context.Context, b *bench) (string, error) {
			return b.publishCut(ctx, syscall.SIGKILL)
		}},
		{"the worker is stopped in the middle of a publish", func(ctx context.Context, b *bench) (string, error) {
			return b.publishCut(ctx, syscall.SIGTERM)
		}},
		{"cancel: while the agent publishes", cancelPublish},
		{"web is restarted in the middle of a turn", func(ctx context.Context, b *bench) (string, error) { return b.webGone(ctx, syscall.SIGTERM) }},
		{"web is killed in the middle of a turn", func(ctx context.Context, b *bench) (string, error) { return b.webGone(ctx, syscall.SIGKILL) }},
	}
}

// cancelPublish cancels a turn whose agent waits for GitHub to open the pull request. What was pushed
// is finished by itself: one pull request, and its number on record.
func cancelPublish(ctx context.Context, b *bench) (string, error) {
	name := b.newFile()
	b.github.Fail(githubtest.Fault{Pattern: pullRoute, Delay: 2 * time.Second, Count: 1})
	id, err := b.create(ctx, "shelf-label", "file "+name+" then publish")
	if err != nil {
		return "", err
	}
	if _, err := b.until(ctx, id, "was pushed", func(s state) bool { return s.Publication != nil && s.Publication.Step == "pushed" }); err != nil {
		return "", err
	}
	asked := time.Now()
	if err := b.cancel(ctx, id); err != nil {
		return "", err
	}
	s, err := b.until(ctx, id, "ended its message", func(s state) bool {
		_, _, state := s.last()
		return state == "cancelled" || state == "completed"
	})
	if err != nil {
		return "", err
	}
	if took := time.Since(asked); took > 4*time.Second {
		return "", fmt.Errorf("the cancel took %s", took)
	}
	if s, err = b.ended(ctx, id); err != nil {
		return "", err
	}
	if s.Publication.Step != "done" || s.Publication.Number == 0 {
		return "", fmt.Errorf("the publish is %s: %+v", s.Publication.Step, s.Publication.Failure)
	}
	return s.Publication.Outcome, b.goesOn(ctx, id, name)
}

// publishCut ends the worker while GitHub is slow to open the pull request, which it does.
func (b *bench) publishCut(ctx context.Context, sig syscall.Signal) (string, error) {
	id, name, err := b.begun(ctx, "shelf-label")
	if err != nil {
		return "", err
	}
	b.github.Fail(githubtest.Fault{Pattern: pullRoute, Delay: time.Second, Count: 1})
	var p struct{ ID string }
	if err := b.owner.Ask(ctx, http.MethodPost, "/chat-sessions/"+id+"/publish", "", map[string]string{"title": "Add files"}, &p); err != nil {
		return "", err
	}
	if _, err := b.until(ctx, id, "was pushed", func(s state) bool { return s.Publication != nil && s.Publication.Step == "pushed" }); err != nil {
		return "", err
	}
	if err := errors.Join(b.signal(ctx, "worker", sig), b.start("worker", nil)); err != nil {
		return "", err
	}
	s, err := b.ended(ctx, id)
	if err != nil {
		return "", err
	}
	if s.Publication.Step != "done" || s.Publication.Number == 0 {
		return "", fmt.Errorf("the publish is %s: %+v", s.Publication.Step, s.Publication.Failure)
	}
	if _, err := b.publish(ctx, id, []string{""}); err != nil {
		return "", err
	}
	return s.Publication.Outcome, b.goesOn(ctx, id, name)
}

// databaseGone takes the database away from web and worker while a turn runs.
func (b *bench) databaseGone(ctx context.Context, long time.Duration) (string, error) {
	id, name, err := b.working(ctx)
	if err != nil {
		return "", err
	}
	b.database.down()
	var s state
	code, err := refused(b.owner.Ask(ctx, http.MethodGet, "/chat-sessions/"+id, "", nil, &s), http.StatusServiceUnavailable, "database_unavailable")
	select {
	case <-time.After(long):
	case <-ctx.Done():
		return code, ctx.Err()
	}
	if err := errors.Join(err, b.database.up(), b.owner.WaitReady(ctx)); err != nil {
		return code, err
	}
	if long < 10*time.Second { // the turn has not noticed
		if err := b.cancel(ctx, id); err != nil {
			return code, err
		}
		s, err := b.ended(ctx, id)
		if err != nil {
			return code, err
		}
		if _, _, state := s.last(); state != "cancelled" {
			return code, fmt.Errorf("the message is %s", state)
		}
	} else if code, err = b.failed(ctx, id, "worker_lost"); err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, id, name)
}

// webGone ends web while a turn runs. The turn does not notice; its log has no hole.
func (b *bench) webGone(ctx context.Context, sig syscall.Signal) (string, error) {
	id, name, err := b.working(ctx)
	if err != nil {
		return "", err
	}
	if err := errors.Join(b.signal(ctx, "web", sig), b.start("web", nil), b.owner.WaitReady(ctx)); err != nil {
		return "", err
	}
	s, err := b.read(ctx, id)
	if err != nil {
		return "", err
	}
	if _, _, state := s.last(); state != "working" {
		return "", fmt.Errorf("the message is %s", state)
	}
	if err := b.cancel(ctx, id); err != nil {
		return "", err
	}
	if s, err = b.ended(ctx, id); err != nil {
		return "", err
	}
	if _, err := b.events(ctx, id); err != nil {
		return "", err
	}
	_, _, state := s.last()
	return "unnoticed, then " + state, b.goesOn(ctx, id, name)
}

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
				return serve.wait(ctx) // it ends by itself, and says why
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
