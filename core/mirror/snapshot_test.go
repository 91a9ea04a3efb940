package mirror_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/mirror/mirrortest"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, ws *mirrortest.Workspace, files map[string]string) {
	t.Helper()
	for name := range files {
		_ = os.Remove(filepath.Join(ws.Dir, strings.TrimSuffix(name, "*")))
	}
	mirrortest.WriteFiles(t, ws.Dir, files)
}

func TestCapture_ShowsEveryKindOfChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lines := strings.Repeat("line\n", 50)
	b.session.BaseSHA = b.server.Commit(t, b.repo, "main", map[string]string{
		"edit.go": "a\nb\nc\n", "gone.txt": "x\n", "moved.txt": lines, "mode.sh": "#!/bin/sh\n", "type": "file\n", "pic": "\x00\x01",
	})
	ws, _ := b.checkout(t, b.session)
	for _, name := range []string{"gone.txt", "moved.txt"} {
		if err := os.Remove(filepath.Join(ws.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	odd := "new \"quoted\"\nname\t.txt"
	write(t, ws, map[string]string{
		"edit.go": "a\nB\nc\nd\n", "dir/moved.txt": lines + "more\n", "mode.sh*": "#!/bin/sh\n", "type": "->edit.go",
		"pic": "\x00\x02\x03", odd: "1\n", "grün.txt": "2\n", "bad\xff.txt": "3\n",
	})
	got, err := b.mirror.Capture(t.Context(), b.session, ws)
	if err != nil {
		t.Fatal(err)
	}
	want := []core.ChangedFile{
		{Path: "bad\uFFFD.txt", Status: "added", NewMode: "100644", Additions: 1},
		{Path: "dir/moved.txt", OldPath: "moved.txt", Status: "renamed", OldMode: "100644", NewMode: "100644", Additions: 1},
		{Path: "edit.go", Status: "modified", OldMode: "100644", NewMode: "100644", Additions: 2, Deletions: 1},
		{Path: "gone.txt", Status: "deleted", OldMode: "100644", Deletions: 1},
		{Path: "grün.txt", Status: "added", NewMode: "100644", Additions: 1},
		{Path: "mode.sh", Status: "mode", OldMode: "100644", NewMode: "100755"},
		{Path: odd, Status: "added", NewMode: "100644", Additions: 1},
		{Path: "pic", Status: "modified", OldMode: "100644", NewMode: "100644", Binary: true},
		{Path: "type", Status: "type", OldMode: "100644", NewMode: "120000", Additions: 1, Deletions: 1},
	}
	byPath := cmp.Transformer("byPath", func(in []core.ChangedFile) map[string]core.ChangedFile {
		out := map[string]core.ChangedFile{}
		for _, f := range in {
			out[f.Path] = f
		}
		return out
	})
	if diff := cmp.Diff(want, got.Files, byPath); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, text := range []string{"+B\n", "rename from moved.txt\nrename to dir/moved.txt\n", "old mode 100644\nnew mode 100755\n", "Binary files a/pic and b/pic differ", "grün.txt", `new \"quoted\"\nname\t.txt`} {
		if !bytes.Contains(got.Patch, []byte(text)) {
			t.Errorf("patch lacks %q", text)
		}
	}
	if got.BaseSHA != b.session.BaseSHA || got.Truncated {
		t.Errorf("base %s truncated %v", got.BaseSHA, got.Truncated)
	}
	left, err := os.ReadDir(filepath.Join(b.dir, "quarantine"))
	if err != nil || len(left) != 0 {
		t.Errorf("%d quarantines left, %v", len(left), err)
	}
}

func TestCapture_OfNothingIsEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws, _ := b.checkout(t, b.session)
	for _, tamper := range []func(*core.Snapshot, []byte) []byte{nil, func(*core.Snapshot, []byte) []byte { return nil }} {
		ws.Tamper = tamper
		got, err := b.mirror.Capture(t.Context(), b.session, ws)
		if err != nil || len(got.Files) != 0 || len(got.Patch) != 0 {
			t.Errorf("diff = %+v, %v", got, err)
		}
	}
}

func TestCapture_CutsThePatchOnFileBoundaries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws, _ := b.checkout(t, b.session)
	long := strings.Repeat("0123456789abcdef\n", 40_000) // 680 KB
	write(t, ws, map[string]string{"a.txt": long + long, "b.txt": "small\n", "c.txt": long, "d.txt": long, "e.txt": "last\n"})
	got, err := b.mirror.Capture(t.Context(), b.session, ws)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Truncated || len(got.Patch) > mirror.MaxPatch || len(got.Files) != 5 {
		t.Fatalf("truncated %v, %d bytes, %d files", got.Truncated, len(got.Patch), len(got.Files))
	}
	var shown []string
	for line := range strings.Lines(string(got.Patch)) {
		if _, name, ok := strings.Cut(line, "diff --git a/"); ok {
			shown = append(shown, name[:5])
		}
	}
	if diff := cmp.Diff([]string{"b.txt", "c.txt", "e.txt"}, shown); diff != "" {
		t.Errorf("files shown (-want +got):\n%s", diff)
	}
}

