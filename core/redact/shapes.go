package redact

import (
	"regexp"
	"strings"
)

// shape is a kind of token that can be told by its look. A pattern with two groups keeps these
// readable around the mark. digit demands a digit, which tells a token from a hyphenated word. may
// rules most texts out at a hundredth of the pattern's price.
type shape struct {
	pattern *regexp.Regexp
	digit   bool
	may     func(s string) bool
}

var tokenShapes = []shape{
	{pattern: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----` +
		`(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\n|")*[A-Za-z0-9+/=]{16,})*)`), may: all("-----BEGIN ", "PRIVATE KEY")},
	// GitHub's own, the short ones and ghs_APPID_JWT. Before it may stand an escape such as %3A or \n.
	{pattern: regexp.MustCompile(`(\b|%[0-9A-Fa-f]{2}|\\[a-z])gh[a-z]_[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]+)*()`), may: githubPrefix},
	{pattern: regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}`), may: all("github_pat_")},
	{pattern: regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{16,}`), may: all("glpat-")},
	{pattern: regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}`), digit: true, may: all("sk-")},
	{pattern: regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`), may: all("IA")},
	{pattern: regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`), may: all("AIza")},
	{pattern: regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{10,}`), may: all("xox")},
	{pattern: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}`), may: all("npm_")},
	{pattern: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`), may: all("eyJ", ".eyJ")},
	{pattern: regexp.MustCompile(basicAccess + `[A-Za-z0-9+/_-]{8,}={0,2}`), may: all(basicAccess)},
	{pattern: regexp.MustCompile(`(x-access-token(?::|%3[Aa]))[^\s@"'\[\]]{4,}()`), may: all("x-access-token")},
	{pattern: regexp.MustCompile(`(\b[a-z][a-z0-9+.-]*://[^\s/:@"'\[\]]*:)[^\s/@"'\[\]]{4,}(@)`), may: all("://", "@")},
	{pattern: regexp.MustCompile(`((?i:\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+))[^\s"'\[\]]{8,}()`), may: authorization},
}

// basicAccess is how the header of basic authentication begins, in base64, for GitHub's installation
// tokens: x-access-token: has fifteen bytes, so that what follows cannot change it.
const basicAccess = "eC1hY2Nlc3MtdG9rZW46"

// all says whether a text holds each of the parts.
func all(parts ...string) func(string) bool {
	return func(s string) bool {
		for _, part := range parts {
			if !strings.Contains(s, part) {
				return false
			}
		}
		return true
	}
}

// githubPrefix looks for ghp_, ghs_ and their like.
func githubPrefix(s string) bool {
	for i := strings.Index(s, "gh"); i >= 0 && i+3 < len(s); {
		if s[i+3] == '_' {
			return true
		}
		next := strings.Index(s[i+2:], "gh")
		if next < 0 {
			return false
		}
		i += 2 + next
	}
	return false
}

// authorization looks for the word in any case.
func authorization(s string) bool {
	const word = "authorization"
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == 'a' && s[i+1]|0x20 == 'u' && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// shapes replaces what looks like a token and counts the replacements.
func shapes(s string) (string, int) {
	n := 0
	for _, shape := range tokenShapes {
		if !shape.may(s) || !shape.pattern.MatchString(s) {
			continue
		}
		s = shape.pattern.ReplaceAllStringFunc(s, func(match string) string {
			if shape.digit && !strings.ContainsAny(match, "0123456789") {
				return match
			}
			n++
			if groups := shape.pattern.FindStringSubmatch(match); len(groups) == 3 {
				return groups[1] + Mark + groups[2]
			}
			return Mark
		})
	}
	return s, n
}
