package github_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

const createRoute = "POST /api/v3/repos/{owner}/{repo}/pulls"

func textFor(branch string) core.PullRequestText {
	return core.PullRequestText{Title: "Title", Body: "Body", Head: branch, Base: "main"}
}

func TestPullRequest_WholeLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	ctx, token := t.Context(), w.mint(t, core.TokenPublish)
	w.pushBranch(t, token, "agent/a")
	second := w.pushBranch(t, token, "agent/b")
	for _, branch := range []string{"agent/a", "agent/b"} {
		if _, err := w.app.OpenPullRequest(ctx, token, w.repo, textFor(branch)); err != nil {
			t.Fatal(err)
		}
	}
	state := func() core.PullRequest {
		t.Helper()
		found, err := w.app.FindPullRequests(ctx, token, w.repo, "agent/b")
		if err != nil || len(found) != 1 {
			t.Fatalf("found %+v, %v; want the one of agent/b", found, err)
		}
		return found[0]
	}
	if pr := state(); pr.Number != 2 || pr.State != "open" || pr.HeadSHA != second || pr.Title != "Title" || pr.Body != "Body" {
		t.Errorf("after opening: %+v", pr)
	}

	updated, err := w.app.UpdatePullRequest(ctx, token, w.repo, 2, core.PullRequestText{Title: "Better"})
	if err != nil || updated.Title != "Better" || updated.Body != "Body" {
		t.Errorf("after an update of the title: %+v, %v", updated, err)
	}
	moved, err := w.server.Commit(ctx, "octo-org/widgets", githubtest.Commit{Branch: "agent/b", Message: "By somebody else", Files: map[string]githubtest.File{"y": githubtest.Text("y")}})
	if err != nil {
		t.Fatal(err)
	}
	if pr := state(); pr.HeadSHA != moved {
		t.Errorf("head %s, want %s of the second push", pr.HeadSHA, moved)
	}
	if _, err := w.server.MergePullRequest(ctx, "octo-org/widgets", 2); err != nil {
		t.Fatal(err)
	}
	if pr := state(); pr.State != "merged" {
		t.Errorf("after the merge: %s", pr.State)
	}
	if err := w.server.ClosePullRequest("octo-org/widgets", 1); err != nil {
		t.Fatal(err)
	}
	found, err := w.app.FindPullRequests(ctx, token, w.repo, "agent/a")
	if err != nil || len(found) != 1 || found[0].State != "closed" {
		t.Errorf("after closing: %+v, %v", found, err)
	}
}

