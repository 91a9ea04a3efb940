package server

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestIgnored_AgreesWithGit draws random patterns and paths and asks git. A slash within brackets is
// left out: we take it as a separator always.
func TestIgnored_AgreesWithGit(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	word := func() string { return pick("a", "b", "ab", "a.c", "b.c", "x y", "A", "-") }
	pattern := func() string {
		var b strings.Builder
		b.WriteString(pick("", "", "", "", "!", "/", "**/", "#", `\#`, `\!`))
		for i := range 1 + random.IntN(3) {
			if i > 0 {
				b.WriteString(pick("/", "/", "/**/", "*", ""))
			}
			b.WriteString(pick(word(), word(), "*", "?", "*.c", "a*", "[ab]", "[!a]", "[^b].c", `\a`, "**", "[a-b]*", "[[:alpha:]]", "***", "[]]"))
		}
		b.WriteString(pick("", "", "", "/", "/**", "/*", " ", `\ `, "\r"))
		return b.String()
	}
	for round := range 40 {
		dir := t.TempDir()
		// Every path is made of folders a and b, so that kinds agree with what lies there.
		var files []string
		for _, d := range []string{"", "a/", "b/", "a/a/", "a/b/", "ab/", "a/b/a/"} {
			for range 4 {
				files = append(files, d+pick("f", "a.c", "b.c", "x y", "A", "-", "ba", "aa"))
			}
		}
		slices.Sort(files)
		files = slices.Compact(files)
		text := map[string]string{}
		for _, d := range []string{".", "a", "a/b"} {
			var lines []string
			for range 1 + random.IntN(4) {
				lines = append(lines, pattern())
			}
			text[d] = strings.Join(lines, "\n") + pick("", "\n")
		}
		for _, f := range files {
			write(t, dir, f, "")
		}
		for d, lines := range text {
			write(t, dir, path.Join(d, ".gitignore"), lines)
		}
		got := walked(t, dir)
		want := gitFiles(t, dir)
		if !slices.Equal(got, want) {
			t.Errorf("round %d, rules %q:\n got %q\nwant %q", round, text, got, want)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// walked lists the files that our rules leave, as a snapshot would.
func walked(t *testing.T, dir string) []string {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var files []string
	w := place{root: root}.walker()
	w.rules = ignoresFor(root, ".", true)
	w.visit = func(rel string, e os.DirEntry) error {
		if !e.IsDir() {
			files = append(files, rel)
		}
		return nil
	}
	if err := w.walk(t.Context(), "."); err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

func gitFiles(t *testing.T, dir string) []string {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"ls-files", "-z", "--others", "--exclude-standard"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if args[0] == "ls-files" {
			files := strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
			slices.Sort(files)
			return slices.DeleteFunc(files, func(f string) bool { return f == "" })
		}
	}
	return nil
}

// FuzzGlob: any pattern ends, quickly, and matches itself when it has no marks.
func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*.go", "src/**/x", "{a,b{c,d}}", "[!a-z]", `\{x}`, "[", "{", "!x", "**", "a*a*a*a*a*b"} {
		f.Add(s, "src/a/x.go")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		for _, r := range parseIgnores(pattern) {
			matchPath(r.names, strings.Split(name, "/"))
		}
		g, err := parseGlob(pattern)
		if err != nil {
			return
		}
		got := g.match(name)
		plain := pattern != "" && !strings.ContainsAny(pattern, `*?[]{}\!`) && path.Clean(pattern) == pattern && pattern[0] != '/'
		if plain && pattern == name && !got {
			t.Errorf("%q does not match itself", pattern)
		}
	})
}
