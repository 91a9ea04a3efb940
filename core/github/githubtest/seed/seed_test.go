package seed

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core/github/githubtest"
)

func seeded(t *testing.T, dir string) *githubtest.Server {
	t.Helper()
	s, err := githubtest.New(githubtest.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func heads(t *testing.T, s *githubtest.Server) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, ref := range [][2]string{
		{"lantern-works/mdlinks", "main"},
		{"lantern-works/mdlinks", "ignore-flag"},
		{"lantern-works/shelf-label", "main"},
		{"lantern-works/shelf-label", "more-currencies"},
		{"lantern-works/stockroom", "main"},
		{"lantern-works/stockroom", "duplicate-skus"},
		{"lantern-works/runbooks", "main"},
		{"lantern-works/old-site", "main"},
		{"demo-owner/reading-notes", "main"},
	} {
		sha, err := s.Head(t.Context(), ref[0], ref[1])
		if err != nil {
			t.Fatalf("%s %s: %v", ref[0], ref[1], err)
		}
		all[ref[0]+" "+ref[1]] = sha
	}
	return all
}

func TestApply_GivesTheSameCommitsEverywhere(t *testing.T) {
	t.Parallel()
	first, second := seeded(t, t.TempDir()), seeded(t, t.TempDir())
	if diff := cmp.Diff(heads(t, first), heads(t, second)); diff != "" {
		t.Errorf("two seeds differ (-first +second):\n%s", diff)
	}
}

func TestApply_AgainChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := heads(t, seeded(t, dir))
	state, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	after := heads(t, seeded(t, dir))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("seeding again moved branches (-before +after):\n%s", diff)
	}
	again, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(state), string(again)); diff != "" {
		t.Errorf("seeding again changed the state (-before +after):\n%s", diff)
	}
}

// The Go program of the seed builds and passes its own tests; what an agent improves has to work first.
func TestApply_GoRepositoryPassesItsTests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	commits, err := history("mdlinks")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commits {
		for name, f := range c.Files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, args := range [][]string{{"go", "vet", "./..."}, {"go", "test", "-p", "1", "./..."}} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
