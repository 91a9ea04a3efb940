package sandboxtest

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
)

func findCases() []testCase {
	return []testCase{
		{name: "find matches globs", run: findGlobs},
		{name: "find and search honour gitignore", run: ignoredFiles},
		{name: "find is bounded", run: findLimit},
		{name: "search matches expressions and text", run: searchLines},
		{name: "search gives context", run: searchContext},
		{name: "search passes binary files and cuts long lines", run: searchOddFiles},
		{name: "search shows a match in a line of any length", run: searchHugeLines},
		{name: "search is bounded and says so", run: searchLimit},
		{name: "search names a bad pattern", run: searchBadPattern},
	}
}

func findGlobs(t *testing.T, ws box) {
	for _, name := range []string{"main.go", "src/a.go", "src/b_test.go", "src/deep/c.go", "src/deep/c.ts", ".github/w.yml", "docs/{x}.md", "a.txt", "a/b"} {
		ws.write(t, map[string]string{name: ""})
	}
	ws.write(t, map[string]string{".git/hidden.go": ""})
	for _, c := range []struct {
		pattern, path string
		want          []string
	}{
		{"*.go", "", []string{"main.go", "src/a.go", "src/b_test.go", "src/deep/c.go"}},
		{"src/*.go", "", []string{"src/a.go", "src/b_test.go"}},
		{"src/**/*.go", "", []string{"src/a.go", "src/b_test.go", "src/deep/c.go"}},
		{"**/*.ts", "", []string{"src/deep/c.ts"}},
		{"*.{ts,yml}", "", []string{".github/w.yml", "src/deep/c.ts"}},
		{"[ab]*", "src", []string{"src/a.go", "src/b_test.go"}},
		{"deep/*", "src", []string{"src/deep/c.go", "src/deep/c.ts"}},
		{"src/deep/*", "src", []string{"src/deep/c.go", "src/deep/c.ts"}},
		{"!*.go", "src", []string{"src/deep/c.ts"}},
		{"\\{x}.md", "", []string{"docs/{x}.md"}},
		{"a*", "", []string{"a.txt", "src/a.go"}},
		{"?", "", []string{"a/b"}},
		{"nothing", "", []string{}},
	} {
		got, err := ws.Find(t.Context(), core.FindQuery{Pattern: c.pattern, Path: c.path})
		if diff := cmp.Diff(c.want, got.Paths); err != nil || got.More || diff != "" {
			t.Errorf("%s in %q: %v, more %t, -want +got\n%s", c.pattern, c.path, err, got.More, diff)
		}
	}
	_, err := ws.Find(t.Context(), core.FindQuery{Pattern: "*", Path: "main.go"})
	wantCode(t, "find in a file", err, "not_a_directory")
	_, err = ws.Find(t.Context(), core.FindQuery{Pattern: ""})
	wantCode(t, "no pattern", err, "pattern_invalid")
}

func ignoredFiles(t *testing.T, ws box) {
	ws.write(t, map[string]string{
		".gitignore":            "*.log\n/dist/\n!keep.log\n",
		".git/info/exclude":     "excluded.txt\n",
		"sub/.gitignore":        "*.tmp\n!important.log\n",
		"a.log":                 "needle",
		"keep.log":              "needle",
		"dist/x.js":             "needle",
		"sub/dist/y.js":         "needle",
		"sub/b.tmp":             "needle",
		"sub/important.log":     "needle",
		"other/c.tmp":           "needle",
		"excluded.txt":          "needle",
		"node_modules/.gitkeep": "needle",
	})
	want := []string{"keep.log", "node_modules/.gitkeep", "other/c.tmp", "sub/dist/y.js", "sub/important.log"}
	found, err := ws.Find(t.Context(), core.FindQuery{Pattern: "!.gitignore"})
	if diff := cmp.Diff(want, found.Paths); err != nil || diff != "" {
		t.Errorf("find: %v, -want +got\n%s", err, diff)
	}
	hits, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "needle"})
	var paths []string
	for _, l := range hits.Lines {
		paths = append(paths, l.Path)
	}
	if diff := cmp.Diff(want, paths); err != nil || !hits.Ignored || diff != "" {
		t.Errorf("search: %v, ignored %t, -want +got\n%s", err, hits.Ignored, diff)
	}
	hits, err = ws.Search(t.Context(), core.SearchQuery{Pattern: "needle", Path: "a.log"})
	if err != nil || hits.Matches != 1 {
		t.Errorf("a file by its name: %+v, %v", hits, err)
	}
	hits, err = ws.Search(t.Context(), core.SearchQuery{Pattern: "needle", Path: "other"})
	if err != nil || hits.Matches != 1 || hits.Ignored {
		t.Errorf("a folder without ignored files: %+v, %v", hits, err)
	}
}

