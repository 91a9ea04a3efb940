package diff

import (
	"cmp"
	"strconv"
	"strings"
)

// Badge is a fact about a file that its lines do not show.
type Badge struct {
	Text string
	Warn bool // a reviewer should stop at it
}

// Badges are the file's facts in the order in which they matter.
func (f File) Badges() []Badge {
	var out []Badge
	add := func(text string, warn bool) { out = append(out, Badge{Text: text, Warn: warn}) }
	switch f.Status {
	case "added":
		add("new", false)
	case "deleted":
		add("deleted", false)
	case "renamed", "copied":
		if f.Score > 0 && f.Score < 100 {
			add(f.Status+" "+strconv.Itoa(f.Score)+" %", false)
		} else {
			add(f.Status, false)
		}
	}
	if f.Hidden > 0 {
		add("hidden characters", true)
	}
	if f.OldMode != "" {
		add(modeText(f.OldMode, f.NewMode), true)
	}
	if f.Binary {
		add("binary", false)
	}
	if f.Symlink {
		add("symlink", true)
	}
	if f.Submodule {
		add("submodule", true)
	}
	if f.EOL != "" {
		add(f.EOL, strings.Contains(f.EOL, "→"))
	}
	if f.NoNewline {
		add("no newline at end", false)
	}
	return out
}

// Loadable says that a folded file can be opened.
func (f File) Loadable() bool { return f.Bytes <= maxParseBytes }

// EmptyText says in words why a file has no lines.
func (f File) EmptyText() string {
	switch {
	case f.Binary:
		return "A binary file; its content is not shown."
	case f.Status == "renamed":
		return "Renamed without changes."
	case f.Status == "copied":
		return "Copied without changes."
	case f.Status == "mode":
		return "Only the mode changed."
	case f.Status == "added":
		return "An empty file."
	default:
		return "No lines changed."
	}
}

// modeText tells an executable bit in words and every other mode by its number.
func modeText(before, after string) string {
	switch {
	case before == "100644" && after == "100755":
		return "made executable"
	case before == "100755" && after == "100644":
		return "no longer executable"
	default:
		return "mode " + before + " → " + after
	}
}

// Folder is the files of one folder, in the patch's order.
type Folder struct {
	Name  string // with a slash at the end, "./" for the top
	Files []File
}

// Folders groups the files for the list beside the diff.
func (d Document) Folders() []Folder {
	var out []Folder
	at := make(map[string]int)
	for _, f := range d.Files {
		name := f.Path[:strings.LastIndexByte(f.Path, '/')+1]
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			out = append(out, Folder{Name: cmp.Or(name, "./")})
		}
		out[i].Files = append(out[i].Files, f)
	}
	return out
}
