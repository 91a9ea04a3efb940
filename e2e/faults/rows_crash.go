package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"agent-sandboxing/core/github/githubtest"
)

// crashRows end processes of the product.
func crashRows() []row {
	return []row{
		{"the worker is killed in the middle of a turn", func(ctx context.Context, b *bench) (string, error) {
			return b.duringTurn(ctx, func(string) error {
				_, err := b.crashWorker(ctx, nil)
				return err
			}, nil, "worker_lost")
		}},
		{"the worker is killed while it prepares", func(ctx context.Context, b *bench) (string, error) {
			b.github.Fail(slowGit("mdlinks"))
			id, err := b.create(ctx, "mdlinks", "file first.txt")
			if err != nil {
				return "", err
			}
			if _, err := b.until(ctx, id, "was prepared", func(s state) bool { return s.State == "preparing" }); err != nil {
				return "", err
			}
			if _, err := b.crashWorker(ctx, nil); err != nil {
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
	if err := errors.Join(err, pause(ctx, long), b.database.up(), b.owner.WaitReady(ctx)); err != nil {
		return code, err
	}
	if long < 10*time.Second { // the turn has not noticed
		_, err = b.cancelled(ctx, id)
	} else {
		code, err = b.failed(ctx, id, "worker_lost")
	}
	if err != nil {
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
	code, err := b.cancelled(ctx, id)
	if err != nil {
		return code, err
	}
	return "unnoticed, then " + code, b.goesOn(ctx, id, name)
}
