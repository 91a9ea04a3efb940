package agent

import (
	"fmt"
	"slices"
	"strings"

	"agent-sandboxing/core/redact"
)

// headings are those of a session's summary that a model writes, in their order.
func headings() []string {
	return []string{"Objective", "Constraints from the user", "State", "Result of this turn", "Blockers", "Files", "Next"}
}

const (
	headingFiles = "Files"
	// The platform writes what follows these two.
	headingFacts = "Platform facts"
	headingLater = "Later turns"

	nothing = "none"
)

// outline is a session's summary in its parts.
type outline struct {
	parts map[string]string // by heading; empty when no model has written one yet
	facts string
	later []string // turns that no model has summarised, one a line
}

// readOutline checks what a model wrote: every heading once, in order, and no other. A preamble, a
// fence around it all and the platform's own parts are dropped.
func readOutline(text string) (outline, error) {
	o := outline{parts: map[string]string{}}
	var found []string
	var err error
	eachPart(text, func(heading, part string) {
		switch {
		case heading == "" || heading == headingFacts || heading == headingLater:
		case !slices.Contains(headings(), heading):
			err = fmt.Errorf("heading %q is none of the outline", redact.Line(heading, 60))
		default:
			found = append(found, heading)
			if part == "" {
				part = nothing
			}
			o.parts[heading] = part
		}
	})
	if err != nil {
		return outline{}, err
	}
	if !slices.Equal(found, headings()) {
		return outline{}, fmt.Errorf("%d headings where the outline has %d, or in another order", len(found), len(headings()))
	}
	return o, nil
}

// storedOutline reads a summary that was stored, also one from before there were headings.
func storedOutline(text string) outline {
	o := outline{parts: map[string]string{}}
	eachPart(text, func(heading, part string) {
		switch {
		case heading == headingFacts:
			o.facts = part
		case heading == headingLater || heading == "":
			o.later = append(o.later, nonEmptyLines(part)...)
		case slices.Contains(headings(), heading):
			o.parts[heading] = part
		}
	})
	return o
}

// eachPart splits text at its second-level headings. What stands before the first has the heading "".
func eachPart(text string, do func(heading, part string)) {
	heading := ""
	var part strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		bare := strings.TrimSpace(line) // an indented heading would lose its indentation one day
		if strings.HasPrefix(bare, "```") {
			continue // a fence would hide what follows it
		}
		if name, ok := strings.CutPrefix(bare, "## "); ok {
			do(heading, strings.TrimSpace(part.String()))
			heading = strings.TrimSpace(name)
			part.Reset()
			continue
		}
		part.WriteString(line + "\n")
	}
	do(heading, strings.TrimSpace(part.String()))
}

func nonEmptyLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// String is the summary as it is stored and shown to the model.
func (o outline) String() string {
	var blocks []string
	for _, h := range headings() {
		if part := o.parts[h]; part != "" {
			blocks = append(blocks, "## "+h+"\n"+part)
		}
	}
	if o.facts != "" {
		blocks = append(blocks, "## "+headingFacts+"\n"+o.facts)
	}
	if len(o.later) > 0 {
		blocks = append(blocks, "## "+headingLater+"\n"+strings.Join(o.later, "\n"))
	}
	return strings.Join(blocks, "\n\n")
}

// within is the summary in at most limit bytes: the oldest of the later turns go first, then the
// longest parts are cut.
func (o outline) within(limit int) string {
	for over := len(o.String()) - limit; over > 0 && len(o.later) > 1; o.later = o.later[1:] {
		over -= len(o.later[0]) + len("\n")
	}
	const least = 300 // bytes that each part keeps
	for over := len(o.String()) - limit; over > 0; over = len(o.String()) - limit {
		longest := slices.MaxFunc(headings(), func(a, b string) int { return len(o.parts[a]) - len(o.parts[b]) })
		if size := len(o.parts[longest]); size > least {
			o.parts[longest] = redact.Cut(o.parts[longest], max(least, size-over))
			continue
		}
		return redact.Cut(o.String(), limit)
	}
	return o.String()
}

const (
	maxSummaryFiles = 20
	maxFileNote     = 120 // bytes
)

// keepFiles drops from the list of files what does not exist, and what is more than the outline allows.
func (o outline) keepFiles(exists func(path string) bool) {
	var kept []string
	for _, line := range nonEmptyLines(o.parts[headingFiles]) {
		path, note := fileOf(line)
		if len(kept) == maxSummaryFiles || path == "" || !exists(path) {
			continue
		}
		if note != "" {
			note = " — " + redact.Line(note, maxFileNote)
		}
		kept = append(kept, "- "+path+note)
	}
	o.parts[headingFiles] = nothing
	if len(kept) > 0 {
		o.parts[headingFiles] = strings.Join(kept, "\n")
	}
}

// fileOf reads a line `- path — why it matters`, with the dashes that models write.
func fileOf(line string) (path, note string) {
	line = strings.TrimSpace(strings.TrimLeft(line, "-* "))
	for _, dash := range []string{" — ", " – ", " - ", ": "} {
		if before, after, ok := strings.Cut(line, dash); ok {
			line, note = before, strings.TrimSpace(after)
			break
		}
	}
	return strings.Trim(strings.TrimSpace(line), "`"), note
}
