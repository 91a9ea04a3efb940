package publish_test

import (
	"context"
	"fmt"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/publish"

	"github.com/google/go-cmp/cmp"
)

// crash ends a run right after its nth call to the world outside has had its effect, which is also right
// before the next one. As for a killed worker, nothing is recorded about it.
type crash struct {
	at    int // counts down; 0 has happened
	calls []string
	kill  func() // ends the process, nil for an error in its place
}

// run performs a call, or crashes after it.
func run[T any](c *crash, name string, call func() (T, error)) (T, error) {
	var none T
	c.calls = append(c.calls, name)
	c.at--
	if c.at < 0 {
		return none, core.ErrLeaseLost
	}
	result, err := call()
	if c.at > 0 {
		return result, err
	}
	if c.kill != nil {
		c.kill()
	}
	return none, core.ErrLeaseLost
}

type crashStore struct {
	publish.Store
	*crash
}

func (c crashStore) SavePublication(ctx context.Context, lease core.Lease, p core.Publication, events ...core.Payload) error {
	_, err := run(c.crash, "save "+string(p.Step), func() (any, error) { return nil, c.Store.SavePublication(ctx, lease, p, events...) })
	return err
}

func (c crashStore) FinishPublication(ctx context.Context, lease core.Lease, p core.Publication, pr core.PullRequest, events ...core.Payload) error {
	_, err := run(c.crash, "finish", func() (any, error) { return nil, c.Store.FinishPublication(ctx, lease, p, pr, events...) })
	return err
}

func (c crashStore) SaveCheckpoint(ctx context.Context, lease core.Lease, p core.Checkpoint) error {
	_, err := run(c.crash, "checkpoint", func() (any, error) { return nil, c.Store.SaveCheckpoint(ctx, lease, p) })
	return err
}

type crashMirror struct {
	publish.Mirror
	*crash
}

func (c crashMirror) Import(ctx context.Context, s core.ChatSession, ws core.PlatformWorkspace) (*mirror.Quarantine, error) {
	q, err := run(c.crash, "import", func() (*mirror.Quarantine, error) { return c.Mirror.Import(ctx, s, ws) })
	return q, err
}

func (c crashMirror) RemoteHead(ctx context.Context, repo core.Repository, token core.RepoToken, branch string) (string, error) {
	return run(c.crash, "head", func() (string, error) { return c.Mirror.RemoteHead(ctx, repo, token, branch) })
}

func (c crashMirror) Push(ctx context.Context, repo core.Repository, token core.RepoToken, q *mirror.Quarantine, commit, branch, expected string) error {
	_, err := run(c.crash, "push", func() (any, error) { return nil, c.Mirror.Push(ctx, repo, token, q, commit, branch, expected) })
	return err
}

type crashPulls struct {
	publish.PullRequests
	*crash
}

func (c crashPulls) OpenPullRequest(ctx context.Context, token core.RepoToken, repo core.Repository, text core.PullRequestText) (core.PullRequest, error) {
	return run(c.crash, "open", func() (core.PullRequest, error) { return c.PullRequests.OpenPullRequest(ctx, token, repo, text) })
}

func (c crashPulls) UpdatePullRequest(ctx context.Context, token core.RepoToken, repo core.Repository, number int, text core.PullRequestText) (core.PullRequest, error) {
	return run(c.crash, "update", func() (core.PullRequest, error) {
		return c.PullRequests.UpdatePullRequest(ctx, token, repo, number, text)
	})
}

