package tools

import (
	"slices"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/agent"
)

// matchKind is how exactly oldText was found, from the strictest.
type matchKind int

const (
	matchExact    matchKind = iota
	matchFolded             // trailing spaces and typographic characters ignored
	matchIndented           // the same lines at another indentation
)

func (k matchKind) note() string {
	switch k {
	case matchFolded:
		return "; matched after ignoring trailing spaces and typographic quotes, dashes and spaces"
	case matchIndented:
		return "; matched at another indentation, newText was indented alike"
	case matchExact:
	}
	return ""
}

// locate finds where an edit applies: exactly, else with spaces and typography folded, else at
// another indentation, unless onlyExact. Each step must give one place only; guessing would edit the
// wrong one.
func locate(path, text string, e replacement, onlyExact bool) ([]span, *agent.Result) {
	if e.old == e.new {
		r := agent.Failed("no_change", "oldText and newText are the same. If the file is as you want it, no edit is needed.")
		return nil, &r
	}
	if e.all {
		if spans := every(text, e); len(spans) > 0 {
			return spans, nil
		}
		return nil, notThere(path, text, e)
	}
	steps := []func(string, replacement) []span{exact, folded, indented}
	if onlyExact {
		steps = steps[:1]
	}
	for _, find := range steps {
		switch spans := find(text, e); len(spans) {
		case 0:
		case 1:
			return spans, nil
		default:
			return nil, notUnique(path, text, spans)
		}
	}
	return nil, notThere(path, text, e)
}

// every finds all occurrences that do not overlap, for replaceAll.
func every(text string, e replacement) []span {
	var spans []span
	for i := 0; ; {
		j := strings.Index(text[i:], e.old)
		if j < 0 {
			return spans
		}
		spans = append(spans, span{start: i + j, end: i + j + len(e.old), new: e.new})
		i += j + len(e.old)
	}
}

// maxMatches bounds the search for places that are too many anyway.
const maxMatches = 10_000

// exact finds all occurrences, also overlapping ones: they are as ambiguous as others.
func exact(text string, e replacement) []span {
	var spans []span
	for i := 0; ; {
		j := strings.Index(text[i:], e.old)
		if j < 0 || len(spans) == maxMatches {
			return spans
		}
		spans = append(spans, span{start: i + j, end: i + j + len(e.old), new: e.new})
		i += j + 1
	}
}

// folded compares with trailing spaces dropped and typographic characters made plain.
func folded(text string, e replacement) []span {
	needle, _ := fold(e.old)
	if strings.TrimSpace(needle) == "" {
		return nil
	}
	// Spaces that were dropped from the end of oldText may only be missing at the end of a line.
	lineEnd := !strings.HasSuffix(e.old, "\n") && strings.TrimRight(e.old, " \t") != e.old
	hay, at := fold(text)
	var spans []span
	for i := 0; ; {
		j := strings.Index(hay[i:], needle)
		if j < 0 || len(spans) == maxMatches {
			return spans
		}
		start, end := i+j, i+j+len(needle)
		i += j + 1
		if lineEnd && end < len(hay) && hay[end] != '\n' {
			continue
		}
		last := at[end-1]
		_, size := utf8.DecodeRuneInString(text[last:])
		spans = append(spans, span{start: at[start], end: last + size, new: e.new, how: matchFolded})
	}
}

// fold returns s without trailing spaces and with plain quotes, dashes and spaces, and for every
// byte of that the offset in s of the rune that it comes from or, inside a rune, of that byte.
func fold(s string) (string, []int) {
	var b strings.Builder
	at := make([]int, 0, len(s))
	start := 0
	for line := range strings.Lines(s) {
		body, newline := strings.CutSuffix(line, "\n")
		trimmed := strings.TrimRight(body, " \t")
		for i := 0; i < len(trimmed); {
			r, size := utf8.DecodeRuneInString(trimmed[i:])
			if plain := plainRune(r); plain != r {
				b.WriteRune(plain)
				at = append(at, start+i)
			} else {
				b.WriteString(trimmed[i : i+size])
				for k := range size {
					at = append(at, start+i+k)
				}
			}
			i += size
		}
		if newline {
			b.WriteByte('\n')
			at = append(at, start+len(body))
		}
		start += len(line)
	}
	return b.String(), at
}

