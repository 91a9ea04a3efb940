package publish_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/mirror/mirrortest"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/store/storetest"

	"github.com/google/go-cmp/cmp"
)

func TestPublish_OpensThenUpdatesTheSamePullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"main.go": "package main\n\nfunc main() {}\n", "hello.txt": "hello\n"})
	before := w.unrevoked(t)
	first := w.must(t, s, ws, "Say hello", "Adds a greeting.\n\nSecond paragraph.")
	if got := w.unrevoked(t); got != before {
		t.Errorf("%d tokens were not revoked", got-before)
	}
	want := core.PublishResult{Outcome: core.PublishOpened, Number: first.Number, URL: first.URL, Files: 2, Additions: 3}
	if diff := cmp.Diff(want, first); diff != "" || first.Number == 0 || !strings.Contains(first.URL, "/pull/") {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	pulls := w.pulls(t, s)
	if len(pulls) != 1 || pulls[0].Title != "Say hello" || pulls[0].Base != "main" {
		t.Fatalf("pull requests = %+v", pulls)
	}
	for _, text := range []string{"Adds a greeting.\n\nSecond paragraph.", "**Changed files** (2, +3 −0)", "- `hello.txt` added, +1 −0", "- `main.go` +2 −0", "Requested by @octo-dev in [this session](https://agent.example.com/chat-sessions/" + string(s.ID) + ")."} {
		if !strings.Contains(pulls[0].Body, text) {
			t.Errorf("body lacks %q:\n%s", text, pulls[0].Body)
		}
	}
	wantCommit := "agent[bot]|99+agent[bot]@users.noreply.github.com|agent[bot]|1714564800|1714564800|Say hello\n\nAdds a greeting.\n\n" +
		"Co-authored-by: Octo Dev <4242+octo-dev@users.noreply.github.com>\nAgent-Session: https://agent.example.com/chat-sessions/" + string(s.ID)
	if got := w.git(t, "log", "-1", "--format=%an|%ae|%cn|%at|%ct|%B", s.Branch); strings.TrimSpace(got) != wantCommit {
		t.Errorf("commit = %q", got)
	}
	if got := mirrortest.Git(t, ws.Dir, "rev-parse", "HEAD"); got != w.base {
		t.Errorf("the workspace's branch moved to %s", got)
	}

	write(t, ws, map[string]string{"hello.txt": "hello\nagain\n"})
	second := w.must(t, s, ws, "Say hello twice", "More.")
	third := w.must(t, s, ws, "Say hello twice", "More.")
	if second.Outcome != core.PublishUpdated || third.Outcome != core.PublishUnchanged || second.Number != first.Number || third.Number != first.Number || second.Additions != 4 {
		t.Errorf("second = %+v, third = %+v", second, third)
	}
	pulls = w.pulls(t, s)
	if len(pulls) != 1 || pulls[0].Title != "Say hello twice" || strings.Contains(pulls[0].Body, "Adds a greeting") || strings.Count(pulls[0].Body, "agent-session:begin") != 1 {
		t.Errorf("pull requests = %+v", pulls)
	}
	if got := w.git(t, "rev-list", "--count", w.base+".."+s.Branch); got != "2" {
		t.Errorf("%s commits, want 2", got)
	}
	wantEvents := []string{
		"publication_requested", "publication_committed", "publication_pushed", "pull_request_opened",
		"publication_requested", "publication_committed", "publication_pushed", "pull_request_updated",
		"publication_requested", "publication_unchanged",
	}
	if diff := cmp.Diff(wantEvents, w.events(t, s)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	stored, err := w.store.PullRequest(t.Context(), s.ID)
	if err != nil || stored == nil || stored.Number != first.Number || stored.State != "open" || stored.HeadSHA != pulls[0].HeadSHA {
		t.Errorf("record = %+v, %v", stored, err)
	}
}

func TestPublish_KeepsWhatPeopleWroteAroundOurBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	result := w.must(t, s, ws, "Say hello", "First.")
	token, err := w.app.Mint(t.Context(), w.repo, core.TokenPublish)
	if err != nil {
		t.Fatal(err)
	}
	edited := "Note above.\r\n\r\n" + w.pulls(t, s)[0].Body + "\n\nNote below."
	if _, err := w.app.UpdatePullRequest(t.Context(), token, w.repo, result.Number, core.PullRequestText{Title: "A person's title", Body: edited}); err != nil {
		t.Fatal(err)
	}
	write(t, ws, map[string]string{"hello.txt": "hi\n"})
	w.must(t, s, ws, "Another title", "Second.")
	p := w.pulls(t, s)[0]
	if p.Title != "A person's title" || !strings.HasPrefix(p.Body, "Note above.\r\n\r\n<!-- agent-session:begin") || !strings.HasSuffix(p.Body, "end -->\n\nNote below.") {
		t.Errorf("title %q, body %q", p.Title, p.Body)
	}
	if !strings.Contains(p.Body, "Second.") || strings.Contains(p.Body, "First.") {
		t.Errorf("our block was not replaced: %s", p.Body)
	}
}

