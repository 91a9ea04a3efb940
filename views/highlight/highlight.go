// Package highlight parts source text into tokens of five classes. It only ever colours: the text of
// the tokens put together is the text that came in, whatever the lexer made of it.
package highlight

import (
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// maxBytes is the longest text that is coloured.
const maxBytes = 200 << 10

// Token is a run of one line. Class is k (keyword), s (string), cm (comment), mi (number), nf (name of
// a function or type) or empty.
type Token struct {
	Text  string
	Class string
}

// Lexer colours one language. The zero Lexer leaves text plain, and so does every other after its
// time is up: foreign text must not buy CPU time.
type Lexer struct {
	lexer chroma.Lexer
	until time.Time
}

// ForFile is the lexer for a file's name.
func ForFile(path string, until time.Time) Lexer {
	return wrap(lexers.Match(path[strings.LastIndexByte(path, '/')+1:]), until)
}

// ForLanguage is the lexer for the info string of a fenced code block.
func ForLanguage(name string, until time.Time) Lexer {
	if name == "" || len(name) > 40 {
		return Lexer{}
	}
	return wrap(lexers.Get(name), until)
}

func wrap(l chroma.Lexer, until time.Time) Lexer {
	if l == nil {
		return Lexer{}
	}
	return Lexer{lexer: chroma.Coalesce(l), until: until}
}

// Lines tokenises source and parts it at its newlines, which are left out. There is one line more
// than newlines.
func (l Lexer) Lines(source string) [][]Token {
	if l.lexer == nil || source == "" || len(source) > maxBytes || time.Now().After(l.until) {
		return plain(source)
	}
	iterator, err := l.lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, source)
	if err != nil {
		return plain(source)
	}
	lines := [][]Token{nil}
	used := 0
	for token := iterator(); token != chroma.EOF; token = iterator() {
		value := token.Value
		// Some lexers add a newline at the end; anything else that is not the source is a fault.
		if rest := source[used:]; !strings.HasPrefix(rest, value) {
			if value != rest+"\n" {
				return plain(source)
			}
			value = rest
		}
		used += len(value)
		lines = appendToken(lines, value, class(token.Type))
		if time.Now().After(l.until) {
			return plain(source)
		}
	}
	if used != len(source) {
		return plain(source)
	}
	return lines
}

func appendToken(lines [][]Token, value, class string) [][]Token {
	for {
		line, rest, more := strings.Cut(value, "\n")
		if line != "" {
			lines[len(lines)-1] = append(lines[len(lines)-1], Token{Text: line, Class: class})
		}
		if !more {
			return lines
		}
		lines = append(lines, nil)
		value = rest
	}
}

func plain(source string) [][]Token {
	return appendToken([][]Token{nil}, source, "")
}

func class(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "cm"
	case t.InCategory(chroma.Keyword):
		return "k"
	case t.InSubCategory(chroma.LiteralString):
		return "s"
	case t.InSubCategory(chroma.LiteralNumber):
		return "mi"
	case t == chroma.NameFunction, t == chroma.NameClass, t == chroma.NameTag:
		return "nf"
	default:
		return ""
	}
}
