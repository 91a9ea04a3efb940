package tools

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

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
		"closest":                        {file: "one\n\ttwo\nthree \n", edits: one("one\ntwo\nthrEE", "x"), code: "not_found", says: "one\n→two\nthree·"},
		"same":                           {file: "a\n", edits: one("a", "a"), code: "no_change"},
		"overlap":                        {file: "abc\n", edits: []replacement{{old: "ab", new: "1"}, {old: "bc", new: "2"}}, code: "overlap"},
		"all or nothing":                 {file: "a\nb\n", edits: []replacement{{old: "a", new: "1"}, {old: "zzz", new: "2"}}, code: "not_found", says: "edits[1]; none of the 2 edits"},
		"nothing folded matches a space": {file: "abc\n", edits: one("   ", "x"), code: "not_found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, r := apply("f.txt", test.file, test.edits)
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
		var edits []replacement
		for i := range 1 + random.IntN(4) {
			lines := strings.Count(text, "\n")
			n := (i*lines + random.IntN(lines)) / 4
			edits = append(edits, replacement{old: fmt.Sprintf("line %d\n", n), new: strings.Repeat("new\n", random.IntN(3))})
		}
		got, r := apply("f", text, edits)
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
		if got.added-got.removed != strings.Count(got.text, "\n")-strings.Count(text, "\n") {
			t.Errorf("+%d −%d for\n%s", got.added, got.removed, got.diff)
		}
	}
}

// Whatever is edited, and however it was found: the file differs in the matched lines only, and in
// these only between the first and last change.
func FuzzApply(f *testing.F) {
	f.Add("a\r\nb\nc", "b", "x\ny", false)
	f.Add(utf8BOM+"if x {  \n\ty\n}\n", "if x {\n\ty", "if z {\n\ty", false)
	f.Add("  a\n  b\n", "a\nb\n", "a\nc\n", false)
	f.Add("aaaa", "a", "", true)
	f.Add("“a” – b\t\nc", "\"a\" - b\nc", "d", false)
	f.Add("a\n\n\nb", "\n", "", true)
	f.Fuzz(func(t *testing.T, file, old, new string, all bool) {
		if !utf8.ValidString(file) || !utf8.ValidString(old) || !utf8.ValidString(new) || old == "" {
			return
		}
		edits := []replacement{{old: lf(old), new: lf(new), all: all}}
		got, r := apply("f", file, edits)
		if r != nil {
			if r.Code == "" || !strings.HasPrefix(r.Text, "Error (") {
				t.Errorf("refused without a reason: %+v", r)
			}
			return
		}
		if !utf8.ValidString(got.text) {
			t.Errorf("%q is not UTF-8", got.text)
		}
		if strings.HasPrefix(file, utf8BOM) && !strings.HasPrefix(got.text, utf8BOM) {
			t.Errorf("the BOM of %q is gone: %q", file, got.text)
		}
		doc := newDocument(file)
		if all {
			if want := strings.ReplaceAll(doc.text, edits[0].old, edits[0].new); newDocument(got.text).text != lf(strings.TrimPrefix(want, utf8BOM)) && !strings.Contains(want, "\r\n") {
				t.Errorf("replaceAll gave %q, want %q", got.text, want)
			}
			return
		}
		spans, r := locate("f", doc.text, edits[0])
		if r != nil || len(spans) != 1 {
			t.Fatalf("%v, %d spans", r, len(spans))
		}
		before, after := file[:doc.offset(spans[0].start)], file[doc.offset(spans[0].end):]
		if !strings.HasPrefix(got.text, before) || !strings.HasSuffix(got.text, after) || len(got.text) < len(before)+len(after) {
			t.Errorf("bytes outside the match changed: %q to %q, match %q", file, got.text, doc.text[spans[0].start:spans[0].end])
		}
	})
}

func TestApply_RandomEditsChangeNothingOutside(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	endings := []string{"\n", "\r\n"}
	pieces := []string{"a", "b()", "\tif x {", "  return", "}", "", "“q”", "x  ", "é"}
	applied := 0
	for range 20_000 {
		var file bytes.Buffer
		for range 1 + random.IntN(12) {
			file.WriteString(pieces[random.IntN(len(pieces))] + endings[random.IntN(2)])
		}
		text := newDocument(file.String()).text
		start := random.IntN(len(text))
		end := start + 1 + random.IntN(len(text)-start)
		old := text[start:end]
		if !utf8.ValidString(old) {
			continue
		}
		got, r := apply("f", file.String(), []replacement{{old: old, new: "N\nN"}})
		if r != nil {
			continue
		}
		applied++
		doc := newDocument(file.String())
		if want := file.String()[:doc.offset(start)]; !strings.HasPrefix(got.text, want) {
			t.Fatalf("%q with %q gives %q", file.String(), old, got.text)
		}
		if want := file.String()[doc.offset(end):]; !strings.HasSuffix(got.text, want) {
			t.Fatalf("%q with %q gives %q", file.String(), old, got.text)
		}
	}
	if applied < 5000 {
		t.Errorf("only %d edits were applied", applied)
	}
}
