package publish_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/mirror/mirrortest"
	"agent-sandboxing/core/publish"

	"github.com/google/go-cmp/cmp"
)

func TestPublishSet_LeavesOutWhatDoesNotBelong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.github.Commit(t.Context(), fullName, githubtest.Commit{Message: "More", Files: map[string]githubtest.File{
		"logo.png": {Data: []byte("\x00\x01old")}, "big.txt": githubtest.Text(strings.Repeat("x\n", 1<<20)), "old.bin": {Data: []byte(strings.Repeat("\x00\x01binary", 100))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.base = w.git(t, "rev-parse", "main")
	s, ws := w.session(t, map[string]string{
		// on: changed files whatever they are, and new text files
		".env": "A=2\n", "logo.png": "\x00\x01new", "big.txt": strings.Repeat("y\n", 1<<20), "src/new.go": "package src\n", "run.sh*": "#!/bin/sh\n",
		"link": "->src/new.go", "sub/up": "->../main.go", ".env.example": "A=\n", "package-lock.json": "{}\n", "empty": "",
		// off, each by its rule
		"new.bin": "\x00\x01", "huge.txt": strings.Repeat("z\n", 1<<20), "deploy/id_rsa": "x\n", ".env.local": "A=3\n", "notes.txt": "-----BEGIN RSA PRIVATE KEY-----\nx\n",
		"node_modules/a/index.js": "x\n", "app.min.js": "x\n", "abs": "->/etc/passwd", "out": "->../outside", "odd\nname": "x\n",
	})
	if err := os.Rename(filepath.Join(ws.Dir, "old.bin"), filepath.Join(ws.Dir, "moved.bin")); err != nil {
		t.Fatal(err)
	}
	result := w.must(t, s, ws, "Everything", "")
	want := []string{
		`"odd\nname": name with control characters`, ".env.local: may hold secrets", "abs: link out of the repository", "app.min.js: generated",
		"deploy/id_rsa: may hold secrets", "huge.txt: larger than 1 MiB", "new.bin: new binary file", "node_modules/a/index.js: generated",
		"notes.txt: may hold secrets", "out: link out of the repository",
	}
	slices.Sort(result.LeftOut)
	slices.Sort(want)
	if diff := cmp.Diff(want, result.LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	got := strings.Split(w.git(t, "diff-tree", "-r", "--name-only", w.base, s.Branch), "\n")
	wantPaths := []string{".env", ".env.example", "big.txt", "empty", "link", "logo.png", "moved.bin", "old.bin", "package-lock.json", "run.sh", "src/new.go", "sub/up"}
	if diff := cmp.Diff(wantPaths, got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if body := w.pulls(t, s)[0].Body; !strings.Contains(body, "`new.bin: new binary file`") {
		t.Errorf("the body does not name what was left out:\n%s", body)
	}
	row, err := w.store.LastPublished(t.Context(), s.ID)
	if err != nil || len(row.LeftOut) != len(want) {
		t.Errorf("row = %+v, %v", row, err)
	}
	if _, err := os.Stat(filepath.Join(ws.Dir, "new.bin")); err != nil {
		t.Error("a file that was left out is gone from the workspace")
	}
}

func TestPublishSet_RefusesSubmoduleChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	inner := filepath.Join(ws.Dir, "vendored")
	mirrortest.Git(t, "", "init", "-q", inner)
	mirrortest.WriteFiles(t, inner, map[string]string{"a": "a\n"})
	mirrortest.Git(t, inner, "add", "a")
	mirrortest.Git(t, inner, "commit", "-q", "-m", "inner")
	_, err := w.publish(t, s, ws, "Nested", "")
	wantCode(t, err, "submodule_change_refused")
}

func TestPublishSet_FollowsWhatAPersonChose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n", "logo.bin": "\x00\x01", "other.bin": "\x00\x02", "main.go": "package other\n"})
	if err := os.Remove(filepath.Join(ws.Dir, "README.md")); err != nil {
		t.Fatal(err)
	}
	wantSet := func(result core.PublishResult, published string, leftOut ...string) {
		t.Helper()
		slices.Sort(result.LeftOut)
		if diff := cmp.Diff(leftOut, result.LeftOut); diff != "" {
			t.Errorf("left out (-want +got):\n%s", diff)
		}
		if got := strings.ReplaceAll(w.git(t, "diff-tree", "-r", "--name-status", w.base, s.Branch), "\n", " "); got != published {
			t.Errorf("published %q, want %q", got, published)
		}
	}
	w.askFor(t, s, core.Publication{Title: "Hello"}, core.PathChoices{"logo.bin": true, "main.go": false, "README.md": false})
	first, err := w.serve(t, w.options, s, ws)
	if err != nil {
		t.Fatal(err)
	}
	wantSet(first, "A\thello.txt A\tlogo.bin", "README.md: left out by a person", "main.go: left out by a person", "other.bin: new binary file")
	if body := w.pulls(t, s)[0].Body; !strings.Contains(body, "`main.go: left out by a person`") {
		t.Errorf("body:\n%s", body)
	}
	// The agent's own publish chooses nothing: what people chose stays.
	write(t, ws, map[string]string{"hello.txt": "hello again\n"})
	w.byAgent(t, s, ws, "Hello", "")
	if got := w.git(t, "diff-tree", "-r", "--name-status", w.base, s.Branch); got != "A\thello.txt\nA\tlogo.bin" {
		t.Errorf("by the agent: %q", got)
	}
	// What is unticked goes, also where the App had another address when it was published.
	moved := w.options
	moved.Bot = func() publish.Identity {
		return publish.Identity{Name: "agent[bot]", Email: "agent[bot]@users.noreply.github.com"}
	}
	w.askFor(t, s, core.Publication{Title: "Hello"}, core.PathChoices{})
	last, err := w.serve(t, moved, s, ws)
	if err != nil {
		t.Fatal(err)
	}
	wantSet(last, "D\tREADME.md A\thello.txt M\tmain.go", "logo.bin: new binary file", "other.bin: new binary file")
}

func TestMarked_SaysInTheDiffWhatARuleKeepsOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n", "logo.bin": "\x00\x01", "huge.txt": strings.Repeat("z\n", 1<<20), "key.pem": "x\n", "out": "->/etc/passwd"})
	diff, err := publish.Marked{Mirror: w.mirror}.Capture(t.Context(), s, ws)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range diff.Files {
		got[f.Path] = f.Rule
	}
	want := map[string]string{"hello.txt": "", "logo.bin": "new binary file", "huge.txt": "larger than 1 MiB", "key.pem": "may hold secrets", "out": "link out of the repository"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
