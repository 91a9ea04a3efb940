package bashpolicy

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one argument after quote removal. bare marks the bytes of text that stood unquoted; only
// there can *, ? and [ be patterns.
type word struct {
	text string
	bare []bool
	glob bool // an unquoted pattern character is in it
}

func literal(text string) word { return word{text: text, bare: make([]bool, len(text))} }

// readWord takes the quotes off a word. Anything that the shell would expand, but for file name
// patterns, is refused.
func readWord(w *syntax.Word) (word, *Refusal) {
	var build wordBuilder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			build.addBare(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				return word{}, refuse("expansion_not_allowed", "No $'…'. Write the characters themselves in plain quotes.")
			}
			build.addQuoted(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar {
				return word{}, refuse("expansion_not_allowed", "No $\"…\". Use plain quotes.")
			}
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return word{}, refuseExpansion(inner)
				}
				build.addQuoted(unescapeQuoted(lit.Value))
			}
		default:
			return word{}, refuseExpansion(part)
		}
	}
	out := word{text: string(build.text), bare: build.bare, glob: build.glob}
	if out.tilde() {
		return word{}, refuse("expansion_not_allowed", "~ is outside the workspace. Use a path relative to the repository root.")
	}
	if out.braces() {
		return word{}, refuse("expansion_not_allowed", "No brace expansion. Write each argument out, or quote it when it is text.")
	}
	return out, nil
}

func refuseExpansion(part syntax.WordPart) *Refusal {
	switch part.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst:
		return refuse("substitution_not_allowed", "No command or process substitution. Run the inner command first and use what it prints, or join with |.")
	case *syntax.ParamExp, *syntax.ArithmExp:
		return refuse("expansion_not_allowed", "No variables or arithmetic. Write the value itself, or use single quotes when $ is meant as text.")
	}
	return refuse("expansion_not_allowed", "No extended patterns. Use *, ? and […], or the find tool.")
}

// wordBuilder gathers the bytes of a word.
type wordBuilder struct {
	text []byte
	bare []bool
	glob bool
}

// addBare adds an unquoted literal: a backslash makes the next character literal, and at the end
// of a line it joins the lines.
func (w *wordBuilder) addBare(s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] != '\n' {
				w.add(s[i], false)
			}
			continue
		}
		w.add(s[i], true)
		w.glob = w.glob || strings.IndexByte("*?[", s[i]) >= 0
	}
}

func (w *wordBuilder) addQuoted(s string) {
	for i := range len(s) {
		w.add(s[i], false)
	}
}

func (w *wordBuilder) add(c byte, bare bool) {
	w.text = append(w.text, c)
	w.bare = append(w.bare, bare)
}

// unescapeQuoted applies the escapes that work inside double quotes.
func unescapeQuoted(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`", `\"`, `"`, "\\\n", "").Replace(s)
}

// tilde says that bash may put a home directory in place of a ~ in w.
func (w word) tilde() bool {
	for i := range len(w.text) {
		if w.text[i] == '~' && w.bare[i] && (i == 0 || w.bare[i-1] && strings.IndexByte("=:", w.text[i-1]) >= 0) {
			return true
		}
	}
	return false
}

// braces says that bash would expand braces in w.
func (w word) braces() bool {
	open, several := false, false
	for i := range len(w.text) {
		if !w.bare[i] {
			continue
		}
		switch w.text[i] {
		case '{':
			open = true
		case ',':
			several = several || open
		case '.':
			several = several || open && i > 0 && w.text[i-1] == '.'
		case '}':
			if several {
				return true
			}
		}
	}
	return false
}

// render writes w so that every shell reads the same value: single quotes around everything but the
// patterns, which stand bare.
func (w word) render() string {
	if !w.glob {
		return quote(w.text)
	}
	var b strings.Builder
	var quoted []byte
	for i := range len(w.text) {
		c := w.text[i]
		if !w.bare[i] || !plainByte(c) {
			quoted = append(quoted, c)
			continue
		}
		if len(quoted) > 0 {
			b.WriteString(quote(string(quoted)))
			quoted = nil
		}
		// [^…] is not in every shell, [!…] is.
		if c == '^' && i > 0 && w.text[i-1] == '[' && w.bare[i-1] {
			c = '!'
		}
		b.WriteByte(c)
	}
	if len(quoted) > 0 {
		b.WriteString(quote(string(quoted)))
	}
	return b.String()
}

func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// plainByte says that c may stand bare in a word with a pattern.
func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte("*?[]!^-_./:,%+@", c) >= 0
}

// segments are the parts of w between slashes.
func (w word) segments() []string { return strings.Split(w.text, "/") }

// mayBe says that a part of a path in w is name, or a pattern that matches it.
func (w word) mayBe(name string) bool {
	for _, s := range w.segments() {
		if s == name {
			return true
		}
		if !w.glob || !strings.HasPrefix(s, ".") {
			continue // patterns do not match a leading dot
		}
		pattern := strings.NewReplacer("[!", "[^").Replace(s)
		if ok, err := path.Match(pattern, name); ok || err != nil {
			return true
		}
	}
	return false
}

// from is w without its first n bytes.
func (w word) from(n int) word {
	return word{text: w.text[n:], bare: w.bare[n:], glob: w.glob}
}