// TestPublish_ResumesAfterACrashAtEveryStep kills a first and a second publish after each of
// their calls, claims the session again, and wants one commit each and one pull request.
func TestPublish_ResumesAfterACrashAtEveryStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls []string
	for at := 1; ; at++ {
		name := fmt.Sprintf("call %d", at)
		s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
		first, crashed := w.crashed(t, s, ws, at)
		calls = first
		pulls := w.pulls(t, s)
		if len(pulls) != 1 {
			t.Fatalf("%s: %d pull requests", name, len(pulls))
		}
		events := w.events(t, s)
		want := []string{"publication_requested", "publication_committed", "publication_pushed", "pull_request_opened"}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", name, diff)
		}

		write(t, ws, map[string]string{"hello.txt": "hello again\n"})
		_, crashedToo := w.crashed(t, s, ws, at)
		pulls = w.pulls(t, s)
		if len(pulls) != 1 || pulls[0].State != "open" || w.git(t, "rev-list", "--count", w.base+".."+s.Branch) != "2" {
			t.Fatalf("%s, second publish: %+v", name, pulls)
		}
		if got := w.events(t, s); len(got) != 8 || got[7] != "pull_request_updated" {
			t.Errorf("%s, second publish: events %v", name, got)
		}
		if !crashed && !crashedToo {
			break
		}
	}
	if diff := cmp.Diff([]string{"head", "import", "save committed", "push", "save pushed", "open", "finish"}, calls); diff != "" {
		t.Errorf("calls of a first publish (-want +got):\n%s", diff)
	}
}

// crashed publishes with a crash and then goes on without, and says whether it came to that.
func (w *world) crashed(t *testing.T, s core.ChatSession, ws core.PlatformWorkspace, at int) (calls []string, crashed bool) {
	t.Helper()
	c := &crash{at: at}
	o := w.options
	o.Store, o.Mirror, o.PullRequests = crashStore{w.store, c}, crashMirror{w.mirror, c}, crashPulls{w.app, c}
	w.ask(t, s, "Hello", "Body.")
	_, err := w.serve(t, o, s, ws)
	if err == nil {
		return c.calls, false
	}
	if row, rowErr := w.store.LastPublished(t.Context(), s.ID); rowErr != nil || row != nil && row.Step == core.PublishFailed {
		t.Fatalf("a crash was recorded as a failure: %+v, %v", row, rowErr)
	}
	if c.calls[len(c.calls)-1] == "finish" {
		return c.calls, true // it was done, only nobody was told
	}
	if _, err := w.serve(t, w.options, s, ws); err != nil {
		t.Fatalf("after a crash at %v: %v", c.calls, err)
	}
	return c.calls, true
}

// TestPublish_ResumesAMergeAfterACrashAtEveryStep does the same with a push of others in between.
func TestPublish_ResumesAMergeAfterACrashAtEveryStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls []string
	for at := 1; ; at++ {
		name := fmt.Sprintf("call %d", at)
		s, ws := w.session(t, map[string]string{"a.txt": "ours\n"})
		w.must(t, s, ws, "Hello", "Body.")
		w.theirs(t, s, map[string]string{"b.txt": "theirs\n"})
		write(t, ws, map[string]string{"a.txt": "ours again\n"})
		first, crashed := w.crashed(t, s, ws, at)
		calls = first
		if diff := cmp.Diff([]string{"ours again", "theirs"}, w.published(t, s, "a.txt", "b.txt")); diff != "" {
			t.Errorf("%s: branch (-want +got):\n%s", name, diff)
		}
		pulls := w.pulls(t, s)
		if count := w.git(t, "rev-list", "--count", w.base+".."+s.Branch); len(pulls) != 1 || count != "4" {
			t.Fatalf("%s: %s commits, %+v", name, count, pulls)
		}
		// Whatever the crash left in the workspace, the next publish takes nothing of theirs back.
		write(t, ws, map[string]string{"c.txt": "ours\n"})
		w.must(t, s, ws, "Hello", "Body.")
		if diff := cmp.Diff([]string{"ours again", "theirs", "ours"}, w.published(t, s, "a.txt", "b.txt", "c.txt")); diff != "" {
			t.Errorf("%s: branch after the next publish (-want +got):\n%s", name, diff)
		}
		if !crashed {
			break
		}
	}
	if diff := cmp.Diff([]string{"head", "import", "save committed", "push", "save pushed", "import", "checkpoint", "save pushed", "update", "finish"}, calls); diff != "" {
		t.Errorf("calls of a merge (-want +got):\n%s", diff)
	}
}
