package publish_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/mirror/mirrortest"

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

func TestPublish_RefusesADeletedBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	w.must(t, s, ws, "Hello", "")
	if err := w.github.DeleteBranch(t.Context(), fullName, s.Branch); err != nil {
		t.Fatal(err)
	}
	write(t, ws, map[string]string{"hello.txt": "again\n"})
	_, err := w.publish(t, s, ws, "Hello", "")
	wantCode(t, err, "branch_deleted")
	if got := w.git(t, "for-each-ref", "refs/heads/agent"); got != "" {
		t.Errorf("the branch came back: %s", got)
	}
}