func findLimit(t *testing.T, ws box) {
	for i := range 12 {
		ws.write(t, map[string]string{fmt.Sprintf("f%02d", i): ""})
	}
	for limit, more := range map[int]bool{5: true, 12: false, 100: false} {
		got, err := ws.Find(t.Context(), core.FindQuery{Pattern: "f*", Limit: limit})
		if err != nil || got.More != more || len(got.Paths) != min(limit, 12) || got.Paths[0] != "f00" {
			t.Errorf("limit %d: %+v, %v", limit, got, err)
		}
	}
}

func searchLines(t *testing.T, ws box) {
	ws.write(t, map[string]string{
		"a.go":     "package a\nfunc Foo(x int) {}\nfunc bar() {}\n",
		"b.txt":    "foo(x)\r\nFOO\r\nlast line without end: foo",
		"sub/c.go": "// foo\n",
	})
	for _, c := range []struct {
		query core.SearchQuery
		want  []string
	}{
		{core.SearchQuery{Pattern: `func \w+\(`}, []string{"a.go:2:func Foo(x int) {}", "a.go:3:func bar() {}"}},
		{core.SearchQuery{Pattern: "foo(x)", Literal: true}, []string{"b.txt:1:foo(x)"}},
		{core.SearchQuery{Pattern: "^foo", IgnoreCase: true}, []string{"b.txt:1:foo(x)", "b.txt:2:FOO"}},
		{core.SearchQuery{Pattern: "foo$"}, []string{"b.txt:3:last line without end: foo", "sub/c.go:1:// foo"}},
		{core.SearchQuery{Pattern: "foo", Glob: "*.go"}, []string{"sub/c.go:1:// foo"}},
		{core.SearchQuery{Pattern: "foo", Path: "sub"}, []string{"sub/c.go:1:// foo"}},
		{core.SearchQuery{Pattern: "foo", Path: "b.txt"}, []string{"b.txt:1:foo(x)", "b.txt:3:last line without end: foo"}},
		{core.SearchQuery{Pattern: "nothing"}, nil},
	} {
		got, err := ws.Search(t.Context(), c.query)
		var lines []string
		for _, l := range got.Lines {
			lines = append(lines, fmt.Sprintf("%s:%d:%s", l.Path, l.Number, l.Text))
		}
		if diff := cmp.Diff(c.want, lines); err != nil || got.Matches != len(c.want) || diff != "" {
			t.Errorf("%+v: %v, -want +got\n%s", c.query, err, diff)
		}
	}
}

func searchContext(t *testing.T, ws box) {
	ws.write(t, map[string]string{"f": "1\n2\nhit 3\n4\nhit 5\n6\n7\n8\n9\nhit 10\n"})
	got, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "hit", Context: 2})
	var lines []string
	for _, l := range got.Lines {
		mark := "-"
		if l.Match {
			mark = ":"
		}
		lines = append(lines, fmt.Sprintf("%d%s%s", l.Number, mark, l.Text))
	}
	want := []string{"1-1", "2-2", "3:hit 3", "4-4", "5:hit 5", "6-6", "7-7", "8-8", "9-9", "10:hit 10"}
	if diff := cmp.Diff(want, lines); err != nil || got.Matches != 3 || diff != "" {
		t.Errorf("%v, %d matches, -want +got\n%s", err, got.Matches, diff)
	}
}