func TestFindPullRequests_NewestFirstAndOnlyThatHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	ctx, token := t.Context(), w.mint(t, core.TokenPublish)
	w.pushBranch(t, token, "agent/a")
	w.pushBranch(t, token, "agent/a-longer")
	for range 2 {
		pr, err := w.app.OpenPullRequest(ctx, token, w.repo, textFor("agent/a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.server.ClosePullRequest("octo-org/widgets", pr.Number); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.app.OpenPullRequest(ctx, token, w.repo, textFor("agent/a-longer")); err != nil {
		t.Fatal(err)
	}
	found, err := w.app.FindPullRequests(ctx, token, w.repo, "agent/a")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int
	for _, pr := range found {
		numbers = append(numbers, pr.Number)
	}
	if diff := cmp.Diff([]int{2, 1}, numbers); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
}

func TestPullRequests_FollowARenamedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	w.pushBranch(t, token, "agent/a")
	if err := w.server.RenameRepository("octo-org/widgets", "gizmos"); err != nil {
		t.Fatal(err)
	}
	pr, err := w.app.OpenPullRequest(t.Context(), token, w.repo, textFor("agent/a"))
	if err != nil || pr.URL != w.url+"/octo-org/gizmos/pull/1" {
		t.Fatalf("opened %+v, %v", pr, err)
	}
	if pr, err = w.app.UpdatePullRequest(t.Context(), token, w.repo, 1, core.PullRequestText{Body: "More"}); err != nil || pr.Body != "More" {
		t.Errorf("updated %+v, %v", pr, err)
	}
	if found, err := w.app.FindPullRequests(t.Context(), token, w.repo, "agent/a"); err != nil || len(found) != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestOpenPullRequest_AdoptsTheOpenOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	w.pushBranch(t, token, "agent/a")
	first, err := w.app.OpenPullRequest(t.Context(), token, w.repo, textFor("agent/a"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.app.OpenPullRequest(t.Context(), token, w.repo, textFor("agent/a"))
	if err != nil || again.Number != first.Number {
		t.Errorf("a second opening gave %+v, %v; want number %d", again, err, first.Number)
	}
	if all, err := w.server.PullRequests(t.Context(), "octo-org/widgets"); err != nil || len(all) != 1 {
		t.Errorf("there are %d pull requests, %v", len(all), err)
	}
}

func TestOpenPullRequest_Refusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	w.pushBranch(t, token, "agent/a")
	if _, err := w.server.Commit(t.Context(), "octo-org/widgets", githubtest.Commit{Branch: "base-ahead", Message: "x", Files: map[string]githubtest.File{"x": githubtest.Text("x")}}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		text core.PullRequestText
		kind core.Kind
		code string
	}{
		{"nothing new", core.PullRequestText{Title: "t", Head: "main", Base: "base-ahead"}, core.Conflict, github.CodeNothingToPublish},
		{"no base", core.PullRequestText{Title: "t", Head: "agent/a", Base: "gone"}, core.Conflict, core.CodeBaseMissing},
		{"no title", core.PullRequestText{Head: "agent/a", Base: "main"}, core.Invalid, github.CodeRejected},
		{"body too long", core.PullRequestText{Title: "t", Body: strings.Repeat("x", 65537), Head: "agent/a", Base: "main"}, core.Invalid, github.CodeBodyTooLong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.app.OpenPullRequest(t.Context(), token, w.repo, tt.text)
			wantCode(t, err, tt.kind, tt.code)
		})
	}
}

