package redact

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Clean turns what a program wrote for a terminal into plain text: escape sequences go, a line
// that was rewritten with carriage returns shows its last state, control characters other than
// newline and tab are dropped, and invalid UTF-8 becomes U+FFFD.
func Clean(s string) string {
	if plain(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	b.Grow(len(s))
	// Line by line, so that an escape sequence which never ends hides one line and not the rest.
	for line := range strings.Lines(s) {
		text, newline := strings.CutSuffix(line, "\n")
		text = strings.TrimRight(text, "\r")
		if i := strings.LastIndexByte(text, '\r'); i >= 0 {
			text = text[i+1:]
		}
		b.WriteString(strings.Map(printable, ansi.Strip(text)))
		if newline {
			b.WriteByte('\n')
		}
	}
	// Stripping a sequence may leave bytes that were valid only together.
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// plain says that Clean has nothing to do, which is the common case.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || c == 0xc2 {
			return false // 0xc2 begins the C1 controls
		}
	}
	return utf8.ValidString(s)
}

// printable drops the C0 and C1 controls, but shows that there was a NUL.
func printable(r rune) rune {
	if r == 0 {
		return utf8.RuneError
	}
	if r == '\t' || r >= 0x20 && r < 0x7f || r >= 0xa0 {
		return r
	}
	return -1
}

// Size prints a number of bytes for people: 812 bytes, 1.2 MiB.
func Size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}
