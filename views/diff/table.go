package diff

import (
	"context"
	"html"
	"io"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"agent-sandboxing/views/text"
)

// Table writes the rows of a file's hunks. It writes by hand, because a diff is thousands of rows and
// space between two tags would be part of the code; every text passes escape.
func Table(f File) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		b.WriteString(`<table class="diff-table">`)
		for _, h := range f.Hunks {
			b.WriteString(`<tr class="l-hunk"><td colspan="4">`)
			escape(&b, h.Header)
			if h.Scope != "" {
				b.WriteByte(' ')
				escape(&b, h.Scope)
			}
			b.WriteString("</td></tr>")
			for _, l := range h.Lines {
				writeLine(&b, f.Index, l)
			}
		}
		b.WriteString("</table>")
		_, err := io.WriteString(w, b.String())
		return err
	})
}

func writeLine(b *strings.Builder, file int, l Line) {
	switch l.Kind {
	case '+':
		b.WriteString(`<tr class="l-add" id="f`)
	case '-':
		b.WriteString(`<tr class="l-del" id="f`)
	default:
		b.WriteString(`<tr id="f`)
	}
	b.WriteString(strconv.Itoa(file))
	if l.Kind == '-' {
		b.WriteByte('L')
		b.WriteString(strconv.Itoa(l.Old))
	} else {
		b.WriteByte('R')
		b.WriteString(strconv.Itoa(l.New))
	}
	b.WriteString(`">`)
	writeNumber(b, l.Old)
	writeNumber(b, l.New)
	switch l.Kind {
	case '+':
		b.WriteString(`<td class="m">+</td>`)
	case '-':
		b.WriteString(`<td class="m">−</td>`)
	default:
		b.WriteString(`<td></td>`)
	}
	b.WriteString(`<td class="c">`)
	for _, s := range l.Spans {
		writeSpan(b, s)
	}
	if l.NoEOL {
		b.WriteString(`<span class="uc" title="No newline at the end of the file">no newline</span>`)
	}
	b.WriteString("</td></tr>")
}

func writeNumber(b *strings.Builder, n int) {
	if n == 0 {
		b.WriteString(`<td class="n"></td>`)
		return
	}
	b.WriteString(`<td class="n" data-n="`)
	b.WriteString(strconv.Itoa(n))
	b.WriteString(`"></td>`)
}

func writeSpan(b *strings.Builder, s Span) {
	class := s.Class
	if s.Changed {
		class = strings.TrimSpace(class + " w")
	}
	if class == "" {
		escape(b, s.Text)
		return
	}
	b.WriteString(`<span class="`)
	b.WriteString(class)
	b.WriteString(`">`)
	escape(b, s.Text)
	b.WriteString("</span>")
}

// escape writes untrusted text with its hidden characters made visible.
func escape(b *strings.Builder, s string) {
	for _, p := range text.Visible(s) {
		if p.Code == "" {
			b.WriteString(html.EscapeString(p.Text))
			continue
		}
		b.WriteString(`<span class="uc" title="`)
		b.WriteString(p.Code + " " + p.Name)
		b.WriteString(`">`)
		b.WriteString(p.Code)
		b.WriteString("</span>")
	}
}
