package chat_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/store/storetest"
)

// pulled is a session whose pull request is open on the stand-in and on record.
func (b bench) pulled(t *testing.T) (core.SessionID, int) {
	t.Helper()
	session, err := b.chat.Create(t.Context(), b.user, chat.CreateRequest{Installation: b.installation, Repository: b.repository, Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	head, err := b.github.Commit(t.Context(), "octo-org/web-app", githubtest.Commit{Branch: session.Branch, Message: "x", Files: map[string]githubtest.File{"x": githubtest.Text("x")}})
	if err != nil {
		t.Fatal(err)
	}
	token, err := b.store.UserToken(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	ask, err := json.Marshal(map[string]string{"title": "T", "head": session.Branch, "base": "main"})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/api/v3/repos/octo-org/web-app/pulls", bytes.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Access)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var pr struct {
		Number int
		URL    string `json:"html_url"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&pr); err != nil || pr.Number == 0 {
		t.Fatalf("open a pull request: %d, %v", resp.StatusCode, err)
	}
	claim := storetest.Claim(t, b.store)
	if err := b.store.SavePullRequest(t.Context(), claim.Lease, core.PullRequest{Number: pr.Number, URL: pr.URL, State: core.PullOpen, HeadSHA: head, Base: "main"}); err != nil {
		t.Fatal(err)
	}
	return session.ID, pr.Number
}

func TestLookAtPull_ReadsItOnceAMinuteAndWhenGitHubSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, number := b.pulled(t)
	state := func() string {
		t.Helper()
		if err := b.chat.LookAtPull(t.Context(), b.user, id); err != nil {
			t.Fatal(err)
		}
		pr, err := b.store.PullRequest(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return pr.State
	}
	if got := state(); got != core.PullOpen {
		t.Fatalf("at first: %s", got)
	}
	if err := b.github.ClosePullRequest("octo-org/web-app", number); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != core.PullOpen {
		t.Errorf("it was asked for again at once: %s", got)
	}
	storetest.Exec(t, b.store, `UPDATE pull_requests SET stale_at = clock_timestamp()`)
	if got := state(); got != core.PullClosed {
		t.Errorf("after GitHub has said that it changed: %s", got)
	}
	// A GitHub that does not answer keeps nobody from the page.
	b.github.Fail(githubtest.Fault{Pattern: "GET /api/v3/repos/{owner}/{repo}/pulls/{number}", Status: http.StatusBadGateway})
	storetest.Exec(t, b.store, `UPDATE pull_requests SET stale_at = clock_timestamp()`)
	if got := state(); got != core.PullClosed {
		t.Errorf("without an answer: %s", got)
	}
}
