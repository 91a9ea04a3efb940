package components

import (
	"strings"
	"unicode/utf8"
)

// sayable is the state for the page's live region.
func sayable(s StatusProps) string {
	if s.Detail == "" {
		return s.Label
	}
	return s.Label + ", " + s.Detail
}

// clip cuts a text to n characters in one line.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
