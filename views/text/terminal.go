package text

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Terminal is what a person would have read of a program's output: escape sequences are gone, a line
// that the program drew over keeps its last drawing, control characters other than tab and newline
// are dropped. Other hidden characters stay for Visible.
func Terminal(s string) string {
	s = strings.ReplaceAll(ansi.Strip(s), "\r\n", "\n")
	if !strings.ContainsFunc(s, isControl) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		if at := strings.LastIndexByte(line, '\r'); at >= 0 {
			line = line[at+1:]
		}
		lines[i] = strings.Map(func(r rune) rune {
			if isControl(r) {
				return -1
			}
			return r
		}, line)
	}
	return strings.Join(lines, "\n")
}

func isControl(r rune) bool {
	return r != '\t' && r != '\n' && (r < 0x20 || (r >= 0x7F && r < 0xA0))
}
