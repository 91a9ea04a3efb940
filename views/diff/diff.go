// Package diff turns a git patch into files, hunks and lines that a page can show. It never fails:
// what it cannot read it keeps as raw text.
package diff

// Document is a whole patch.
type Document struct {
	Files     []File
	Additions int
	Deletions int
}

// File is one file of the patch.
type File struct {
	Index     int // place in the patch, from 0
	Path      string
	OldPath   string // of a rename or copy, "" otherwise
	Status    string // added, modified, deleted, renamed, copied, mode, type
	OldMode   string // "100644"; "" when it did not change
	NewMode   string
	Score     int // similarity of a rename in percent
	Additions int
	Deletions int
	Binary    bool
	Symlink   bool
	Submodule bool
	Hidden    int // places with hidden or bidirectional characters
	Hunks     []Hunk
	Raw       string // the patch text when it could not be read
	Lines     int    // rows of its hunks
	Bytes     int    // of its patch text
	Folded    string // why its lines are not shown at first, "" when they are
	NoNewline bool   // the new file ends without a newline
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

// Span is a run of one line's text.
type Span struct {
	Text    string
	Changed bool // differs from the paired line
}

// Options choose what is shown at first.
type Options struct {
	Open int // index of a file to show though it would be folded, -1 for none
}

// Parse reads a git patch.
func Parse(patch []byte, opt Options) Document {
	return Document{}
}
