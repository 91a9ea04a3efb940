package tools

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible makes text of a file fit to be sent and stored: bytes that are not UTF-8 become U+FFFD, and
// control characters that no text needs their pictures, as ␀ or ␛. Nothing is dropped, so that what
// was there stays known.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r == '\f' || r >= ' ' && r < 0x7f || r >= 0xa0:
			return r
		case r < ' ':
			return 0x2400 + r
		case r == 0x7f:
			return '\u2421'
		default: // the C1 controls have no pictures
			return utf8.RuneError
		}
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// unprintable says that a character of a name could end a line or steer a terminal.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

// printed spells a path of the workspace so that a tool takes it as it is, on one line. A name with
// control characters, which no tool takes, is quoted: it could pass for several.
func printed(p string) string {
	switch {
	case !utf8.ValidString(p) || strings.ContainsFunc(p, unprintable):
		return strconv.Quote(p)
	case strings.HasPrefix(p, "@"), strings.HasPrefix(p, "~"), strings.TrimSpace(p) == "": // which a tool takes for something else
		return "./" + p
	}
	return p
}

// printedAll is printed for names below dir.
func printedAll(dir string, names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = printed(path.Join(dir, name))
	}
	return all
}

// plural prints a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "ss"):
		noun += "es"
	case strings.HasSuffix(noun, "ry"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return thousands(n) + " " + noun
}

// thousands prints a count with commas: 81,234.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