func TestImport_BoundsABomb(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *mirror.Options) { o.MaxPackBytes = 256 << 10 })
	ws, _ := b.checkout(t, b.session)
	if err := os.WriteFile(filepath.Join(ws.Dir, "random"), pseudoRandom(512<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := b.mirror.Import(t.Context(), b.session, ws)
	wantCode(t, err, "snapshot_rejected")
	if !strings.Contains(core.MessageOf(err), "too large") {
		t.Errorf("message = %s", core.MessageOf(err))
	}

	// A small pack whose blob is large is streamed, not held, and then shown as binary.
	b = setup(t)
	ws, _ = b.checkout(t, b.session)
	if err := os.WriteFile(filepath.Join(ws.Dir, "zeros"), make([]byte, 64<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := b.mirror.Capture(t.Context(), b.session, ws)
	if err != nil || len(got.Files) != 1 || !got.Files[0].Binary || len(got.Patch) > 1000 {
		t.Errorf("diff = %+v, %v", got.Files, err)
	}
}

func TestImport_RefusesASnapshotOfAnotherBase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws, _ := b.checkout(t, b.session)
	ws.Tamper = func(snap *core.Snapshot, pack []byte) []byte { snap.BaseSHA = strings.Repeat("12", 20); return pack }
	_, err := b.mirror.Import(t.Context(), b.session, ws)
	wantCode(t, err, "snapshot_failed")
}

func TestReadBase_ReadsOnlyRegularFilesOfTheBase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws, _ := b.checkout(t, b.session)
	write(t, ws, map[string]string{"README.md": "changed in the workspace\n"})
	for path, want := range map[string]string{"README.md": "widgets\n", "bin/run": "#!/bin/sh\n", "link": "", "bin": "", "absent": "", "bin/": "", "../x": ""} {
		got, err := b.mirror.ReadBase(t.Context(), b.session, path, 100)
		if err != nil || string(got) != want {
			t.Errorf("%s = %q, %v; want %q", path, got, err, want)
		}
	}
	got, err := b.mirror.ReadBase(t.Context(), b.session, "README.md", 3)
	if err != nil || string(got) != "wid" {
		t.Errorf("limited read = %q, %v", got, err)
	}
}

func TestFixture_IsOneCommitOfItsFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files := map[string]string{"a.txt": "a\n", "run*": "#!/bin/sh\n", "l": "->a.txt", "odd \"name\n": "x", ".git/config": "[core]\n", ".gitattributes": "* filter=evil text\n"}
	mirrortest.WriteFiles(t, filepath.Join(folder, "sample"), files)
	repo := core.Repository{ID: -3, InstallationID: core.FixtureInstallation, Owner: "fixtures", Name: "sample"}
	var heads []string
	for range 2 {
		b := setup(t, func(o *mirror.Options) { o.FixturesDir = folder })
		head, err := b.mirror.FixtureHead(t.Context(), repo)
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, head.SHA)
		ws, spec := b.checkout(t, newSession(repo, head.SHA))
		if got := mirrortest.Git(t, ws.Dir, "ls-tree", "-r", "--name-only", "-z", "HEAD"); got != ".gitattributes\x00a.txt\x00l\x00odd \"name\n\x00run\x00" || spec.BaseSHA != head.SHA {
			t.Errorf("files = %q", got)
		}
		if n := len(b.server.Minted()); n != 0 {
			t.Errorf("a fixture minted %d tokens", n)
		}
		s := newSession(repo, "")
		ws, _ = b.checkout(t, s)
		write(t, ws, map[string]string{"a.txt": "b\n"})
		if got, err := b.mirror.Capture(t.Context(), s, ws); err != nil || len(got.Files) != 1 {
			t.Errorf("diff = %+v, %v", got, err)
		}
	}
	if heads[0] == "" || heads[0] != heads[1] {
		t.Errorf("heads differ: %v", heads)
	}
	b := setup(t, func(o *mirror.Options) { o.FixturesDir = folder })
	for _, name := range []string{"", ".", "..", "../x", "absent"} {
		_, err := b.mirror.FixtureHead(t.Context(), core.Repository{ID: -4, Name: name})
		wantCode(t, err, "not_found")
	}
}

// pseudoRandom does not compress.
func pseudoRandom(n int) []byte {
	out, x := make([]byte, n), uint64(88172645463325252)
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = byte(x)
	}
	return out
}