func foldLine(s string) string {
	out, _ := fold(s)
	return out
}

// plainRune is the ASCII character that people type for a typographic one.
func plainRune(r rune) rune {
	switch r {
	case '\u2018', '\u2019', '\u201A', '\u201B':
		return '\''
	case '\u201C', '\u201D', '\u201E', '\u201F':
		return '"'
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\u2212':
		return '-'
	case '\u00A0', '\u2002', '\u2003', '\u2004', '\u2005', '\u2006', '\u2007', '\u2008', '\u2009', '\u200A', '\u202F', '\u205F', '\u3000':
		return ' '
	}
	return r
}

// maxShiftWork bounds the comparisons of lines at another indentation: text made of the same line
// over and over could need the product of both lengths.
const maxShiftWork = 5_000_000

// indented finds the same lines, whole ones only, with one more or one less piece of indentation,
// and gives newText the same.
func indented(text string, e replacement) []span {
	old := strings.Split(strings.TrimSuffix(e.old, "\n"), "\n")
	first := slices.IndexFunc(old, func(l string) bool { return strings.TrimSpace(l) != "" })
	if first < 0 {
		return nil
	}
	lines := strings.SplitAfter(text, "\n")
	var spans []span
	start, work := 0, maxShiftWork
	for i := 0; i+len(old) <= len(lines) && len(spans) < maxMatches; i++ {
		add, drop, ok := shift(indentOf(lines[i+first]), indentOf(old[first]))
		if ok && sameShifted(lines[i:i+len(old)], old, add, drop, &work) {
			if s, ok := shiftedSpan(start, lines[i:i+len(old)], e, add, drop); ok {
				spans = append(spans, s)
			}
		}
		start += len(lines[i])
	}
	return spans
}

// shift says what has to be put before the lines of old, or taken from them, to get the file's.
func shift(file, old string) (add, drop string, ok bool) {
	if strings.HasSuffix(file, old) {
		return strings.TrimSuffix(file, old), "", true
	}
	if strings.HasSuffix(old, file) {
		return "", strings.TrimSuffix(old, file), true
	}
	return "", "", false
}

// sameShifted compares line by line and takes what it does from work; nothing is the same without.
func sameShifted(file, old []string, add, drop string, work *int) bool {
	for i, line := range file {
		if *work--; *work < 0 {
			return false
		}
		line = strings.TrimRight(line, " \t\n")
		want := strings.TrimRight(old[i], " \t")
		if line == "" && want == "" {
			continue
		}
		if !strings.HasPrefix(want, drop) || line != add+strings.TrimPrefix(want, drop) {
			return false
		}
	}
	return true
}

func shiftedSpan(start int, file []string, e replacement, add, drop string) (span, bool) {
	size := 0
	for _, line := range file {
		size += len(line)
	}
	if !strings.HasSuffix(e.old, "\n") && strings.HasSuffix(file[len(file)-1], "\n") {
		size--
	}
	lines := strings.SplitAfter(e.new, "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if !strings.HasPrefix(line, drop) {
			return span{}, false
		}
		lines[i] = add + strings.TrimPrefix(line, drop)
	}
	return span{start: start, end: start + size, new: strings.Join(lines, ""), how: matchIndented}, true
}

func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

func notUnique(path, text string, spans []span) *agent.Result {
	var lines []int
	for _, s := range spans[:min(len(spans), shownLines)] {
		lines = append(lines, lineAt(text, s.start))
	}
	r := agent.Failed("not_unique", "oldText occurs %d times in %s (lines %s). Add surrounding lines, or set replaceAll.",
		len(spans), path, numbers(lines, len(spans)))
	return &r
}
