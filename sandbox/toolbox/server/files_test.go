package server

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"agent-sandboxing/sandbox/toolbox/wire"
)

func newFiles(t testing.TB) (*Files, string) {
	t.Helper()
	dir := t.TempDir()
	layout := Layout{Workspace: filepath.Join(dir, "workspace"), Tmp: filepath.Join(dir, "tmp")}
	for _, d := range []string{layout.Workspace, layout.Tmp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, err := OpenFiles(layout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	return files, dir
}

// FuzzFind: whatever a path is, what it resolves to is what the kernel finds there, below its root.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"a/b/f", "a/l/f", "up", "abs", "loop", "a/../a/b/../b/f", "/tmp/x", "/workspace/repo/a", "..", "a//b/./f/", "", "a/up2/f", "/tmp/../etc"} {
		f.Add(s)
	}
	files, dir := newFiles(f)
	repo := filepath.Join(dir, "workspace/repo")
	for _, d := range []string{"a/b", "c"} {
		if err := os.MkdirAll(filepath.Join(repo, d), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(repo, "a/b/f"), nil, 0o644); err != nil {
		f.Fatal(err)
	}
	for link, target := range map[string]string{"a/l": "b", "up": "../home", "abs": "/etc", "loop": "loop", "c/d": "../a/l", "a/up2": "../c/d", "c/out": "../../../tmp"} {
		if err := os.Symlink(target, filepath.Join(repo, link)); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, err := files.find(wire.Name(name), true)
		if err != nil {
			if errorCode(err) == wire.Failed {
				t.Errorf("%q: %v", name, err)
			}
			return
		}
		defer p.close()
		base := repo
		if p.prefix == tmpName {
			base = files.layout.Tmp
		}
		ours := filepath.Join(base, p.rel)
		if ours != base && !strings.HasPrefix(ours, base+"/") {
			t.Fatalf("%q became %q", name, ours)
		}
		if p.info == nil {
			return
		}
		real, err := filepath.EvalSymlinks(ours)
		if err != nil || real != ours {
			t.Errorf("%q became %q, which is really %q, %v", name, ours, real, err)
		}
		if !filepath.IsAbs(name) && name != "" {
			// The kernel's own walk, .. behind links included.
			info, err := os.Stat(repo + "/" + name)
			if err != nil || !os.SameFile(info, p.info) {
				t.Errorf("%q became %q, the kernel says %v", name, ours, err)
			}
		}
	})
}

// FuzzRestoreEntry: no entry of an archive, in no order, touches anything outside the repository.
func FuzzRestoreEntry(f *testing.F) {
	f.Add("tree/a", "tree/b", "x", byte(tar.TypeReg), byte(tar.TypeDir))
	f.Add("tree/l", "tree/l/x", "../../outside", byte(tar.TypeSymlink), byte(tar.TypeReg))
	f.Add("tree/../x", "deleted", "../../outside/secret\x00", byte(tar.TypeReg), byte(tar.TypeReg))
	f.Add("tree/.git/config", "tree//etc", "/etc/passwd", byte(tar.TypeReg), byte(tar.TypeLink))
	f.Fuzz(func(t *testing.T, first, second, text string, kind1, kind2 byte) {
		files, dir := newFiles(t)
		outside := filepath.Join(dir, "outside")
		if err := os.MkdirAll(outside, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := files.repo()
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		r := &restorer{root: root, folderPerm: 0o755}
		for _, head := range []*tar.Header{
			{Name: first, Typeflag: kind1, Linkname: text, Mode: 0o777},
			{Name: second, Typeflag: kind2, Linkname: text, Mode: 0o777},
			{Name: first + "/" + second, Typeflag: tar.TypeReg, Mode: 0o777},
		} {
			_ = r.entry(t.Context(), head, strings.NewReader(text))
		}
		_ = r.finish()
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 3 {
			t.Errorf("%d entries beside the workspace, %v", len(left), err)
		}
		if got, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(got) != "secret" {
			t.Errorf("outside holds %q, %v", got, err)
		}
		if info, err := os.Stat(filepath.Join(outside, "secret")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "workspace/repo/.git")); err == nil {
			t.Error("the repository's own .git was written")
		}
	})
}

func TestCapture_KeepsBothEnds(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{1, 3, 7, 100} {
		for total := range 40 {
			text := strings.Repeat("0123456789", 4)[:total]
			c := newCapture(nil, wire.RunArgs{KeepHead: 5, KeepTail: 8})
			for rest := text; rest != ""; {
				n := min(chunk, len(rest))
				if _, err := c.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			var got wire.RunResult
			c.fill(&got)
			head := text[:min(5, total)]
			tail := text[len(head):]
			tail = tail[max(0, len(tail)-8):]
			if string(got.Head) != head || string(got.Tail) != tail || got.Total != int64(total) {
				t.Errorf("%d bytes in chunks of %d: %q, %q, total %d", total, chunk, got.Head, got.Tail, got.Total)
			}
		}
	}
}

// A file that nobody could publish or keep is not read, however long that would take.
func TestHashLeaf_LeavesHugeFilesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, size := range map[string]int64{"huge": 50 << 30, "empty": 0} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]string{"huge": "", "empty": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"} {
		if l, ok, err := hashLeaf(t.Context(), root, name, &hashes{}); err != nil || !ok || l.hash != want {
			t.Errorf("%s: %+v, %t, %v", name, l, ok, err)
		}
	}
}

func TestTree_IsEmptyWithoutLeaves(t *testing.T) {
	t.Parallel()
	o := &objects{known: map[string]bool{}}
	if got := o.collect(nil); got != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
		t.Errorf("tree %s", got)
	}
	var pack bytes.Buffer
	if err := o.write(t.Context(), nil, &pack); err != nil || pack.Len() == 0 {
		t.Errorf("%d bytes, %v", pack.Len(), err)
	}
}

// Of a line of any length the match is shown, within a bound, and its place is told.
func FuzzCutLine(f *testing.F) {
	f.Add("short", 2)
	f.Add(strings.Repeat("a", 900)+"NEEDLE"+strings.Repeat("b", 900), 900)
	f.Add(strings.Repeat("错", 700)+"x", 2100)
	f.Add(strings.Repeat("\xff\xe9", 700), 1399)
	f.Fuzz(func(t *testing.T, line string, match int) {
		match = min(max(match, 0), len(line))
		got := cutLine(7, []byte(line), match)
		text := strings.TrimSuffix(strings.TrimPrefix(string(got.Text), "…"), "…")
		if utf8.RuneCount(got.Text) > maxLineRunes+2 || got.Number != 7 {
			t.Errorf("%d characters of line %d", utf8.RuneCount(got.Text), got.Number)
		}
		if got.Length == 0 {
			if string(got.Text) != line {
				t.Errorf("%q became %q", line, got.Text)
			}
			return
		}
		// What follows the match, as far as it can be shown, is in the text.
		piece := line[match:min(len(line), match+30)]
		if !strings.Contains(line, text) || !strings.Contains(string(got.Text), piece) {
			t.Errorf("%q of %q does not show %q", got.Text, line, piece)
		}
		if got.Length != utf8.RuneCountInString(line) || got.Column != utf8.RuneCountInString(line[:match])+1 {
			t.Errorf("length %d, column %d", got.Length, got.Column)
		}
	})
}
