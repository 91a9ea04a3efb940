package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Piece is a run of untrusted text. Code is set for a single character that a reader would not see,
// or that would change the order of what they see: "U+202E".
type Piece struct {
	Text string
	Code string
	Name string // of the character: "RIGHT-TO-LEFT OVERRIDE"
}

// Visible parts untrusted text into plain runs and hidden characters. Bytes that are no UTF-8 become
// pieces too. Tabs and newlines stay in the runs.
func Visible(s string) []Piece {
	if !hasHidden(s) {
		if s == "" {
			return nil
		}
		return []Piece{{Text: s}}
	}
	var pieces []Piece
	start := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		code, name := "", ""
		if r == utf8.RuneError && n == 1 {
			code, name = fmt.Sprintf("0x%02X", s[i]), "not UTF-8"
		} else if hidden := hiddenName(r); hidden != "" {
			code, name = fmt.Sprintf("U+%04X", r), hidden
		}
		if code != "" {
			if start < i {
				pieces = append(pieces, Piece{Text: s[start:i]})
			}
			pieces = append(pieces, Piece{Code: code, Name: name})
			start = i + n
		}
		i += n
	}
	if start < len(s) {
		pieces = append(pieces, Piece{Text: s[start:]})
	}
	return pieces
}

// HiddenCount is how many hidden characters Visible would show.
func HiddenCount(s string) int {
	if !hasHidden(s) {
		return 0
	}
	n := 0
	for _, p := range Visible(s) {
		if p.Code != "" {
			n++
		}
	}
	return n
}

func hasHidden(s string) bool {
	if !utf8.ValidString(s) {
		return true
	}
	return strings.ContainsFunc(s, func(r rune) bool { return hiddenName(r) != "" })
}

// hiddenName names a character that changes text without being seen, "" for every other.
func hiddenName(r rune) string {
	switch {
	case r == '\t' || r == '\n':
		return ""
	case r < 0x20 || (r >= 0x7F && r < 0xA0):
		return "CONTROL CHARACTER"
	case r >= 0xE0000 && r <= 0xE007F:
		return "TAG CHARACTER"
	}
	switch r {
	case 0x00AD:
		return "SOFT HYPHEN"
	case 0x034F:
		return "COMBINING GRAPHEME JOINER"
	case 0x061C:
		return "ARABIC LETTER MARK"
	case 0x115F, 0x1160, 0x3164, 0xFFA0:
		return "HANGUL FILLER"
	case 0x180E:
		return "MONGOLIAN VOWEL SEPARATOR"
	case 0x200B:
		return "ZERO WIDTH SPACE"
	case 0x200C:
		return "ZERO WIDTH NON-JOINER"
	case 0x200D:
		return "ZERO WIDTH JOINER"
	case 0x200E:
		return "LEFT-TO-RIGHT MARK"
	case 0x200F:
		return "RIGHT-TO-LEFT MARK"
	case 0x2028:
		return "LINE SEPARATOR"
	case 0x2029:
		return "PARAGRAPH SEPARATOR"
	case 0x202A:
		return "LEFT-TO-RIGHT EMBEDDING"
	case 0x202B:
		return "RIGHT-TO-LEFT EMBEDDING"
	case 0x202C:
		return "POP DIRECTIONAL FORMATTING"
	case 0x202D:
		return "LEFT-TO-RIGHT OVERRIDE"
	case 0x202E:
		return "RIGHT-TO-LEFT OVERRIDE"
	case 0x2060:
		return "WORD JOINER"
	case 0x2061, 0x2062, 0x2063, 0x2064:
		return "INVISIBLE OPERATOR"
	case 0x2066:
		return "LEFT-TO-RIGHT ISOLATE"
	case 0x2067:
		return "RIGHT-TO-LEFT ISOLATE"
	case 0x2068:
		return "FIRST STRONG ISOLATE"
	case 0x2069:
		return "POP DIRECTIONAL ISOLATE"
	case 0xFEFF:
		return "ZERO WIDTH NO-BREAK SPACE"
	}
	return ""
}
