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

func TestBranches_FirstOnesAndThoseOfAPrefix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	if err := w.server.AddBranches(t.Context(), "octo-org/widgets", "main", many(250)...); err != nil {
		t.Fatal(err)
	}
	u, token := w.user(), w.signIn(t, "octo-reader")
	first, more, err := u.Branches(t.Context(), token, w.repo, github.BranchesShown)
	if err != nil || len(first) != 100 || !more || first[0].Name != "branch-0000" || first[0].SHA != w.base {
		t.Errorf("first page: %d branches, more %v, %v", len(first), more, err)
	}
	all, more, err := u.Branches(t.Context(), token, w.repo, github.BranchesScanned)
	if err != nil || len(all) != 251 || more || all[250].Name != "main" || !all[250].Protected {
		t.Errorf("whole: %d branches, more %v, %v", len(all), more, err)
	}
	for prefix, want := range map[string]int{"branch-02": 50, "branch-0249": 1, "Branch": 0, "main": 1, "../../../user": 0, "a//b": 0, "": 0} {
		got, err := u.BranchesNamed(t.Context(), token, w.repo, prefix)
		if err != nil || len(got) != want {
			t.Errorf("BranchesNamed(%q) = %d branches, %v, want %d", prefix, len(got), err, want)
		}
	}
}

// many are n names of branches.
func many(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("branch-%04d", i))
	}
	return names
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
	if got, more, err := u.Branches(t.Context(), token, empty, 10); err != nil || len(got) != 0 || more {
		t.Errorf("Branches = %+v, %v; want none", got, err)
	}
}
