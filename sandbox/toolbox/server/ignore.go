package server

import (
	"io"
	"os"
	"path"
	"strings"
)

// maxIgnoreFile bounds what is read of one ignore file. Bytes.
const maxIgnoreFile = 1 << 20

// ignores are the rules of one ignore file and those of the folders above it.
type ignores struct {
	above *ignores
	dir   string // the folder that the patterns are relative to
	rules []ignoreRule
}

// ignoreRule is one line.
type ignoreRule struct {
	names   []string // of the pattern
	base    bool     // matches the last name of a path
	dirOnly bool
	negated bool
}

// parseIgnores reads the lines of an ignore file.
func parseIgnores(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = trimTrailingSpaces(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		var r ignoreRule
		line, r.negated = strings.CutPrefix(line, "!")
		line, r.dirOnly = strings.CutSuffix(line, "/")
		r.base = !strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		r.names = strings.Split(line, "/")
		rules = append(rules, r)
	}
	return rules
}

// trimTrailingSpaces keeps a last space that a backslash escapes.
func trimTrailingSpaces(line string) string {
	end := 0 // behind the last byte that counts
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// with adds the ignore file of a folder, when it has one.
func (g *ignores) with(root *os.Root, dir, file string) *ignores {
	p := place{root: root, rel: path.Join(dir, file)}
	var err error
	if p.info, err = root.Lstat(p.rel); err != nil {
		return g
	}
	f, err := p.open()
	if err != nil {
		return g
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return g
	}
	return &ignores{above: g, dir: dir, rules: parseIgnores(string(text))}
}

// ignored says whether the rules exclude name, which lies below every folder of g. The deepest file
// and the last line win. That a folder above name is excluded is the walk's to know.
func (g *ignores) ignored(name string, isDir bool) bool {
	base := path.Base(name)
	for ; g != nil; g = g.above {
		rel := name
		if g.dir != "." {
			rel = strings.TrimPrefix(name, g.dir+"/")
		}
		for i := len(g.rules) - 1; i >= 0; i-- {
			r := g.rules[i]
			if r.dirOnly && !isDir {
				continue
			}
			if r.base && matchName(r.names[0], base) || !r.base && matchPath(r.names, strings.Split(rel, "/")) {
				return !r.negated
			}
		}
	}
	return false
}

// ignoresFor collects the rules that hold for the entries of folder dir of the repository. With
// local, the repository's own .git/info/exclude counts too.
func ignoresFor(root *os.Root, dir string, local bool) *ignores {
	var g *ignores
	if local {
		if g = g.with(root, ".git/info", "exclude"); g != nil {
			g.dir = "."
		}
	}
	g = g.with(root, ".", ".gitignore")
	if dir == "." {
		return g
	}
	at := "."
	for name := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, name)
		g = g.with(root, at, ".gitignore")
	}
	return g
}
