package server

import (
	"path"
	"strings"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxAlternatives bounds what {a,b} may expand to.
const maxAlternatives = 64

// glob is a shell pattern over slash-separated paths, matched byte by byte as git does: * and ? stop
// at a slash, ** as a whole name stands for any number of names, [a-z] and {a,b} are understood.
type glob struct {
	alternatives [][]string // each split into names
	base         bool       // no slash: only the last name of a path is matched
	negated      bool       // began with !
}

// parseGlob fails on braces that expand without bound.
func parseGlob(pattern string) (glob, error) {
	text, negated := strings.CutPrefix(pattern, "!")
	text = strings.TrimPrefix(text, "./")
	g := glob{negated: negated, base: !strings.Contains(strings.TrimPrefix(text, "**/"), "/")}
	if g.base {
		text = strings.TrimPrefix(text, "**/")
	}
	expanded, ok := expandBraces(strings.TrimPrefix(text, "/"))
	if !ok {
		return g, wire.Fail(wire.BadRequest, pattern)
	}
	for _, e := range expanded {
		g.alternatives = append(g.alternatives, strings.Split(e, "/"))
	}
	return g, nil
}

// match reports whether any of the names under which a file is known is selected.
func (g glob) match(names ...string) bool {
	for _, name := range names {
		if g.base {
			name = path.Base(name)
		}
		parts := strings.Split(name, "/")
		for _, pattern := range g.alternatives {
			if matchPath(pattern, parts) {
				return !g.negated
			}
		}
	}
	return g.negated
}

// expandBraces turns a{b,c} into ab and ac. Braces without a comma are literal.
func expandBraces(pattern string) ([]string, bool) {
	todo, done := []string{pattern}, []string{}
	for len(todo) > 0 {
		if len(todo)+len(done) > maxAlternatives {
			return nil, false
		}
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		before, choices, after, found := firstBraces(p)
		if !found {
			done = append(done, p)
			continue
		}
		for _, c := range choices {
			todo = append(todo, before+c+after)
		}
	}
	return done, true
}

// firstBraces finds the first balanced {…} with a comma at its own level.
func firstBraces(p string) (before string, choices []string, after string, found bool) {
	for open := 0; open < len(p); open++ {
		switch p[open] {
		case '\\':
			open++
			continue
		case '{':
		default:
			continue
		}
		depth, from := 0, open+1
		choices = nil
		for i := open; i < len(p); i++ {
			switch p[i] {
			case '\\':
				i++
			case '{':
				depth++
			case ',':
				if depth == 1 {
					choices = append(choices, p[from:i])
					from = i + 1
				}
			case '}':
				depth--
				if depth == 0 && len(choices) > 0 {
					return p[:open], append(choices, p[from:i]), p[i+1:], true
				}
			}
			if depth == 0 {
				break
			}
		}
	}
	return "", nil, "", false
}

// matchPath matches whole names; ** stands for any number of them, and for at least one at the end.
// The table has one row per name of the pattern, so that no pattern takes more than their product.
func matchPath(pattern, names []string) bool {
	// reach[j] says that the pattern so far matches the first j names.
	reach := make([]bool, len(names)+1)
	reach[0] = true
	for i, p := range pattern {
		next := make([]bool, len(names)+1)
		for j := range reach {
			switch {
			case !reach[j]:
			case len(p) > 1 && strings.Trim(p, "*") == "": // more than two stars are two, as in git
				from := j
				if i == len(pattern)-1 {
					from++
				}
				for k := from; k <= len(names); k++ {
					next[k] = true
				}
			case j < len(names) && matchName(p, names[j]):
				next[j+1] = true
			}
		}
		reach = next
	}
	return reach[len(names)]
}

// matchName matches one name against *, ?, [ ] and \. On a mismatch it goes back to the last *,
// which is enough and never exponential.
func matchName(pattern, name string) bool {
	p, n := 0, 0
	starP, starN := -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			starP, starN = p, n
			p++
			continue
		}
		if size, ok := matchOne(pattern[p:], name[n]); ok {
			p += size
			n++
			continue
		}
		if starP < 0 {
			return false
		}
		starN++
		p, n = starP+1, starN
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches the first element of pattern (not a *) against b and returns its length.
func matchOne(pattern string, b byte) (size int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '\\':
		return 2, len(pattern) > 1 && pattern[1] == b
	case '[':
		return matchClass(pattern, b)
	default:
		return 1, pattern[0] == b
	}
}

// matchClass matches [a-z], [!a], [^a] and [[:digit:]]. An unclosed class matches nothing.
func matchClass(pattern string, b byte) (size int, ok bool) {
	i := 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	matched := false
	for first := true; ; first = false {
		if i >= len(pattern) {
			return 0, false
		}
		if pattern[i] == ']' && !first {
			return i + 1, matched != negated
		}
		if strings.HasPrefix(pattern[i:], "[:") {
			if end := strings.Index(pattern[i:], ":]"); end > 0 {
				matched = matched || inClass(pattern[i+2:i+end], b)
				i += end + 2
				continue
			}
		}
		low, next, ok := classByte(pattern, i)
		if !ok {
			return 0, false
		}
		high := low
		if next+1 < len(pattern) && pattern[next] == '-' && pattern[next+1] != ']' {
			if high, next, ok = classByte(pattern, next+1); !ok {
				return 0, false
			}
		}
		matched = matched || low <= b && b <= high
		i = next
	}
}

// classByte reads one byte of a class, escaped or not.
func classByte(pattern string, i int) (b byte, next int, ok bool) {
	if pattern[i] == '\\' {
		i++
	}
	if i >= len(pattern) {
		return 0, 0, false
	}
	return pattern[i], i + 1, true
}

func inClass(name string, b byte) bool {
	lower, upper, digit := 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9'
	switch name {
	case "alpha":
		return lower || upper
	case "digit":
		return digit
	case "alnum":
		return lower || upper || digit
	case "lower":
		return lower
	case "upper":
		return upper
	case "xdigit":
		return digit || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
	case "space":
		return b == ' ' || '\t' <= b && b <= '\r'
	case "blank":
		return b == ' ' || b == '\t'
	case "cntrl":
		return b < ' ' || b == 0x7f
	case "print":
		return ' ' <= b && b < 0x7f
	case "graph":
		return ' ' < b && b < 0x7f
	case "punct":
		return '!' <= b && b <= '~' && !lower && !upper && !digit
	default:
		return false
	}
}