func TestPublish_OfAFixtureIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	w.ask(t, s, "Hello", "")
	claim, err := w.store.Claim(t.Context(), w.worker, storetest.Lease, core.Budgets{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Session.Repository.InstallationID = core.FixtureInstallation
	_, err = publish.New(w.options).Publish(t.Context(), claim, *claim.Publication, ws)
	wantCode(t, err, "not_github_repository")
}

func TestPublish_TheAgentsAttemptBeginsItsRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	claim := storetest.Claim(t, w.store)
	id := core.NewID[core.PublicationID]()
	p := core.Publication{ID: id, SessionID: s.ID, MessageID: claim.Message.ID, RequestedBy: s.OwnerID, ClientKey: string(id), Title: "Hi", Step: core.PublishRequested}
	result, err := publish.New(w.options).Publish(t.Context(), claim, p, ws)
	if err != nil || result.Outcome != core.PublishOpened {
		t.Fatalf("result = %+v, %v", result, err)
	}
	row, err := w.store.Publication(t.Context(), s.ID, id)
	if err != nil || row.Step != core.PublishDone || row.CommitSHA == "" || row.TreeSHA == "" || row.CreatedAt.IsZero() {
		t.Errorf("row = %+v, %v", row, err)
	}
	if got := w.events(t, s); got[0] != "publication_requested" || len(got) != 4 {
		t.Errorf("events = %v", got)
	}
}

func TestPublish_CancelBeforeTheCommitEndsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	w.ask(t, s, "Hello", "")
	ctx, cancel := context.WithCancelCause(t.Context())
	ws.Tamper = func(_ *core.Snapshot, pack []byte) []byte { cancel(core.ErrCancelledByUser); return pack }
	claim, err := w.store.Claim(t.Context(), w.worker, storetest.Lease, core.Budgets{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = publish.New(w.options).Publish(ctx, claim, *claim.Publication, ws)
	wantCode(t, err, "publish_cancelled")
	row, err := w.store.Publication(t.Context(), s.ID, claim.Publication.ID)
	if err != nil || row.Step != core.PublishFailed {
		t.Errorf("row = %+v, %v", row, err)
	}
}

// lossy loses the answers of calls that were done.
type lossy struct {
	publish.Mirror
	publish.PullRequests
}

var errLost = core.Fail(core.Unavailable, "github_unavailable", "The answer was lost.")

func (l lossy) Push(ctx context.Context, repo core.Repository, token core.RepoToken, q *mirror.Quarantine, commit, branch, expected string) error {
	return errors.Join(errLost, l.Mirror.Push(ctx, repo, token, q, commit, branch, expected))
}

func (l lossy) OpenPullRequest(ctx context.Context, token core.RepoToken, repo core.Repository, text core.PullRequestText) (core.PullRequest, error) {
	_, err := l.PullRequests.OpenPullRequest(ctx, token, repo, text)
	return core.PullRequest{}, errors.Join(errLost, err)
}

func TestPublish_LooksBeforeItBelievesALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	o := w.options
	l := lossy{Mirror: w.mirror, PullRequests: w.app}
	o.Mirror, o.PullRequests = l, l
	w.ask(t, s, "Hello", "")
	result, err := w.serve(t, o, s, ws)
	if err != nil || result.Outcome != core.PublishOpened || len(w.pulls(t, s)) != 1 {
		t.Errorf("result = %+v, %v; %d pull requests", result, err, len(w.pulls(t, s)))
	}
}

// down fails after the push without saying that it was done.
type down struct{ publish.Mirror }

func (d down) Push(ctx context.Context, repo core.Repository, token core.RepoToken, q *mirror.Quarantine, commit, branch, expected string) error {
	return errors.Join(errLost, d.Mirror.Push(ctx, repo, token, q, commit, branch, expected))
}

func (d down) RemoteHead(ctx context.Context, repo core.Repository, token core.RepoToken, branch string) (string, error) {
	head, err := d.Mirror.RemoteHead(ctx, repo, token, branch)
	if head != "" {
		return "", errLost
	}
	return head, err
}

func TestPublish_RecognisesItsOwnCommitAfterAFailedAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	o := w.options
	o.Mirror = down{w.mirror}
	w.ask(t, s, "Hello", "")
	_, err := w.serve(t, o, s, ws)
	wantCode(t, err, "github_unavailable")
	result := w.must(t, s, ws, "Hello", "")
	if result.Outcome != core.PublishOpened || w.git(t, "rev-list", "--count", w.base+".."+s.Branch) != "1" {
		t.Errorf("result = %+v", result)
	}
}

// shut refuses to open a pull request.
type shut struct{ publish.PullRequests }

func (shut) OpenPullRequest(context.Context, core.RepoToken, core.Repository, core.PullRequestText) (core.PullRequest, error) {
	return core.PullRequest{}, core.Fail(core.Conflict, "base_missing", "The base is gone.")
}

func TestPublish_AdoptsThePullRequestThatAPersonOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	o := w.options
	o.PullRequests = shut{w.app}
	w.ask(t, s, "Hello", "")
	_, err := w.serve(t, o, s, ws)
	wantCode(t, err, "base_missing")
	token, err := w.app.Mint(t.Context(), w.repo, core.TokenPublish)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := w.app.OpenPullRequest(t.Context(), token, w.repo, core.PullRequestText{Title: "Theirs", Body: "Their words.", Head: s.Branch, Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, ws, map[string]string{"hello.txt": "hello again\n"})
	result := w.must(t, s, ws, "Hello", "Ours.")
	p := w.pulls(t, s)
	if result.Outcome != core.PublishUpdated || result.Number != theirs.Number || len(p) != 1 || p[0].Title != "Theirs" || !strings.HasPrefix(p[0].Body, "Their words.\n\n<!-- agent-session:begin") {
		t.Errorf("result = %+v, pull requests = %+v", result, p)
	}
}
