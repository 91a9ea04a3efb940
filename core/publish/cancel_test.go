package publish_test

import (
	"context"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/store/storetest"
)

// cancelling is a person who cancels at the worst moment: before or after a call has had its effect.
type cancelling struct {
	publish.Mirror
	cancel context.CancelCauseFunc
	at     string // import, push or pushed
}

func (c cancelling) Import(ctx context.Context, s core.ChatSession, ws core.PlatformWorkspace) (*mirror.Quarantine, error) {
	if c.at == "import" {
		c.cancel(core.ErrCancelledByUser)
	}
	return c.Mirror.Import(ctx, s, ws)
}

func (c cancelling) Push(ctx context.Context, repo core.Repository, token core.RepoToken, q *mirror.Quarantine, commit, branch, expected string) error {
	if c.at == "push" {
		c.cancel(core.ErrCancelledByUser)
		return context.Cause(ctx)
	}
	err := c.Mirror.Push(ctx, repo, token, q, commit, branch, expected)
	if c.at == "pushed" {
		c.cancel(core.ErrCancelledByUser)
		return context.Cause(ctx)
	}
	return err
}

func TestPublish_ACancelHoldsBeforeThePushAndNotAfterIt(t *testing.T) {
	t.Parallel()
	for at, code := range map[string]string{"import": "publish_cancelled", "push": "publish_cancelled", "pushed": ""} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
			id := w.askFor(t, s, core.Publication{Title: "Hello"}, nil)
			claim, err := w.store.Claim(t.Context(), w.worker, storetest.Lease, core.Budgets{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			o := w.options
			o.Mirror = cancelling{w.mirror, cancel, at}
			before := w.unrevoked(t)
			_, err = publish.New(o).Publish(ctx, claim, *claim.Publication, ws)
			if got := w.unrevoked(t); got != before {
				t.Errorf("%d tokens were not given back", got-before)
			}
			if err := w.store.Release(t.Context(), claim.Lease); err != nil {
				t.Fatal(err)
			}
			if at != "import" { // whether it was pushed is seen by the next claim
				_, err = w.serve(t, w.options, s, ws)
			}
			if code == "" && err != nil {
				t.Fatalf("after the push: %v", err)
			} else if code != "" {
				wantCode(t, err, code)
			}
			row, err := w.store.Publication(t.Context(), s.ID, id)
			if err != nil || row.FailureCode != code || row.FinishedAt.IsZero() {
				t.Errorf("ledger = %+v, %v", row, err)
			}
			pulls := 0
			if code == "" {
				pulls = 1
			}
			if got := len(w.pulls(t, s)); got != pulls {
				t.Errorf("%d pull requests, want %d", got, pulls)
			}
			if head := w.git(t, "for-each-ref", "refs/heads/agent"); (head != "") != (code == "") {
				t.Errorf("branches = %q", head)
			}
			write(t, ws, map[string]string{"hello.txt": "hello again\n"})
			w.must(t, s, ws, "Hello", "")
		})
	}
}

func TestPublish_ACancelReachesTheWorkerUntilTheCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	id := w.askFor(t, s, core.Publication{Title: "Hello"}, nil)
	if err := w.store.CancelPublication(t.Context(), s.ID, id); err != nil { // nobody has it
		t.Fatal(err)
	}
	wantCode(t, w.store.CancelPublication(t.Context(), s.ID, id), "publish_not_waiting")

	id = w.askFor(t, s, core.Publication{Title: "Hello"}, nil)
	claim, err := w.store.Claim(t.Context(), w.worker, storetest.Lease, core.Budgets{})
	if err != nil {
		t.Fatal(err)
	}
	asked := func() bool {
		t.Helper()
		cancel, err := w.store.CancelRequested(t.Context(), claim.Lease)
		if err != nil {
			t.Fatal(err)
		}
		return cancel
	}
	if asked() {
		t.Error("cancelled by nobody")
	}
	if err := w.store.CancelPublication(t.Context(), s.ID, id); err != nil {
		t.Fatal(err)
	}
	if !asked() {
		t.Error("the worker does not hear of it")
	}
	p := *claim.Publication
	p.Step, p.CommitSHA = core.PublishCommitted, w.base
	if err := w.store.SavePublication(t.Context(), claim.Lease, p); err != nil {
		t.Fatal(err)
	}
	if asked() {
		t.Error("it would be cancelled while it is pushed")
	}
	wantCode(t, w.store.CancelPublication(t.Context(), s.ID, id), "publish_sent")
	if err := w.store.Release(t.Context(), claim.Lease); err != nil {
		t.Fatal(err)
	}
	_, err = w.serve(t, w.options, s, ws) // it was never pushed
	wantCode(t, err, "publish_cancelled")
}
