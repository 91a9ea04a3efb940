package diff_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"agent-sandboxing/views/diff"
)

// facts are what the page says of a file beside its lines.
type facts struct {
	Path, Old, Status string
	Add, Del          int
	Badges            string
}

func factsOf(d diff.Document) []facts {
	var out []facts
	for _, f := range d.Files {
		var badges []string
		for _, b := range f.Badges() {
			badges = append(badges, b.Text)
		}
		out = append(out, facts{f.Path, f.OldPath, f.Status, f.Additions, f.Deletions, strings.Join(badges, ", ")})
	}
	return out
}

// TestParse_WhatGitWrites reads patches that git itself made of one change of each kind.
func TestParse_WhatGitWrites(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	long := strings.Repeat("a line that stays\n", 20)
	repo.write("edit.go", "package a\n\nfunc f() int { return 1 }\n")
	repo.write("gone.txt", "one\ntwo\n")
	repo.write("old name.txt", long)
	repo.write("tool.sh", "#!/bin/sh\n")
	repo.write("pic.bin", "\x00\x01\x02")
	repo.write("ends.txt", "a\nb\n")
	repo.write("target", "x")
	repo.commit()

	repo.write("edit.go", "package a\n\nfunc f() int { return 2 }\n")
	repo.remove("gone.txt")
	repo.remove("old name.txt")
	repo.write("new/näme \"q\".txt", long+"and one more\n")
	repo.chmod("tool.sh", 0o755)
	repo.write("pic.bin", "\x00\x01\x03")
	repo.write("ends.txt", "a\r\nb\r\n")
	repo.write("bare.txt", "no end")
	repo.write("empty", "")
	repo.link("target", "lnk")

	got := factsOf(diff.Parse(repo.diff(), diff.Options{Open: -1}))
	want := []facts{
		{"bare.txt", "", "added", 1, 0, "new, no newline at end"},
		{"edit.go", "", "modified", 1, 1, ""},
		{"empty", "", "added", 0, 0, "new"},
		{"ends.txt", "", "modified", 2, 2, "LF → CRLF"},
		{"gone.txt", "", "deleted", 0, 2, "deleted"},
		{"lnk", "", "added", 1, 0, "new, symlink, no newline at end"},
		{"new/näme \"q\".txt", "old name.txt", "renamed", 1, 0, "renamed 96 %"},
		{"pic.bin", "", "modified", 0, 0, "binary"},
		{"tool.sh", "", "mode", 0, 0, "made executable"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestParse_LinesAndWords(t *testing.T) {
	t.Parallel()
	d := diff.Parse([]byte("diff --git a/a.txt b/a.txt\nindex 1111111..2222222 100644\n--- a/a.txt\n+++ b/a.txt\n"+
		"@@ -3,3 +3,3 @@ scope here\n same\n-the old word stays\n+the new word stays\n end\n"), diff.Options{Open: -1})
	want := []diff.Hunk{{
		Header: "@@ -3,3 +3,3 @@", Scope: "scope here",
		Lines: []diff.Line{
			{Kind: ' ', Old: 3, New: 3, Spans: []diff.Span{{Text: "same"}}},
			{Kind: '-', Old: 4, Spans: []diff.Span{{Text: "the "}, {Text: "old", Changed: true}, {Text: " word stays"}}},
			{Kind: '+', New: 4, Spans: []diff.Span{{Text: "the "}, {Text: "new", Changed: true}, {Text: " word stays"}}},
			{Kind: ' ', Old: 5, New: 5, Spans: []diff.Span{{Text: "end"}}},
		},
	}}
	if d := cmp.Diff(want, d.Files[0].Hunks); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestParse_OneBrokenFileLeavesTheOthers(t *testing.T) {
	t.Parallel()
	good := "diff --git a/g%d b/g%d\nindex 1111111..2222222 100644\n--- a/g%d\n+++ b/g%d\n@@ -1 +1 @@\n-a\n+b\n"
	patch := fmt.Sprintf(good, 1, 1, 1, 1) + "diff --git a/bad b/bad\n--- a/bad\n+++ b/bad\n@@ nonsense @@\n+x\n" + fmt.Sprintf(good, 2, 2, 2, 2)
	d := diff.Parse([]byte(patch), diff.Options{Open: -1})
	if len(d.Files) != 3 || d.Files[0].Raw != "" || d.Files[2].Raw != "" {
		t.Fatalf("want two files read and one raw, got %+v", factsOf(d))
	}
	if bad := d.Files[1]; bad.Path != "bad" || !strings.Contains(bad.Raw, "@@ nonsense @@") {
		t.Errorf("the broken file is not shown as it is: %+v", bad)
	}
}

func TestParse_FoldsWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	var patch strings.Builder
	for i := range 30 {
		patch.WriteString(addition(fmt.Sprintf("f%02d.txt", i), 60))
	}
	patch.WriteString(addition("big.txt", 401))
	patch.WriteString(addition("package-lock.json", 3))
	d := diff.Parse([]byte(patch.String()), diff.Options{Open: 29})

	shown, rows := 0, 0
	for _, f := range d.Files[:29] {
		if f.Folded == "" {
			shown++
			rows += f.Lines
		}
	}
	if shown != 20 || rows > 1500 {
		t.Errorf("the first answer shows %d files with %d rows", shown, rows)
	}
	if f := d.Files[29]; f.Folded != "" || len(f.Hunks) == 0 {
		t.Errorf("the file that was asked for is folded: %q", f.Folded)
	}
	if f := d.Files[30]; f.Folded != "Large change" || f.Hunks != nil || f.Lines != 401 {
		t.Errorf("a large file is not folded: %q, %d lines", f.Folded, f.Lines)
	}
	if f := d.Files[31]; f.Folded != "Generated file" {
		t.Errorf("a lock file is not folded: %q", f.Folded)
	}
}

func TestParse_CutsAFileThatIsAskedFor(t *testing.T) {
	t.Parallel()
	d := diff.Parse([]byte(addition("big.txt", 5000)), diff.Options{Open: 0})
	if f := d.Files[0]; f.Cut != 1000 || len(f.Hunks[0].Lines) != 4000 {
		t.Errorf("want 4000 rows and 1000 cut, got %d and %d", len(f.Hunks[0].Lines), f.Cut)
	}
}

func TestTable_Attacks(t *testing.T) {
	t.Parallel()
	for _, a := range attacks() {
		patch := "diff --git a/x b/x\nindex 1111111..2222222 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ " + a + "\n " + a + "\n-" + a + " old\n+" + a + " new\n"
		if problem := unsafe(t, patch); problem != "" {
			t.Errorf("%q: %s", a, problem)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, a := range attacks() {
		f.Add("diff --git a/x b/x\nindex 1111111..2222222 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ " + a + "\n " + a + "\n-" + a + " old\n+" + a + " new\n")
	}
	f.Add(addition("a.go", 3) + "diff --git a/b b/c\nsimilarity index 90%\nrename from b\nrename to c\n")
	f.Add("diff --git a/x b/x\nnew file mode 100644\nindex 0000000..1111111\nGIT binary patch\nliteral 3\nKcmZQz\n\n")
	f.Fuzz(func(t *testing.T, patch string) {
		if problem := unsafe(t, patch); problem != "" {
			t.Error(problem)
		}
	})
}

func attacks() []string {
	return []string{
		"</td></tr></table><script>alert(1)</script>",
		`"><img src=x onerror=alert(1)>`,
		`<hx-partial hx-target="#status">x</hx-partial>`,
		"a\rid: 999\r\rb",
		"\u202e\u2066hidden\u2069",
		"\x1b[2J\x00\xff",
		"&lt;script&gt;",
	}
}

// unsafe names the first thing that a table of a patch must not hold.
func unsafe(t *testing.T, patch string) string {
	t.Helper()
	for _, f := range diff.Parse([]byte(patch), diff.Options{Open: 0}).Files {
		var b strings.Builder
		if err := diff.Table(f).Render(t.Context(), &b); err != nil {
			return err.Error()
		}
		if strings.ContainsAny(b.String(), "\r\x00\x1b\u202e") {
			return "a hidden character went through"
		}
		doc, err := html.Parse(strings.NewReader(b.String()))
		if err != nil {
			return err.Error()
		}
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			switch n.Data {
			case "html", "head", "body", "table", "tbody", "tr", "td", "span":
			default:
				return "element " + n.Data
			}
			for _, a := range n.Attr {
				switch a.Key {
				case "class", "id", "data-n", "title", "colspan":
				default:
					return "attribute " + a.Key
				}
			}
		}
	}
	return ""
}

func addition(path string, lines int) string {
	return fmt.Sprintf("diff --git a/%s b/%s\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1,%d @@\n", path, path, path, lines) +
		strings.Repeat("+a line\n", lines)
}

// repo is a git repository in a folder of the test.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) repo {
	t.Helper()
	r := repo{t, t.TempDir()}
	r.git("init", "-q")
	return r
}

func (r repo) git(args ...string) []byte {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.quotepath=off"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %v: %v", args, err)
	}
	return out
}

func (r repo) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) chmod(name string, mode os.FileMode) {
	r.t.Helper()
	if err := os.Chmod(filepath.Join(r.dir, name), mode); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) link(target, name string) {
	r.t.Helper()
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) commit() {
	r.git("add", "-A")
	r.git("commit", "-qm", "base")
}

func (r repo) diff() []byte {
	r.git("add", "-A")
	return r.git("diff", "--cached", "--no-color", "--no-ext-diff", "--no-textconv", "-M", "--full-index", "--src-prefix=a/", "--dst-prefix=b/")
}
