package diff

import (
	"strings"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"agent-sandboxing/views/highlight"
)

// hunks makes at most limit rows of a file's fragments and says how many are left out. Rows that are
// made after until have no colours.
func hunks(path string, fragments []*gitdiff.TextFragment, limit int, until time.Time) ([]Hunk, int) {
	lexer := highlight.ForFile(path, until)
	var out []Hunk
	cut := 0
	for _, t := range fragments {
		lines := t.Lines
		if len(lines) > limit {
			cut += len(lines) - limit
			lines = lines[:limit]
		}
		if len(lines) == 0 {
			continue
		}
		limit -= len(lines)
		header, _, _ := strings.Cut(t.Header(), "\n")
		if at := strings.LastIndex(header, "@@"); at > 0 {
			header = header[:at+2]
		}
		h := Hunk{Header: header, Scope: t.Comment, Lines: rows(lines, int(t.OldPosition), int(t.NewPosition))}
		colour(h.Lines, lexer)
		markWords(h.Lines)
		out = append(out, h)
	}
	return out, cut
}

func rows(lines []gitdiff.Line, old, after int) []Line {
	out := make([]Line, 0, len(lines))
	for _, l := range lines {
		row := Line{NoEOL: !strings.HasSuffix(l.Line, "\n")}
		content := strings.TrimSuffix(strings.TrimSuffix(l.Line, "\n"), "\r")
		if len(content) > maxLineBytes {
			content = strings.ToValidUTF8(content[:maxLineBytes], "") + "…"
		}
		row.Spans = []Span{{Text: content}}
		switch l.Op {
		case gitdiff.OpAdd:
			row.Kind, row.New = '+', after
			after++
		case gitdiff.OpDelete:
			row.Kind, row.Old = '-', old
			old++
		default:
			row.Kind, row.Old, row.New = ' ', old, after
			old++
			after++
		}
		out = append(out, row)
	}
	return out
}

// colour gives the lines of a hunk their tokens: removed lines as they stood in the old text, all
// others as they stand in the new one.
func colour(lines []Line, lexer highlight.Lexer) {
	for _, removed := range []bool{true, false} {
		var source strings.Builder
		var at []int
		for i, l := range lines {
			if (removed && l.Kind == '+') || (!removed && l.Kind == '-') {
				continue
			}
			source.WriteString(l.Spans[0].Text)
			source.WriteByte('\n')
			at = append(at, i)
		}
		if len(at) == 0 {
			continue
		}
		tokens := lexer.Lines(source.String())
		if len(tokens) < len(at) {
			continue
		}
		for n, i := range at {
			if (lines[i].Kind == '-') == removed {
				lines[i].Spans = spans(tokens[n], lines[i].Spans)
			}
		}
	}
}

// spans takes tokens for a line's text when there are any.
func spans(tokens []highlight.Token, whole []Span) []Span {
	if len(tokens) == 0 {
		return whole
	}
	out := make([]Span, len(tokens))
	for i, t := range tokens {
		out[i] = Span{Text: t.Text, Class: t.Class}
	}
	return out
}
