package publish

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// gap is a zero-width space: it takes the meaning out of a word without changing how it reads.
const gap = "\u200b"

var (
	mention = regexp.MustCompile(`(^|[^A-Za-z0-9_])@([A-Za-z0-9])`)
	closing = regexp.MustCompile(`(?i)\b(clos|fix|resolv)(e|es|ed)?(:?\s+)(#|GH-|https?://|[\w.-]+/[\w.-]+#)`)
	// reference is a number of an issue, which GitHub would tell that it was mentioned. &#39; is none.
	reference = regexp.MustCompile(`(^|[^&])(#|\bGH-)([0-9])`)
	skipCI    = regexp.MustCompile(`(?i)\[(skip ci|ci skip|no ci|skip actions|actions skip)\]`)
	// forged are lines by which a commit message speaks for others or steers checks.
	forged = regexp.MustCompile(`(?im)^[ \t]*(co-authored-by|signed-off-by|on-behalf-of|skip-checks|agent-session)[ \t]*:.*\n?`)
	// loads are the elements by which a text can fetch from elsewhere, and comments, which can hide.
	loads = regexp.MustCompile(`(?i)<(!|/?(img|image|picture|source|video|audio|svg|iframe|object|embed|input|link|style|script)\b)`)
)

// cleanText makes foreign markdown harmless on GitHub: it notifies nobody, closes nothing, fetches
// nothing, refers to nothing, hides nothing and cannot forge our marks.
func cleanText(s string) string {
	s = strings.ReplaceAll(plain(s), gap, "")
	s = mention.ReplaceAllString(s, "$1@"+gap+"$2")
	s = closing.ReplaceAllString(s, "$1"+gap+"$2$3$4")
	s = reference.ReplaceAllString(s, "$1$2"+gap+"$3")
	s = skipCI.ReplaceAllString(s, "["+gap+"$1]")
	s = strings.ReplaceAll(s, "![", "!"+gap+"[")
	return loads.ReplaceAllString(s, "&lt;$1")
}

// ownText is a person's markdown as they wrote it: it may notify, refer and close as in GitHub's own form.
// It only cannot forge our marks. What was made harmless before stays so.
func ownText(s string) string { return withoutMarks(plain(s)) }

// withoutMarks takes the meaning out of what looks like our marks.
func withoutMarks(s string) string {
	return strings.ReplaceAll(s, "<!-- agent-session:", "&lt;!-- agent-session:")
}

// plain is valid text with \n alone at its ends of lines and without what cannot be seen, but for our gaps.
func plain(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && string(r) != gap && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, s)
}

// cleanLine is cleanText as one line of at most limit runes.
func cleanLine(s string, limit int) string { return oneLine(cleanText(s), limit) }

func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:limit-1])) + "…"
}
