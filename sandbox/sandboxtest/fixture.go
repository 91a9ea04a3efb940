package sandboxtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// fixture is a repository on the host, from which checkouts are made and to which snapshots go back.
type fixture struct {
	dir  string
	base string
}

// strange are base files with names that break what treats names as text.
const (
	newlineName = "odd/new\nline.txt"
	latin1Name  = "odd/caf\xe9.txt"
)

// newFixture makes a repository of two commits with every kind of entry that a tree has.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir()}
	f.git(t, "init", "-q", "-b", "main")
	f.put(t, map[string]string{"README.md": "# First\n"})
	f.commit(t)
	f.put(t, map[string]string{
		"README.md":      "# Second\n",
		"src/main.go":    "package main\n",
		"src/empty":      "",
		"src/deep/a.txt": "a\n",
		"bin/run.sh":     "#!/bin/sh\necho run\n",
		"data.bin":       "\x00\x01\xff",
		"crlf.txt":       "one\r\ntwo\r\n",
		"lf.bat":         "echo\n",
		".gitattributes": "*.txt text=auto\n*.bat text eol=crlf\n*.go ident\n",
		"ident.go":       "// $Id$\n",
		".gitignore":     "*.log\n/dist/\n",
		"dist/kept.js":   "tracked\n",
		"dist/z/kept.js": "tracked\n",
		newlineName:      "newline\n",
		latin1Name:       "latin1\n",
	})
	for link, target := range map[string]string{"link": "src/main.go", "absolute": "/etc/passwd", "folder": "src", "gone": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(f.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(f.dir, "bin/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.base = f.commit(t)
	return f
}

// put writes files into the fixture's work tree.
func (f *fixture) put(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(f.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// commit records everything, bytes as they are, and returns the commit.
func (f *fixture) commit(t *testing.T) string {
	t.Helper()
	f.tree(t)
	f.git(t, "commit", "-q", "--no-verify", "-m", "commit")
	return f.git(t, "rev-parse", "HEAD")
}

// tree stages everything as raw bytes, ignored files only when they are tracked, and returns the tree.
func (f *fixture) tree(t *testing.T) string {
	t.Helper()
	info := filepath.Join(f.dir, ".git/info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(info, "attributes"), []byte("* -text -ident -filter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.git(t, "add", "-A")
	if f.base == "" {
		if _, err := os.Stat(filepath.Join(f.dir, "dist")); err == nil {
			f.git(t, "add", "-f", "dist")
		}
	}
	return f.git(t, "write-tree")
}

// git runs git in the fixture and returns its output without the last newline.
func (f *fixture) git(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSuffix(string(f.gitIn(t, nil, args...)), "\n")
}

func (f *fixture) gitIn(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com")
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// pack is the checkout of the fixture's base, with everything that it needs.
func (f *fixture) pack(t *testing.T) (core.Checkout, []byte) {
	t.Helper()
	data, index := Pack(t, f.dir, f.base)
	return f.spec(index), data
}

// shallow is the same without the commits before it.
func (f *fixture) shallow(t *testing.T) (core.Checkout, []byte) {
	t.Helper()
	objects := f.git(t, "rev-list", "--objects", "--no-object-names", f.base+"^{tree}")
	data, index := packed(t, f.dir, f.base+"\n"+objects+"\n")
	spec := f.spec(index)
	spec.Shallow = []string{f.base}
	return spec, data
}

// fixtureBranch is the session's branch in a checkout of the fixture.
const fixtureBranch = "agent/0190-test"

func (f *fixture) spec(index int64) core.Checkout {
	return core.Checkout{BaseSHA: f.base, Branch: fixtureBranch, BaseRef: "main", RemoteURL: `https://example.com/o/r"\.git`, IndexBytes: index}
}

// checkout makes the fixture's base the workspace's repository.
func (ws box) checkout(t *testing.T, f *fixture) {
	t.Helper()
	spec, pack := f.pack(t)
	if err := ws.Checkout(t.Context(), spec, bytes.NewReader(pack)); err != nil {
		t.Fatalf("checkout: %v", err)
	}
}

// snapshot takes a snapshot, gives its objects to the fixture's repository, and returns it.
func (ws box) snapshot(t *testing.T, f *fixture) core.Snapshot {
	t.Helper()
	var pack bytes.Buffer
	snap, err := ws.Snapshot(t.Context(), &pack)
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	f.gitIn(t, pack.Bytes(), "index-pack", "--stdin", "--strict", "--fix-thin")
	if snap.BaseSHA != f.base {
		t.Errorf("snapshot of base %s, want %s", snap.BaseSHA, f.base)
	}
	f.git(t, "rev-list", "--objects", snap.TreeSHA) // every object is there
	return snap
}

// files lists a tree as mode, hash and path.
func (f *fixture) files(t *testing.T, tree string) []string {
	t.Helper()
	return strings.Split(f.git(t, "ls-tree", "-r", tree), "\n")
}
