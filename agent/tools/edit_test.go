package tools

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestApply(t *testing.T) {
	t.Parallel()
	one := func(old, new string) []replacement { return []replacement{{old: old, new: new}} }
	tests := map[string]struct {
		file  string
		edits []replacement
		want  string
		code  string
		says  string // in the result or the error
	}{
		"exact":                          {file: "a\nb\nc\n", edits: one("b", "B"), want: "a\nB\nc\n", says: "(line 2)"},
		"no final newline":               {file: "a\nb", edits: one("b", "B"), want: "a\nB"},
		"delete a line":                  {file: "a\nb\nc\n", edits: one("b\n", ""), want: "a\nc\n"},
		"CRLF stays":                     {file: "a\r\nb\r\nc\r\n", edits: one("a\nb", "a\nx\nb"), want: "a\r\nx\r\nb\r\nc\r\n"},
		"mixed endings outside stay":     {file: "a\nb\r\nc\nd\r\n", edits: one("c", "C\nC"), want: "a\nb\r\nC\nC\nd\r\n"},
		"mixed endings inside stay":      {file: "a\nb\r\nc\nd\n", edits: one("a\nb\nc", "a\nb\nx"), want: "a\nb\r\nx\nd\n"},
		"BOM stays":                      {file: utf8BOM + "a\nb\n", edits: one("a", "A"), want: utf8BOM + "A\nb\n"},
		"lone CR is text":                {file: "a\rb\nc\n", edits: one("a\rb", "x"), want: "x\nc\n"},
		"two edits, given backwards":     {file: "a\nb\nc\n", edits: []replacement{{old: "c", new: "C"}, {old: "a", new: "A"}}, want: "A\nb\nC\n", says: "2 blocks"},
		"against the original":           {file: "a b\n", edits: []replacement{{old: "a", new: "b"}, {old: "b", new: "a"}}, want: "b a\n"},
		"neighbours":                     {file: "abcd\n", edits: []replacement{{old: "ab", new: "1"}, {old: "cd", new: "2"}}, want: "12\n"},
		"replaceAll":                     {file: "a.a.a\n", edits: []replacement{{old: "a", new: "bb", all: true}}, want: "bb.bb.bb\n", says: "3 blocks"},
		"trailing spaces in file":        {file: "if x {  \n\ty()\n}\n", edits: one("if x {\n\ty()\n", "if x {\n\tz()\n"), want: "if x {  \n\tz()\n}\n", says: "ignoring trailing spaces"},
		"trailing spaces in oldText":     {file: "a\nb\n", edits: one("a  \nb", "a\nc"), want: "a\nc\n"},
		"not within a word":              {file: "foobar\n", edits: one("foo ", "x"), code: "not_found"},
		"typographic quotes":             {file: "say “hi” – now\nx\n", edits: one("say \"hi\" - now", "say \"ho\""), want: "say \"ho\"\nx\n"},
		"other indentation":              {file: "func f() {\n\tif a {\n\t\tb()\n\t}\n}\n", edits: one("if a {\n\tb()\n}", "if a {\n\tc()\n\n\td()\n}"), want: "func f() {\n\tif a {\n\t\tc()\n\n\t\td()\n\t}\n}\n", says: "another indentation"},
		"less indentation":               {file: "a:\n  b\n", edits: one("    a:\n      b\n", "    a:\n      c\n"), want: "a:\n  c\n"},
		"whole lines only":               {file: "xa\n  b\n", edits: one("  a\n    b", "  c\n    d"), code: "not_found"},
		"not unique":                     {file: "a\nb\na\n", edits: one("a", "x"), code: "not_unique", says: "2 times in f.txt (lines 1, 3)"},
		"overlapping places":             {file: "aaa\n", edits: one("aa", "x"), code: "not_unique"},
		"not unique after folding":       {file: "a \nb\na\t\nb\n", edits: one("a\nb", "x"), code: "not_unique"},
		"not there":                      {file: "a\nb\n", edits: one("zzz", "x"), code: "not_found"},
		"done already":                   {file: "a\nnew text\n", edits: one("old text", "new text"), code: "not_found", says: "may be done"},
		"numbered":                       {file: "a\nb\n", edits: one("1\ta\n2\tb", "x"), code: "not_found", says: "line numbers"},
		"numbered by grep":               {file: "a\nb\n", edits: one("f.txt:1: a\nf.txt-2- b", "x"), code: "not_found", says: "line numbers"},
		"closest":                        {file: "one\n\ttwo\nthree \n", edits: one("one\ntwo\nthrEE", "x"), code: "not_found", says: "The closest is at line 1 (→ is a tab, · a space at the end):\none\n→two\nthree·"},
		"same":                           {file: "a\n", edits: one("a", "a"), code: "no_change"},
		"overlap":                        {file: "abc\n", edits: []replacement{{old: "ab", new: "1"}, {old: "bc", new: "2"}}, code: "overlap"},
		"all or nothing":                 {file: "a\nb\n", edits: []replacement{{old: "a", new: "1"}, {old: "zzz", new: "2"}}, code: "not_found", says: "edits[1]; none of the 2 edits"},
		"nothing folded matches a space": {file: "abc\n", edits: one("   ", "x"), code: "not_found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, r := apply("f.txt", test.file, test.edits, false)
			if test.code != "" {
				if r == nil || r.Code != test.code || !strings.Contains(r.Text, test.says) {
					t.Fatalf("got %q and %+v, want %s with %q", got.text, r, test.code, test.says)
				}
				return
			}
			if r != nil {
				t.Fatal(r.Text)
			}
			if diff := cmp.Diff(test.want, got.text); diff != "" {
				t.Error(diff)
			}
			if report := got.report("f.txt"); !strings.Contains(report, test.says) {
				t.Errorf("%q is not in %q", test.says, report)
			}
		})
	}
}

