package tools

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/agent"
)

// document is a file as edits see it: without a byte order mark and with LF line endings, and
// the way back to the bytes of the file.
type document struct {
	raw  string
	text string
	bom  int
	crlf []int // where in text stands a newline that is CRLF in raw
}

func newDocument(raw string) document {
	d := document{raw: raw}
	body := raw
	if strings.HasPrefix(raw, utf8BOM) {
		d.bom = len(utf8BOM)
		body = raw[d.bom:]
	}
	for i := 0; ; {
		j := strings.Index(body[i:], "\r\n")
		if j < 0 {
			break
		}
		d.crlf = append(d.crlf, i+j-len(d.crlf))
		i += j + 2
	}
	d.text = lf(body)
	return d
}

// offset is where in raw the byte i of text stands.
func (d document) offset(i int) int {
	return d.bom + i + sort.SearchInts(d.crlf, i)
}

// native gives s, which replaces text[start:end], the line ending of its place: that of the lines
// replaced when they agree, else the one that most of the file has.
func (d document) native(s string, start, end int) string {
	newlines, crlf := strings.Count(d.text[start:end], "\n"), sort.SearchInts(d.crlf, end)-sort.SearchInts(d.crlf, start)
	if newlines == 0 || (crlf > 0 && crlf < newlines) {
		newlines, crlf = strings.Count(d.text, "\n"), len(d.crlf)
	}
	if crlf*2 > newlines {
		return strings.ReplaceAll(s, "\n", "\r\n")
	}
	return s
}

// span replaces text[start:end] of a document by new.
type span struct {
	start, end int
	new        string
	how        matchKind
}

// edited is a file after its edits.
type edited struct {
	text           string // the file's bytes
	blocks         int    // replaced
	lines          []int  // where the first of them stood, from 1
	how            matchKind
	diff           string
	added, removed int
}

// apply makes all edits on one original, or none. The second result says why none. onlyExact leaves out
// the looser steps of locate.
func apply(path, raw string, edits []replacement, onlyExact bool) (edited, *agent.Result) {
	if !utf8.ValidString(raw) {
		r := agent.Failed("not_utf8", "%s is not UTF-8 text. Change it with bash, for example with sed.", path)
		return edited{}, &r
	}
	doc := newDocument(raw)
	var spans []span
	done := edited{}
	for i, e := range edits {
		found, r := locate(path, doc.text, e, onlyExact)
		if line := placeholder(e.new, doc.text); r == nil && line > 0 {
			r = omitted("newText", line)
		}
		if r != nil {
			if len(edits) > 1 {
				r.Text += fmt.Sprintf(" (edits[%d]; none of the %d edits was applied.)", i, len(edits))
			}
			return edited{}, r
		}
		spans = append(spans, found...)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(spans); i++ {
		if spans[i].start < spans[i-1].end {
			r := agent.Failed("overlap", "two edits touch the same text of %s at line %d. Merge them into one edit. None was applied.", path, lineAt(doc.text, spans[i].start))
			return edited{}, &r
		}
	}
	for i := range spans {
		if i < shownLines {
			done.lines = append(done.lines, lineAt(doc.text, spans[i].start))
		}
		done.how = max(done.how, spans[i].how)
		spans[i] = narrow(doc.text, spans[i])
	}
	done.blocks = len(spans)
	done.text = replaceSpans(doc, spans)
	if done.text == raw {
		r := agent.Failed("no_change", "the edit leaves %s as it is. If that is what you want, no edit is needed.", path)
		return edited{}, &r
	}
	done.diff, done.added, done.removed = diffSpans(doc.text, spans)
	return done, nil
}

// replaceSpans copies raw and puts the new texts in. Everything outside the spans is copied as it is.
func replaceSpans(doc document, spans []span) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(doc.raw[at:doc.offset(s.start)])
		b.WriteString(doc.native(s.new, s.start, s.end))
		at = doc.offset(s.end)
	}
	b.WriteString(doc.raw[at:])
	return b.String()
}

// narrow leaves out the lines at both ends that a replacement does not change, so that they keep
// their own line endings and spaces.
func narrow(text string, s span) span {
	same := func(a, b string) bool { return a == b }
	if s.how == matchFolded {
		same = func(a, b string) bool { return foldLine(a) == foldLine(b) }
	}
	old, new := strings.SplitAfter(text[s.start:s.end], "\n"), strings.SplitAfter(s.new, "\n")
	for len(old) > 0 && len(new) > 0 && strings.HasSuffix(old[0], "\n") && same(old[0], new[0]) {
		s.start += len(old[0])
		old, new = old[1:], new[1:]
	}
	for len(old) > 0 && len(new) > 0 && same(old[len(old)-1], new[len(new)-1]) {
		s.end -= len(old[len(old)-1])
		old, new = old[:len(old)-1], new[:len(new)-1]
	}
	s.new = strings.Join(new, "")
	return s
}

// lineAt is the number of the line, from 1, that holds byte i.
func lineAt(text string, i int) int { return strings.Count(text[:i], "\n") + 1 }

// shownLines bounds the line numbers in a message.
const shownLines = 20

func (e edited) report(path string) string {
	word := "line"
	if e.blocks > 1 {
		word = "lines"
	}
	return fmt.Sprintf("Replaced %s in %s (%s %s%s).\n%s",
		plural(e.blocks, "block"), path, word, numbers(e.lines, e.blocks), e.how.note(), visible(e.diff))
}

// numbers lists line numbers; total says how many there are.
func numbers(lines []int, total int) string {
	var b strings.Builder
	for i, n := range lines {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	if total > len(lines) {
		b.WriteString(", …")
	}
	return b.String()
}
