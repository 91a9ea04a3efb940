package github_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

func TestBranches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	for _, name := range []string{"alpha", "feature/one", "feature/two", "zeta-Feature"} {
		if _, err := w.server.Commit(t.Context(), "octo-org/widgets", githubtest.Commit{Branch: name, Message: "On " + name, Files: map[string]githubtest.File{"x": githubtest.Text(name)}}); err != nil {
			t.Fatal(err)
		}
	}
	u, token := w.user(), w.signIn(t, "octo-reader")
	tests := []struct {
		query string
		limit int
		want  []string
	}{
		{"", 10, []string{"main", "alpha", "feature/one", "feature/two", "zeta-Feature"}},
		{"", 2, []string{"main", "alpha"}},
		{"feature", 10, []string{"feature/one", "feature/two", "zeta-Feature"}},
		{"MAI", 10, []string{"main"}},
		{"nothing", 10, nil},
		{"../../../user", 10, nil},
	}
	for _, tt := range tests {
		got, err := u.Branches(t.Context(), token, w.repo, tt.query, tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, b := range got {
			names = append(names, b.Name)
		}
		if diff := cmp.Diff(tt.want, names); diff != "" {
			t.Errorf("Branches(%q, %d) (-want +got):\n%s", tt.query, tt.limit, diff)
		}
	}
}

func TestBranches_FindsOneBehindTheScannedPagesByItsPrefix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	var many []githubtest.Commit
	for i := range 1050 {
		many = append(many, githubtest.Commit{Branch: fmt.Sprintf("branch-%04d", i), Message: "x", Files: map[string]githubtest.File{"x": githubtest.Text("x")}})
	}
	many = append(many, githubtest.Commit{Branch: "zz-last", Message: "x", Files: map[string]githubtest.File{"x": githubtest.Text("x")}})
	if _, err := w.server.Commit(t.Context(), "octo-org/widgets", many...); err != nil {
		t.Fatal(err)
	}
	u, token := w.user(), w.signIn(t, "octo-reader")
	got, err := u.Branches(t.Context(), token, w.repo, "zz", 10)
	if err != nil || len(got) != 1 || got[0].Name != "zz-last" {
		t.Errorf("Branches = %+v, %v", got, err)
	}
	if got, err = u.Branches(t.Context(), token, w.repo, "", 10); err != nil || len(got) != 10 || got[0].Name != "main" {
		t.Errorf("default branch is not first: %+v, %v", got, err)
	}
}

func TestBranch_ResolvesCommitAndSubject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	date := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	sha, err := w.server.Commit(t.Context(), "octo-org/widgets", githubtest.Commit{
		Branch: "feature/ü#1%2f", Message: "Subject line\n\nBody", Date: date, Files: map[string]githubtest.File{"a\nb": githubtest.Text("odd name")},
	})
	if err != nil {
		t.Fatal(err)
	}
	u, token := w.user(), w.signIn(t, "octo-reader")
	got, err := u.Branch(t.Context(), token, w.repo, "feature/ü#1%2f")
	if err != nil {
		t.Fatal(err)
	}
	want := core.Branch{Name: "feature/ü#1%2f", SHA: sha, Subject: "Subject line", CommittedAt: date}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Branch (-want +got):\n%s", diff)
	}
	for _, name := range []string{"", "feature", "main/x", "../../../branches", "a/../main", "refs/heads/main"} {
		_, err := u.Branch(t.Context(), token, w.repo, name)
		wantCode(t, err, core.NotFound, "not_found")
	}
	w.server.Fail(githubtest.Fault{
		Pattern: "GET /api/v3/repos/{owner}/{repo}/git/ref/heads/main-2", Status: 200,
		Body: `{"ref":"refs/heads/main","object":{"type":"commit","sha":"` + w.base + `"}}`,
	})
	_, err = u.Branch(t.Context(), token, w.repo, "main-2")
	wantCode(t, err, core.NotFound, "not_found")
}

func TestBranch_EmptyRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	empty := w.addRepository(t, "empty", true)
	u, token := w.user(), w.signIn(t, "octo-owner")
	_, err := u.Branch(t.Context(), token, empty, "main")
	wantCode(t, err, core.Conflict, github.CodeEmptyRepository)
	if got, err := u.Branches(t.Context(), token, empty, "", 10); err != nil || len(got) != 0 {
		t.Errorf("Branches = %+v, %v; want none", got, err)
	}
}
