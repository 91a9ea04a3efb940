package handlers

import (
	"fmt"
	"strings"

	"agent-sandboxing/core"
)

// manyFiles is how many changed files are worth a word before a publish.
const manyFiles = 50

// publishWarnings says what deserves a second look in a change.
func publishWarnings(files []core.ChangedFile) []string {
	var out []string
	if len(files) > manyFiles {
		out = append(out, fmt.Sprintf("The change touches %d files.", len(files)))
	}
	var workflows, modes []string
	for _, f := range files {
		switch {
		case strings.HasPrefix(f.Path, ".github/workflows/"), strings.HasPrefix(f.Path, ".github/actions/"):
			workflows = append(workflows, f.Path)
		case f.NewMode == "100755" && f.OldMode != "100755":
			modes = append(modes, f.Path)
		}
	}
	if len(workflows) > 0 {
		out = append(out, "Workflow files are changed: "+nameSome(workflows, 3)+". GitHub refuses the push unless the App may write workflows.")
	}
	if len(modes) > 0 {
		out = append(out, "Files become executable: "+nameSome(modes, 3)+".")
	}
	return out
}

// body is the proposed description: what was asked, and which files changed, from the records.
func (v sessionView) body() string {
	var b strings.Builder
	for _, t := range v.line.turns {
		if t.message.State != core.Completed {
			continue
		}
		for line := range strings.Lines(strings.TrimSpace(t.message.Text)) {
			b.WriteString("> " + strings.TrimRight(line, "\n") + "\n")
		}
		b.WriteString("\n")
	}
	if len(v.Changed) == 0 {
		return strings.TrimSpace(b.String())
	}
	additions, deletions := core.Totals(v.Changed)
	fmt.Fprintf(&b, "%s changed, +%d −%d:\n\n", plural(len(v.Changed), "file"), additions, deletions)
	for i, f := range v.Changed {
		if i == 20 {
			fmt.Fprintf(&b, "- and %d more\n", len(v.Changed)-i)
			break
		}
		fmt.Fprintf(&b, "- %s (%s)\n", codeSpan(f.Path), f.Status)
	}
	return strings.TrimSpace(b.String())
}

// codeSpan quotes a path, which may hold backticks and line ends, for markdown.
func codeSpan(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}
