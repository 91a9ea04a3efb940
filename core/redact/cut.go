package redact

import (
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Cut returns s, or its beginning and an ellipsis, in at most limit bytes. A rune is never split;
// s must be valid UTF-8 for the result to be.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if limit < len(ellipsis) {
		return Head(s, limit)
	}
	return Head(s, limit-len(ellipsis)) + ellipsis
}

// Head returns at most limit bytes from the beginning of s, whole runes only.
func Head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Tail returns at most limit bytes from the end of s, whole runes only.
func Tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	start := len(s) - max(limit, 0)
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return s[start:]
}

// Ends keeps head bytes from the beginning and tail bytes from the end of s, and says between them
// how many bytes are left out. It returns s itself when that is not shorter.
func Ends(s string, head, tail int) string {
	if len(s) <= head+tail {
		return s
	}
	first, last := Head(s, head), Tail(s, tail)
	out := first + "\n[… " + Size(int64(len(s)-len(first)-len(last))) + " left out …]\n" + last
	if len(out) >= len(s) {
		return s
	}
	return out
}

// Line is s as one line in at most limit bytes: runs of white space become one space.
func Line(s string, limit int) string {
	return Cut(strings.Join(strings.Fields(s), " "), limit)
}