// The diff that the model reads must be a true one: patch(1) makes the same file of it.
func TestApply_DiffIsTrue(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		var b strings.Builder
		for i := range 5 + random.IntN(40) {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		text := b.String()
		if random.IntN(3) == 0 {
			text += "the end has no newline"
		}
		var edits []replacement
		for i := range 1 + random.IntN(4) {
			lines := strings.Count(text, "\n")
			n := (i*lines + random.IntN(lines)) / 4
			edits = append(edits, replacement{old: fmt.Sprintf("line %d\n", n), new: strings.Repeat("new\n", random.IntN(3))})
		}
		if random.IntN(3) == 0 {
			edits = append(edits, replacement{old: "\nthe end has no newline", new: []string{"", "\n", "\nx\ny", " joined"}[random.IntN(4)]})
		}
		got, r := apply("f", text, edits, false)
		if r != nil {
			continue // two edits chose one line
		}
		dir := t.TempDir()
		for name, content := range map[string]string{"f": text, "d": "--- f\n+++ f\n" + got.diff + "\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "git", "apply", "-p0", "--unidiff-zero", "d")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, got.diff)
		}
		patched, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got.text, string(patched)); diff != "" {
			t.Fatal(diff)
		}
		if got.added-got.removed != countLines(got.text)-countLines(text) {
			t.Errorf("+%d −%d for\n%s", got.added, got.removed, got.diff)
		}
	}
}

// Text that repeats itself must not cost the product of its lengths.
func TestApply_IsLinearInRepetition(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("a\n", 100_000)
	got, r := apply("f", lines, []replacement{{old: "\n", new: " ", all: true}}, false)
	if r != nil || got.text != strings.Repeat("a ", 100_000) {
		t.Errorf("joining all lines: %+v", r)
	}
	if _, r = apply("f", lines, []replacement{{old: strings.Repeat(" a\n", 50_000) + " b\n", new: "x"}}, false); r == nil || r.Code != "not_found" {
		t.Errorf("the same line over and over at another indentation: %+v", r)
	}
}
