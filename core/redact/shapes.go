package redact

import (
	"regexp"
	"strings"
)

// shape is a kind of token that can be told by its look. A pattern with two groups keeps these
// readable around the mark. digit demands a digit, which tells a token from a hyphenated word.
type shape struct {
	pattern *regexp.Regexp
	digit   bool
}

var tokenShapes = []shape{
	{pattern: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----` +
		`(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\n|")*[A-Za-z0-9+/=]{16,})*)`)},
	{pattern: regexp.MustCompile(`\bgh[a-z]_[A-Za-z0-9_]{16,}(?:\.[A-Za-z0-9_-]+)*`)},
	{pattern: regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}`)},
	{pattern: regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{16,}`)},
	{pattern: regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}`), digit: true},
	{pattern: regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{pattern: regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`)},
	{pattern: regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{10,}`)},
	{pattern: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}`)},
	{pattern: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`)},
	{pattern: regexp.MustCompile(`(x-access-token:)[^\s@"'\[\]]{4,}()`)},
	{pattern: regexp.MustCompile(`(\b[a-z][a-z0-9+.-]*://[^\s/:@"'\[\]]*:)[^\s/@"'\[\]]{4,}(@)`)},
	{pattern: regexp.MustCompile(`((?i:\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+))[^\s"'\[\]]{8,}()`)},
}

// shapes replaces what looks like a token and counts the replacements.
func shapes(s string) (string, int) {
	n := 0
	for _, shape := range tokenShapes {
		if !shape.pattern.MatchString(s) {
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