func TestPullRequest_IsReopenedWhileNothingMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	w.pushBranch(t, token, "agent/a")
	pr, err := w.app.OpenPullRequest(t.Context(), token, w.repo, textFor("agent/a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, move := range []func(){
		func() {},
		func() {
			if _, err := w.server.Commit(t.Context(), "octo-org/widgets", githubtest.Commit{Branch: "agent/a", Message: "x", Files: map[string]githubtest.File{"x": githubtest.Text("x")}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if err := w.server.ClosePullRequest("octo-org/widgets", pr.Number); err != nil {
			t.Fatal(err)
		}
		move()
		pr, err = w.app.ReopenPullRequest(t.Context(), token, w.repo, 1)
		if err == nil && pr.State != "open" {
			t.Errorf("reopened: %+v", pr)
		}
	}
	wantCode(t, err, core.Conflict, core.CodeReopenRefused)
}

func TestPullRequest_GoesIntoAnotherBaseAndSaysHowFarThatIsAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	head := w.pushBranch(t, token, "agent/a")
	text := textFor("agent/a")
	text.Draft = true
	pr, err := w.app.OpenPullRequest(t.Context(), token, w.repo, text)
	if err != nil || !pr.Draft || pr.Base != "main" {
		t.Fatalf("opened %+v, %v", pr, err)
	}
	for _, message := range []string{"One", "Two"} {
		if _, err := w.server.Commit(t.Context(), "octo-org/widgets", githubtest.Commit{Branch: "release/1.x", Message: message, Files: map[string]githubtest.File{message: githubtest.Text("x")}}); err != nil {
			t.Fatal(err)
		}
	}
	for branch, want := range map[string]int{"main": 0, "release/1.x": 2} {
		if n, err := w.app.Behind(t.Context(), token, w.repo, branch, head); err != nil || n != want {
			t.Errorf("behind %s by %d, %v; want %d", branch, n, err, want)
		}
	}
	if pr, err = w.app.UpdatePullRequest(t.Context(), token, w.repo, 1, core.PullRequestText{Base: "release/1.x"}); err != nil || pr.Base != "release/1.x" {
		t.Errorf("base %s, %v", pr.Base, err)
	}
	_, err = w.app.UpdatePullRequest(t.Context(), token, w.repo, 1, core.PullRequestText{Base: "gone"})
	wantCode(t, err, core.Conflict, core.CodeBaseMissing)
	_, err = w.app.UpdatePullRequest(t.Context(), token, w.repo, 1, core.PullRequestText{Body: strings.Repeat("x", 65537)})
	wantCode(t, err, core.Invalid, github.CodeBodyTooLong)
}

func TestOpenPullRequest_WaitsForABranchThatGitHubDoesNotShowYet(t *testing.T) {
	t.Parallel()
	invisible := githubtest.Fault{
		Pattern: createRoute, Status: http.StatusUnprocessableEntity, Count: 2,
		Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"head","code":"invalid"}]}`,
	}
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	w.pushBranch(t, token, "agent/a")
	var waited []time.Duration
	w.app.SetWait(func(_ context.Context, d time.Duration) error {
		waited = append(waited, d)
		return nil
	})
	w.server.Fail(invisible)
	if _, err := w.app.OpenPullRequest(t.Context(), token, w.repo, textFor("agent/a")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{time.Second, 3 * time.Second}, waited); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}

	waited = nil
	_, err := w.app.OpenPullRequest(t.Context(), token, w.repo, textFor("agent/never"))
	wantCode(t, err, core.Unavailable, github.CodeBranchNotVisible)
	if len(waited) != 3 {
		t.Errorf("waited %d times, want 3", len(waited))
	}

	stop := errors.New("stopped")
	w.app.SetWait(func(context.Context, time.Duration) error { return stop })
	if _, err := w.app.OpenPullRequest(t.Context(), token, w.repo, textFor("agent/never")); !errors.Is(err, stop) {
		t.Errorf("error %v, want that of the interrupted wait", err)
	}
}

func TestOpenPullRequest_DraftWhereTheyAreNotSupported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	w.pushBranch(t, token, "agent/a")
	w.server.Fail(githubtest.Fault{
		Pattern: createRoute, Status: http.StatusUnprocessableEntity, Count: 1,
		Body: `{"message":"Draft pull requests are not supported in this repository."}`,
	})
	text := textFor("agent/a")
	text.Draft = true
	if _, err := w.app.OpenPullRequest(t.Context(), token, w.repo, text); err != nil {
		t.Fatal(err)
	}
	all, err := w.server.PullRequests(t.Context(), "octo-org/widgets")
	if err != nil || len(all) != 1 || all[0].Draft {
		t.Errorf("pull requests %+v, %v; want one that is no draft", all, err)
	}
}

func TestPullRequests_AnswersAboutSomethingElseAreNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	w.pushBranch(t, token, "agent/a")
	const sha = "0123456789012345678901234567890123456789"
	pull := func(number int64, url, ref string, repo int64) string {
		side := `{"ref":"` + ref + `","sha":"` + sha + `","repo":{"id":` + itoa(repo) + `}}`
		return `{"number":` + itoa(number) + `,"state":"open","html_url":"` + url + `","head":` + side + `,"base":` + side + `}`
	}
	id := int64(w.repo.ID)
	for name, body := range map[string]string{
		"another repository": pull(1, w.url+"/octo-org/widgets/pull/1", "agent/a", id+1),
		"another branch":     pull(1, w.url+"/octo-org/widgets/pull/1", "agent/b", id),
		"no number":          pull(0, w.url+"/octo-org/widgets/pull/1", "agent/a", id),
		"another site":       pull(1, "javascript:alert(1)", "agent/a", id),
		"not JSON":           "<html>",
	} {
		w.server.ClearFaults()
		w.server.Fail(githubtest.Fault{Pattern: createRoute, Status: http.StatusCreated, Body: body})
		_, err := w.app.OpenPullRequest(t.Context(), token, w.repo, textFor("agent/a"))
		if core.CodeOf(err) != github.CodeUnavailable {
			t.Errorf("%s: error %v", name, err)
		}
	}
	w.server.ClearFaults()
	w.server.Fail(githubtest.Fault{Pattern: "GET /api/v3/repos/{owner}/{repo}/pulls", Status: 200, Body: "[" + pull(9, w.url+"/x", "main", id) + "]"})
	if found, err := w.app.FindPullRequests(t.Context(), token, w.repo, "agent/a"); err != nil || len(found) != 0 {
		t.Errorf("found %+v, %v; want nothing", found, err)
	}
}
