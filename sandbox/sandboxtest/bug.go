package sandboxtest

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"agent-sandboxing/core"
)

// bugCases are faults that other coding agents were reported to have.
func bugCases() []testCase {
	return []testCase{
		{name: "a pattern or name that begins with a dash is data", run: dashes},
		{name: "colons and newlines in a name lose no match", run: colonNames},
		{name: "a match in the middle of a two megabyte line is shown", run: minifiedLine},
		{name: "hidden folders are seen by every verb", run: hiddenFolders},
		{name: "nothing waits for an editor a pager or an answer", needs: real, run: nobodyAnswers},
		{name: "an editor that is not there fails rather than pretend", needs: real, run: noEditor},
		{name: "a file that cannot be run is 126", needs: real, run: notRunnable},
		{name: "a command that removes its own folder harms no other", needs: real, run: folderRemoved},
	}
}

func dashes(t *testing.T, ws box) {
	ws.write(t, map[string]string{"-rf": "--help -> -77\n", "-la/f": "x\n", "-n1": "x\n"})
	for _, pattern := range []string{"--help", "->", "-77", "-e"} {
		hits, err := ws.Search(t.Context(), core.SearchQuery{Pattern: pattern})
		want := 1
		if pattern == "-e" {
			want = 0
		}
		if err != nil || hits.Matches != want {
			t.Errorf("search %q: %d matches, %v", pattern, hits.Matches, err)
		}
	}
	if got := ws.read(t, "-rf"); got != "--help -> -77\n" {
		t.Errorf("read %q", got)
	}
	found, err := ws.Find(t.Context(), core.FindQuery{Pattern: "-n*"})
	if err != nil || !slices.Equal(found.Paths, []string{"-n1"}) {
		t.Errorf("found %q, %v", found.Paths, err)
	}
	if list, err := ws.List(t.Context(), "-la", 0); err != nil || len(list.Entries) != 1 || list.Entries[0].Path != "-la/f" {
		t.Errorf("%+v, %v", list, err)
	}
}

func colonNames(t *testing.T, ws box) {
	names := []string{"a:1:b/f.txt", "bad:52:file.txt", "t\nx.txt"}
	for _, name := range names {
		ws.write(t, map[string]string{name: "first\nhit: here\n"})
	}
	hits, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "hit"})
	if err != nil || len(hits.Lines) != len(names) {
		t.Fatalf("%+v, %v", hits, err)
	}
	for i, l := range hits.Lines {
		if l.Path != names[i] || l.Number != 2 || l.Text != "hit: here" {
			t.Errorf("%+v, want line 2 of %q", l, names[i])
		}
	}
}

func minifiedLine(t *testing.T, ws box) {
	ws.write(t, map[string]string{"head": strings.Repeat("é", 240_000) + "NEEDLE" + strings.Repeat("b", 500_000)})
	hits, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "NEEDLE"})
	if err != nil || len(hits.Lines) != 1 {
		t.Fatalf("%d lines, %v", len(hits.Lines), err)
	}
	if l := hits.Lines[0]; !strings.Contains(l.Text, "NEEDLE") || utf8.RuneCountInString(l.Text) > 510 || !utf8.ValidString(l.Text) ||
		l.Number != 1 || l.Column != 240_001 || l.Length != 740_006 {
		t.Errorf("line %d, column %d of %d, %d bytes", l.Number, l.Column, l.Length, len(l.Text))
	}
}

func hiddenFolders(t *testing.T, ws box) {
	const hidden = ".github/workflows/ci.yml"
	ws.write(t, map[string]string{hidden: "runs-on: x\n", "a/.hidden": "runs-on: y\n"})
	for pattern, want := range map[string][]string{".github/workflows/*.yml": {hidden}, "**/*.yml": {hidden}, "*.yml": {hidden}, ".hidden": {"a/.hidden"}} {
		if found, err := ws.Find(t.Context(), core.FindQuery{Pattern: pattern}); err != nil || !slices.Equal(found.Paths, want) {
			t.Errorf("find %s: %q, %v", pattern, found.Paths, err)
		}
	}
	if hits, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "runs-on"}); err != nil || hits.Matches != 2 {
		t.Errorf("%+v, %v", hits, err)
	}
	list, err := ws.List(t.Context(), "", 0)
	if err != nil || !slices.ContainsFunc(list.Entries, func(e core.FileStat) bool { return e.Path == ".github" }) {
		t.Errorf("%+v, %v", list.Entries, err)
	}
}

