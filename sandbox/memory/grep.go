package memory

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"
)

// grep is the part of the program that agents use: options, recursion and context.
func grep(ctx context.Context, c *command) error {
	expr, given := c.flags['e']
	if !given {
		if len(c.args) == 0 {
			return c.fail(fmt.Errorf("%w: grep PATTERN [FILE]", errUsage), 2)
		}
		expr, c.args = c.args[0], c.args[1:]
	}
	pattern, err := grepPattern(c, expr)
	if err != nil {
		return c.fail(err, 2)
	}
	before, after, err := grepContext(c)
	if err != nil {
		return c.fail(err, 2)
	}
	recursive := c.has('r') || c.has('R')
	if recursive {
		if len(c.args) == 0 {
			c.args = []string{"."}
		}
		c.args = c.filesBelow(ctx, c.args)
	}
	names := recursive || len(c.args) > 1
	g := &grepper{command: c, pattern: pattern, before: before, after: after, names: (names || c.has('H')) && !c.has('h')}
	if recursive && len(c.args) == 0 {
		return interp.ExitStatus(1)
	}
	err = c.inputs(func(name string, r *bufio.Reader) error { return g.file(ctx, name, r) })
	if err == nil && !g.found {
		return interp.ExitStatus(1)
	}
	return err
}

// grepPattern compiles what the flags make of the pattern. A basic expression differs from ours in
// which of its marks are escaped.
func grepPattern(c *command, expr string) (*regexp.Regexp, error) {
	switch {
	case c.has('F'):
		expr = regexp.QuoteMeta(expr)
	case !c.has('E'):
		expr = basicToRE2(expr)
	}
	if c.has('w') {
		expr = `\b(?:` + expr + `)\b`
	}
	if c.has('i') {
		expr = "(?i)" + expr
	}
	return regexp.Compile(expr)
}

// basicToRE2 swaps the escaped and the plain form of + ? | ( ) { }.
func basicToRE2(expr string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(expr); i++ {
		ch := expr[i]
		swapped := strings.IndexByte("+?|(){}", ch) >= 0
		switch {
		case inClass:
			inClass = ch != ']'
			b.WriteByte(ch)
		case ch == '[':
			inClass = true
			b.WriteByte(ch)
		case ch == '\\' && i+1 < len(expr) && strings.IndexByte("+?|(){}", expr[i+1]) >= 0:
			i++
			b.WriteByte(expr[i])
		case ch == '\\' && i+1 < len(expr):
			i++
			b.WriteByte('\\')
			b.WriteByte(expr[i])
		case swapped:
			b.WriteByte('\\')
			b.WriteByte(ch)
		default:
			b.WriteByte(ch)
		}
	}
	return b.String()
}

func grepContext(c *command) (before, after int, err error) {
	both, _, err := c.count('C', 0)
	if err != nil {
		return 0, 0, err
	}
	if before, _, err = c.count('B', both); err != nil {
		return 0, 0, err
	}
	after, _, err = c.count('A', both)
	return before, after, err
}

// filesBelow lists the regular files below the operands, sorted, .git left out.
func (c *command) filesBelow(ctx context.Context, names []string) []string {
	var files []string
	for _, name := range names {
		info, err := c.jail.stat(c.Dir, name, true)
		if err != nil {
			c.complain(named(err, name))
			continue
		}
		if !info.IsDir() {
			files = append(files, name)
			continue
		}
		entries, err := c.jail.readDir(c.Dir, name)
		if err != nil || ctx.Err() != nil {
			continue
		}
		for _, e := range entries {
			below := path.Join(name, e.Name())
			if strings.HasPrefix(name, "./") || name == "." {
				below = "./" + below
			}
			switch {
			case e.Name() == ".git":
			case e.IsDir():
				files = append(files, c.filesBelow(ctx, []string{below})...)
			case e.Type() == 0, e.Type() == fs.ModeSymlink && c.has('R'):
				files = append(files, below)
			}
		}
	}
	return files
}

// grepper is the state over all files.
type grepper struct {
	*command
	pattern       *regexp.Regexp
	before, after int
	names         bool
	found         bool
}

func (g *grepper) file(ctx context.Context, name string, r *bufio.Reader) error {
	if head, _ := r.Peek(8 << 10); slices.Contains(head, 0) && !g.has('c') {
		return nil // binary
	}
	limit, _, err := g.count('m', 0)
	if err != nil {
		return err
	}
	matches, number, follow := 0, 0, 0
	var last []string
	err = eachLine(ctx, r, func(line string) (bool, error) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if g.pattern.MatchString(line) == g.has('v') {
			if follow > 0 {
				follow--
				return true, g.print(name, number, '-', line)
			}
			if last = append(last, line); len(last) > g.before {
				last = last[1:]
			}
			return true, nil
		}
		matches++
		g.found = true
		if g.has('q') || g.has('l') || g.has('L') {
			return false, nil
		}
		if g.has('c') {
			return true, nil
		}
		for i, l := range last {
			if err := g.print(name, number-len(last)+i, '-', l); err != nil {
				return false, err
			}
		}
		last, follow = nil, g.after
		return limit == 0 || matches < limit, g.match(name, number, line)
	})
	switch {
	case err != nil:
		return err
	case g.has('q'):
		return nil
	case g.has('l') && matches > 0, g.has('L') && matches == 0:
		_, err = fmt.Fprintln(g.Stdout, name)
	case g.has('c') && g.names:
		_, err = fmt.Fprintf(g.Stdout, "%s:%d\n", name, matches)
	case g.has('c'):
		_, err = fmt.Fprintln(g.Stdout, matches)
	}
	return err
}

func (g *grepper) match(name string, number int, line string) error {
	if !g.has('o') {
		return g.print(name, number, ':', line)
	}
	for _, part := range g.pattern.FindAllString(line, -1) {
		if err := g.print(name, number, ':', part); err != nil {
			return err
		}
	}
	return nil
}

func (g *grepper) print(name string, number int, mark byte, line string) error {
	var b strings.Builder
	if g.names {
		b.WriteString(name)
		b.WriteByte(mark)
	}
	if g.has('n') {
		fmt.Fprintf(&b, "%d%c", number, mark)
	}
	b.WriteString(line)
	b.WriteByte('\n')
	_, err := io.WriteString(g.Stdout, b.String())
	return err
}