func searchOddFiles(t *testing.T, ws box) {
	ws.write(t, map[string]string{
		"binary": "needle\x00",
		"latin1": "caf\xe9 needle\n",
		"long":   strings.Repeat("x", 90_000) + "needle" + strings.Repeat("y", 90_000) + "\n" + strings.Repeat("é", 400) + "\n",
	})
	got, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "needle|é{9}"})
	if err != nil || got.Matches != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := "caf\uFFFD needle"; got.Lines[0].Path != "latin1" || got.Lines[0].Text != want {
		t.Errorf("%+v, want %q", got.Lines[0], want)
	}
	if text := got.Lines[1].Text; !strings.Contains(text, "needle") || utf8.RuneCountInString(text) > 502 || !strings.HasPrefix(text, "…") || !strings.HasSuffix(text, "…") {
		t.Errorf("the long line is %d characters: %.40s", utf8.RuneCountInString(text), text)
	}
	if l := got.Lines[1]; l.Length != 180_006 || l.Column != 90_001 {
		t.Errorf("the long line has %d characters and the match at %d", l.Length, l.Column)
	}
	if text := got.Lines[2].Text; got.Lines[2].Length != 0 || text != strings.Repeat("é", 400) {
		t.Errorf("400 characters became %d", utf8.RuneCountInString(text))
	}
}

func searchHugeLines(t *testing.T, ws box) {
	for name, line := range map[string]string{
		"b.min.js": strings.Repeat("a", 500_000) + "NEEDLE" + strings.Repeat("b", 500_000),
		"cjk.txt":  strings.Repeat("错", 100_000) + "NEEDLE" + strings.Repeat("误", 100_000),
		"end.txt":  strings.Repeat("é", 300_000) + "NEEDLE",
		"raw.bin":  strings.Repeat("\xff", 300_000) + "NEEDLE",
	} {
		ws.write(t, map[string]string{name: line + "\n"})
		got, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "NEEDLE", Path: name})
		if err != nil || got.Matches != 1 {
			t.Fatalf("%s: %d matches, %v", name, got.Matches, err)
		}
		before, _, _ := strings.Cut(line, "NEEDLE")
		l := got.Lines[0]
		if !strings.Contains(l.Text, "NEEDLE") || !utf8.ValidString(l.Text) || utf8.RuneCountInString(l.Text) > 502 ||
			l.Length != utf8.RuneCountInString(line) || l.Column != utf8.RuneCountInString(before)+1 {
			t.Errorf("%s: %d characters, %d bytes shown, length %d, column %d", name, utf8.RuneCountInString(l.Text), len(l.Text), l.Length, l.Column)
		}
	}
}

func searchLimit(t *testing.T, ws box) {
	ws.write(t, map[string]string{"a": strings.Repeat("hit\n", 60), "b": strings.Repeat("hit\n", 60)})
	got, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "hit"})
	if err != nil || got.Matches != 100 || len(got.Lines) != 100 || !got.More {
		t.Errorf("%d matches, more %t, %v", got.Matches, got.More, err)
	}
	got, err = ws.Search(t.Context(), core.SearchQuery{Pattern: "hit", Limit: 120})
	if err != nil || got.Matches != 120 || got.More {
		t.Errorf("%d matches, more %t, %v", got.Matches, got.More, err)
	}
}

func searchBadPattern(t *testing.T, ws box) {
	_, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "a(b"})
	wantCode(t, "unclosed group", err, "pattern_invalid")
	if !strings.Contains(core.MessageOf(err), "missing closing )") {
		t.Errorf("%q does not say why", core.MessageOf(err))
	}
	if _, err = ws.Search(t.Context(), core.SearchQuery{Pattern: "a(b", Literal: true}); err != nil {
		t.Error(err)
	}
}