func nobodyAnswers(t *testing.T, ws box) {
	ws.must(t, `git init -q . && git config user.name T && git config user.email t@example.com && for i in $(seq 200); do echo $i > f && git add f && git commit -qm "commit $i"; done`)
	for shell, want := range map[string]string{
		`read x; echo "[$x]"`:                   "[]\n",
		"cat":                                   "",
		"git log --oneline | wc -l":             "200\n",
		"git log | grep -c ^commit":             "200\n",
		"python3 -c 'input()' 2>&1 | tail -n 1": "EOFError: EOF when reading a line\n",
		"exec 3</dev/tty || true":               "",
	} {
		res, err := ws.Run(t.Context(), core.Command{Shell: shell, Timeout: quickly})
		if out := string(res.Head); err != nil || res.TimedOut || out != want && !strings.Contains(shell, "/dev/tty") {
			t.Errorf("%s: %q, timed out %t, %v", shell, out, res.TimedOut, err)
		}
	}
}

func noEditor(t *testing.T, ws box) {
	ws.must(t, `git init -q . && git config user.name T && git config user.email t@example.com && for i in 1 2 3; do echo $i > f && git add f && git commit -qm $i; done; echo 4 > f; git add f`)
	for _, shell := range []string{"git commit", "git commit --amend", "git rebase -i HEAD~2", "git tag -a v1", `"$EDITOR" f`, `"$VISUAL" f`} {
		res, err := ws.Run(t.Context(), core.Command{Shell: shell, Timeout: quickly})
		if err != nil || res.TimedOut || res.Exit == 0 {
			t.Errorf("%s: exit %d, timed out %t, %v", shell, res.Exit, res.TimedOut, err)
		}
	}
	if got := ws.must(t, "git log --format=%s"); got != "3\n2\n1\n" {
		t.Errorf("the history is %q", got)
	}
}

func notRunnable(t *testing.T, ws box) {
	const script = "#!/bin/sh\necho ran\n"
	ws.write(t, map[string]string{"script": script, "good": script, "bad": "#!/no/such/program\n"})
	for shell, want := range map[string]int{"./script": 126, "./missing": 127, "chmod +x good && ./good": 0, "chmod +x bad && ./bad": 127, "/tmp": 126} {
		res, err := ws.Run(t.Context(), core.Command{Shell: shell})
		if err != nil || res.Exit != want || res.Signal != "" {
			t.Errorf("%s: exit %d, %v, want %d", shell, res.Exit, err, want)
		}
	}
}

func folderRemoved(t *testing.T, ws box) {
	ws.must(t, "mkdir -p sub && echo root > a.txt && echo sub > sub/a.txt")
	if got := ws.must(t, "cd sub && cat a.txt"); got != "sub\n" {
		t.Errorf("%q", got)
	}
	if got := ws.must(t, "cat a.txt"); got != "root\n" {
		t.Errorf("the next command began elsewhere: %q", got)
	}
	res, err := ws.Run(t.Context(), core.Command{Shell: "rm -r ../sub; echo gone", Dir: "sub"})
	if err != nil || string(res.Head) != "gone\n" {
		t.Errorf("%q, %v", res.Head, err)
	}
	_, err = ws.Run(t.Context(), core.Command{Shell: "true", Dir: "sub"})
	wantCode(t, "a folder that is gone", err, "not_found")
	if got := ws.must(t, "cat a.txt"); got != "root\n" {
		t.Errorf("%q", got)
	}
}
