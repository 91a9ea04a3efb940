package diff

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// markWords marks what changed inside lines that were replaced one for one.
func markWords(lines []Line) {
	for i := 0; i < len(lines); {
		removed := runOf(lines, i, '-')
		added := runOf(lines, i+removed, '+')
		if removed > 0 && removed == added {
			for n := range removed {
				markPair(&lines[i+n], &lines[i+removed+n])
			}
		}
		i += max(removed+added, 1)
	}
}

func runOf(lines []Line, from int, kind byte) int {
	n := 0
	for from+n < len(lines) && lines[from+n].Kind == kind {
		n++
	}
	return n
}

// markPair marks the middle that two lines do not share, unless they share too little for the mark
// to say anything.
func markPair(old, after *Line) {
	a, b := lineText(*old), lineText(*after)
	if a == b || len(a) > maxLineBytes || len(b) > maxLineBytes {
		return
	}
	head := commonHead(a, b)
	tail := commonTail(a[head:], b[head:])
	shared := len(strings.TrimSpace(a[:head])) + len(strings.TrimSpace(a[len(a)-tail:]))
	if 5*shared < 2*max(len(strings.TrimSpace(a)), len(strings.TrimSpace(b))) {
		return
	}
	old.Spans = mark(old.Spans, head, len(a)-tail)
	after.Spans = mark(after.Spans, head, len(b)-tail)
}

func lineText(l Line) string {
	var b strings.Builder
	for _, s := range l.Spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// commonHead is the length of what two texts begin with, cut back to the start of a word.
func commonHead(a, b string) int {
	n, word := 0, 0
	for n < len(a) && n < len(b) {
		r, size := utf8.DecodeRuneInString(a[n:])
		if !strings.HasPrefix(b[n:], a[n:n+size]) {
			break
		}
		n += size
		if !inWord(r) {
			word = n
		}
	}
	if n == len(a) || n == len(b) {
		next := a[n:] + b[n:]
		if r, _ := utf8.DecodeRuneInString(next); !inWord(r) {
			return n
		}
	}
	return word
}

// commonTail is the length of what two texts end with, cut back to the end of a word.
func commonTail(a, b string) int {
	n, word := 0, 0
	for n < len(a) && n < len(b) {
		r, size := utf8.DecodeLastRuneInString(a[:len(a)-n])
		if !strings.HasSuffix(b[:len(b)-n], a[len(a)-n-size:len(a)-n]) {
			break
		}
		n += size
		if !inWord(r) {
			word = n
		}
	}
	if n == len(a) || n == len(b) {
		return n
	}
	return word
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// mark sets Changed on the bytes from..to of a line, parting spans where needed.
func mark(spans []Span, from, to int) []Span {
	if from >= to {
		return spans
	}
	var out []Span
	at := 0
	for _, s := range spans {
		begin, end := max(from-at, 0), min(to-at, len(s.Text))
		if begin >= end {
			out = append(out, s)
		} else {
			for _, part := range []Span{
				{Text: s.Text[:begin], Class: s.Class},
				{Text: s.Text[begin:end], Class: s.Class, Changed: true},
				{Text: s.Text[end:], Class: s.Class},
			} {
				if part.Text != "" {
					out = append(out, part)
				}
			}
		}
		at += len(s.Text)
	}
	return out
}
