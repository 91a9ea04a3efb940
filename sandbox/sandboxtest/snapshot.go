package sandboxtest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func snapshotCases() []testCase {
	return []testCase{
		{name: "snapshot of an untouched checkout is the base's tree", run: snapshotClean},
		{name: "snapshot is the tree that git would make", run: snapshotTree},
		{name: "snapshot has links modes and renames", needs: real, run: snapshotModes},
		{name: "snapshot keeps ignored files only when they are tracked", run: snapshotIgnored},
		{name: "snapshot adds nested repositories as plain files", run: snapshotNested},
		{name: "snapshot needs nothing of the repository's git", run: snapshotWithoutGit},
		{name: "snapshot kills what still runs", needs: real, run: snapshotKills},
		{name: "snapshot fails rather than leave a file out", needs: real, run: snapshotUnreadable},
		{name: "snapshot needs a checkout", run: snapshotMissing},
	}
}

func snapshotClean(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	if snap := ws.snapshot(t, f); snap.TreeSHA != f.git(t, "rev-parse", f.base+"^{tree}") || snap.NestedRepositories != nil {
		t.Errorf("%+v, -base +snapshot\n%s", snap, cmp.Diff(f.files(t, f.base), f.files(t, snap.TreeSHA)))
	}
}

func snapshotTree(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	changes := map[string]string{
		"README.md": "# Third\n", "src/new.go": "package main\r\n", "src/deep/deeper/x": "", "a-b": "1", "a.b": "2", "a0": "3", "a/b": "4",
		"odd/\xff\xfe": "5", "odd/two\nlines": "6", "crlf.txt": "one\r\ntwo\r\nthree\n", "ident.go": "// $Id: x $\n", "large": string(bytes.Repeat([]byte("x\n"), 400_000)),
	}
	ws.write(t, changes)
	f.put(t, changes)
	ws.must(t, "rm -r src/deep/a.txt bin")
	for _, gone := range []string{"src/deep/a.txt", "bin"} {
		if err := os.RemoveAll(filepath.Join(f.dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	want := f.tree(t)
	if snap := ws.snapshot(t, f); snap.TreeSHA != want {
		t.Errorf("tree %s, want %s, -want +got\n%s", snap.TreeSHA, want, cmp.Diff(f.files(t, want), f.files(t, snap.TreeSHA)))
	}
}

func snapshotModes(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	change := `chmod +x src/main.go && chmod -x bin/run.sh && mv data.bin moved.bin && ln -sfn README.md link && rm folder && mkdir folder && echo x > folder/x &&
		rm -r src && ln -s bin src && printf '\xff\n' > "$(printf 'odd/\xe9')" && ln -s "$(printf 'to/\xe9')" odd-link && chmod 600 README.md && mkfifo pipe && mkdir empty`
	ws.must(t, change)
	script := "set -e\n" + change + "\nrm pipe\n"
	runIn(t, f.dir, script)
	want := f.tree(t)
	if snap := ws.snapshot(t, f); snap.TreeSHA != want {
		t.Errorf("tree %s, want %s, -want +got\n%s", snap.TreeSHA, want, cmp.Diff(f.files(t, want), f.files(t, snap.TreeSHA)))
	}
}

func snapshotIgnored(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	changes := map[string]string{
		"x.log": "ignored", "dist/new.js": "ignored", "dist/kept.js": "changed\n", "dist/z/new.js": "ignored", "dist/y/new.js": "ignored",
		"sub/.gitignore": "*\n!.gitignore\n!keep*\n", "sub/a": "ignored", "sub/keep1": "kept", "sub/d/keep2": "below an ignored folder",
		".git/info/exclude": "hidden.txt\n", "hidden.txt": "the agent's own exclude hides nothing from the platform",
	}
	ws.write(t, changes)
	delete(changes, ".git/info/exclude")
	f.put(t, changes)
	want := f.tree(t)
	if snap := ws.snapshot(t, f); snap.TreeSHA != want {
		t.Errorf("-want +got\n%s", cmp.Diff(f.files(t, want), f.files(t, snap.TreeSHA)))
	}
}

func snapshotNested(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	ws.write(t, map[string]string{
		"vendor/lib/.git/HEAD": "ref: refs/heads/main\n", "vendor/lib/.git/config": "", "vendor/lib/code.c": "int x;\n",
		"vendor/lib/inner/.git": "gitdir: ../../elsewhere\n", "vendor/lib/inner/y.c": "int y;\n",
	})
	f.put(t, map[string]string{"vendor/lib/code.c": "int x;\n", "vendor/lib/inner/y.c": "int y;\n"})
	want := f.tree(t)
	snap := ws.snapshot(t, f)
	if snap.TreeSHA != want {
		t.Errorf("-want +got\n%s", cmp.Diff(f.files(t, want), f.files(t, snap.TreeSHA)))
	}
	if diff := cmp.Diff([]string{"vendor/lib", "vendor/lib/inner"}, snap.NestedRepositories); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func snapshotWithoutGit(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	ws.must(t, "rm -rf .git && echo more > more.txt")
	f.put(t, map[string]string{"more.txt": "more\n"})
	want := f.tree(t)
	if snap := ws.snapshot(t, f); snap.TreeSHA != want {
		t.Errorf("tree %s, want %s", snap.TreeSHA, want)
	}
}

func snapshotKills(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	mark := marker()
	ws.must(t, "setsid sleep "+mark+" > /dev/null 2>&1 & true")
	ws.snapshot(t, f)
	if n := ws.alive(t, mark); n != "0" {
		t.Errorf("%s processes alive", n)
	}
}

func snapshotUnreadable(t *testing.T, ws box) {
	if ws.must(t, "id -u") == "0\n" {
		t.Log("as root everything is readable")
		return
	}
	f := newFixture(t)
	ws.checkout(t, f)
	ws.must(t, "chmod 000 README.md")
	_, err := ws.Snapshot(t.Context(), new(bytes.Buffer))
	wantCode(t, "unreadable file", err, "snapshot_failed")
	ws.must(t, "chmod 644 README.md && chmod 000 src")
	_, err = ws.Snapshot(t.Context(), new(bytes.Buffer))
	wantCode(t, "unreadable folder", err, "snapshot_failed")
}

func snapshotMissing(t *testing.T, ws box) {
	_, err := ws.Snapshot(t.Context(), new(bytes.Buffer))
	wantCode(t, "snapshot of nothing", err, "checkout_missing")
}
