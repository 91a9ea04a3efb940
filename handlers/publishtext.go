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
		case isWorkflow(f.Path) || isWorkflow(f.OldPath):
			workflows = append(workflows, f.Path)
		case f.NewMode == "100755" && f.OldMode != "100755":
			modes = append(modes, f.Path)
		}
	}
	if len(workflows) > 0 {
		out = append(out, "Workflow files are changed: "+nameSome(workflows, 3)+". The App may not publish them: leave them out below and make these changes yourself, or undo them.")
	}
	if len(modes) > 0 {
		out = append(out, "Files become executable: "+nameSome(modes, 3)+".")
	}
	return out
}

// body is the proposed description: what was asked, the first request always, a later one unless the title
// says it all. The platform adds the list of files itself.
func (v sessionView) body() string {
	var b strings.Builder
	for i, t := range v.line.turns {
		if t.message.State != core.Completed || i > 0 && strings.Join(strings.Fields(t.message.Text), " ") == v.Session.Title {
			continue
		}
		for line := range strings.Lines(strings.TrimSpace(t.message.Text)) {
			b.WriteString("> " + strings.TrimRight(line, "\n") + "\n")
		}
		b.WriteString("\n")
	}
	return strings.TrimSpace(b.String())
}
