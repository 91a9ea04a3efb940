package diff

import (
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"agent-sandboxing/views/text"
)

// split parts a patch before each "diff --git" line, so that one file that cannot be read does not
// take the others with it. A line of content never begins so: it has a sign before it.
func split(patch string) []string {
	const mark = "diff --git "
	var chunks []string
	start := 0
	for at := 0; at < len(patch); {
		if strings.HasPrefix(patch[at:], mark) && at > start {
			chunks = append(chunks, patch[start:at])
			start = at
		}
		next := strings.IndexByte(patch[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	if rest := patch[start:]; strings.TrimSpace(rest) != "" {
		chunks = append(chunks, rest)
	}
	return chunks
}

func parseFile(chunk string, open bool, b *budget) File {
	if len(chunk) > maxParseBytes {
		f := rawFile(chunk)
		f.Raw = ""
		f.Folded = "Too large to show"
		return f
	}
	files, _, err := gitdiff.Parse(strings.NewReader(chunk))
	if err != nil || len(files) != 1 || !complete(chunk, files[0]) {
		return rawFile(chunk)
	}
	f := describe(files[0], len(chunk))
	fragments := files[0].TextFragments
	f.Hidden = hiddenIn(fragments)
	f.EOL = lineEnds(fragments)
	f.NoNewline = endsBare(fragments)
	if open {
		f.Hunks, f.Cut = hunks(f.Path, fragments, maxOpenRows, b.until)
		return f
	}
	if f.Lines == 0 {
		return f
	}
	if f.Folded = f.fold(b); f.Folded != "" {
		return f
	}
	if f.Hunks, _ = hunks(f.Path, fragments, maxFileRows, b.until); !b.take(f.Hunks) {
		f.Hunks, f.Folded = nil, notLoaded
	}
	return f
}

const notLoaded = "Not loaded"

// complete says that every line of content in a patch was read: the parser passes over what it does
// not know, and a review must not.
func complete(chunk string, g *gitdiff.File) bool {
	if g.IsBinary {
		return true
	}
	read, written, content := 0, 0, false
	for _, t := range g.TextFragments {
		read += len(t.Lines)
	}
	for line := range strings.Lines(chunk) {
		switch {
		case strings.HasPrefix(line, "@@"):
			content = true
		case content && (line[0] == '+' || line[0] == '-' || line[0] == ' '):
			written++
		}
	}
	return read == written
}

// fold says why a file's lines are not shown at first, "" when they may be.
func (f File) fold(b *budget) string {
	switch {
	case f.Status == "deleted":
		return "Deleted file"
	case generated(f.Path):
		return "Generated file"
	case f.Lines > maxFileRows || f.Bytes > maxFileBytes:
		return "Large change"
	case !b.allows(f.Lines):
		return notLoaded
	default:
		return ""
	}
}

func describe(g *gitdiff.File, size int) File {
	f := File{
		Path:      g.NewName,
		Status:    "modified",
		Score:     g.Score,
		Binary:    g.IsBinary,
		Symlink:   isMode(g, 0o120000),
		Submodule: isMode(g, 0o160000),
		Bytes:     size,
	}
	switch {
	case g.IsNew:
		f.Status = "added"
	case g.IsDelete:
		f.Status, f.Path = "deleted", g.OldName
	case g.IsRename:
		f.Status, f.OldPath = "renamed", g.OldName
	case g.IsCopy:
		f.Status, f.OldPath = "copied", g.OldName
	case len(g.TextFragments) == 0 && !g.IsBinary && g.OldMode != g.NewMode:
		f.Status = "mode"
	}
	if f.Path == "" {
		f.Path = g.OldName
	}
	if g.OldMode != 0 && g.NewMode != 0 && g.OldMode != g.NewMode {
		f.OldMode, f.NewMode = octal(g.OldMode), octal(g.NewMode)
	}
	for _, t := range g.TextFragments {
		f.Additions += int(t.LinesAdded)
		f.Deletions += int(t.LinesDeleted)
		f.Lines += len(t.Lines)
	}
	return f
}

func isMode(g *gitdiff.File, kind os.FileMode) bool {
	return g.OldMode&0o170000 == kind || g.NewMode&0o170000 == kind
}

func octal(m os.FileMode) string { return fmt.Sprintf("%06o", uint32(m)) }

// rawFile keeps what could not be read; the path is taken from the first line for display only.
func rawFile(chunk string) File {
	first, _, _ := strings.Cut(chunk, "\n")
	name := strings.TrimPrefix(first, "diff --git ")
	if _, after, ok := strings.Cut(name, " b/"); ok {
		name = after
	}
	raw := chunk
	if len(raw) > maxRawBytes {
		raw = strings.ToValidUTF8(raw[:maxRawBytes], "") + "\n…"
	}
	return File{Path: strings.TrimSpace(name), Status: "modified", Raw: raw, Bytes: len(chunk), Hidden: text.HiddenCount(raw)}
}

// hiddenIn counts hidden characters in what the new file has.
func hiddenIn(fragments []*gitdiff.TextFragment) int {
	n := 0
	for _, t := range fragments {
		for _, l := range t.Lines {
			if l.Op != gitdiff.OpDelete {
				n += text.HiddenCount(strings.TrimRight(l.Line, "\r\n"))
			}
		}
	}
	return n
}

// lineEnds tells whether the line ends changed, which no row would show.
func lineEnds(fragments []*gitdiff.TextFragment) string {
	var count [2][2]int // old, new × LF, CRLF
	for _, t := range fragments {
		for _, l := range t.Lines {
			crlf := 0
			if strings.HasSuffix(l.Line, "\r\n") {
				crlf = 1
			}
			if l.Op != gitdiff.OpAdd {
				count[0][crlf]++
			}
			if l.Op != gitdiff.OpDelete {
				count[1][crlf]++
			}
		}
	}
	before, after := count[0][1] > count[0][0], count[1][1] > count[1][0]
	switch {
	case before && after:
		return "CRLF"
	case after && count[0][0] > 0:
		return "LF → CRLF"
	case before && count[1][0] > 0:
		return "CRLF → LF"
	case after:
		return "CRLF"
	default:
		return ""
	}
}

// endsBare is true when the new file's last shown line has no newline.
func endsBare(fragments []*gitdiff.TextFragment) bool {
	if len(fragments) == 0 {
		return false
	}
	lines := fragments[len(fragments)-1].Lines
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].Op != gitdiff.OpDelete {
			return !strings.HasSuffix(lines[i].Line, "\n")
		}
	}
	return false
}

// generated knows the files that nobody reads line by line.
func generated(p string) bool {
	base := path.Base(p)
	switch base {
	case "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "go.sum", "Cargo.lock", "poetry.lock", "uv.lock",
		"Gemfile.lock", "composer.lock", "bun.lock", "npm-shrinkwrap.json":
		return true
	}
	for _, suffix := range []string{".min.js", ".min.css", ".js.map", ".css.map", "_templ.go", ".pb.go", ".snap"} {
		if strings.HasSuffix(base, suffix) {
			return true
		}
	}
	for _, part := range strings.Split(path.Dir(p), "/") {
		if part == "vendor" || part == "node_modules" {
			return true
		}
	}
	return false
}
