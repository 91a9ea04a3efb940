// Package diff turns a git patch into files, hunks and lines that a page can show. It never fails:
// what it cannot read it keeps as raw text.
package diff

import (
	"cmp"
	"time"
)

// Document is a whole patch.
type Document struct {
	Files     []File
	Additions int
	Deletions int
	Hidden    int // places with hidden or bidirectional characters
}

// File is one file of the patch.
type File struct {
	Index     int // place in the patch, from 0
	Path      string
	OldPath   string // of a rename or copy, "" otherwise
	Status    string // added, modified, deleted, renamed, copied, mode
	OldMode   string // "100644"; "" when it did not change
	NewMode   string
	Score     int // similarity of a rename in percent
	Additions int
	Deletions int
	Binary    bool
	Symlink   bool
	Submodule bool
	Hidden    int    // places with hidden or bidirectional characters
	EOL       string // "LF → CRLF", "CRLF → LF" or "CRLF", "" for plain newlines
	NoNewline bool   // the new file ends without a newline
	Hunks     []Hunk // nil while Folded
	Raw       string // the patch text when it could not be read
	Lines     int    // rows of its hunks
	Bytes     int    // of its patch text
	Folded    string // why its lines are not shown at first, "" when they are
	Cut       int    // rows that are not shown even when it is opened
}

// Hunk is a run of lines.
type Hunk struct {
	Header string // "@@ -1,4 +1,6 @@"
	Scope  string // what git found before it: a function's name
	Lines  []Line
}

// Line is one row.
type Line struct {
	Kind  byte // ' ', '+' or '-'
	Old   int  // number before, 0 for none
	New   int  // number after, 0 for none
	Spans []Span
	NoEOL bool
}

// Span is a run of one line's text, untrusted.
type Span struct {
	Text    string
	Class   string // of highlight.Token
	Changed bool   // differs from the paired line
}

// Options choose what is shown at first.
type Options struct {
	// Open is the index of a file to show though it would be folded, -1 for none.
	Open int
	// Colour is how long all files together may take to be coloured; 0 is 2 s.
	Colour time.Duration
}

// What the first answer shows; the rest is behind links.
const (
	maxFiles      = 20
	maxRows       = 1500
	maxHTML       = 250 << 10 // estimated bytes of the rows
	rowHTML       = 115       // what a row costs beside its text
	spanHTML      = 24        // what a coloured span costs beside its text
	maxFileRows   = 400
	maxFileBytes  = 20 << 10
	maxOpenRows   = 4000 // of a file that was asked for
	maxLineBytes  = 2000
	maxParseBytes = 4 << 20 // of one file's patch
	maxRawBytes   = 20 << 10
	maxColour     = 2 * time.Second
)

// Parse reads a git patch.
func Parse(patch []byte, opt Options) Document {
	var doc Document
	budget := budget{files: maxFiles, rows: maxRows, html: maxHTML, until: time.Now().Add(cmp.Or(opt.Colour, maxColour))}
	for i, chunk := range split(string(patch)) {
		f := parseFile(chunk, i == opt.Open, &budget)
		f.Index = i
		doc.Additions += f.Additions
		doc.Deletions += f.Deletions
		doc.Hidden += f.Hidden
		doc.Files = append(doc.Files, f)
	}
	return doc
}

// budget is what the page may still show.
type budget struct {
	files, rows, html int
	until             time.Time // when colouring ends
}

// allows says whether a file of so many rows may be tried.
func (b *budget) allows(rows int) bool { return b.files > 0 && b.rows >= rows && b.html > 0 }

// take counts a file's rows. A file that is too much for the rest ends the budget, so that no later
// one is made in vain.
func (b *budget) take(hunks []Hunk) bool {
	rows, cost := 0, 0
	for _, h := range hunks {
		rows += len(h.Lines)
		for _, l := range h.Lines {
			cost += rowHTML
			for _, s := range l.Spans {
				cost += len(s.Text)
				if s.Class != "" || s.Changed {
					cost += spanHTML
				}
			}
		}
	}
	if cost > b.html {
		b.files = 0
		return false
	}
	b.files--
	b.rows -= rows
	b.html -= cost
	return true
}
