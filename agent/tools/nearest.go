package tools

import (
	"fmt"
	"regexp"
	"strings"

	"agent-sandboxing/agent"
	"agent-sandboxing/core/redact"
)

const (
	nearestShown = 12      // lines
	nearestWork  = 5 << 20 // line comparisons
)

// numberColumn is how listings and searches begin a line: "12: ", "12|", "src/a.ts:12: ".
var numberColumn = regexp.MustCompile(`^(?:\S+[:-])?\s*\d+(?:\t|\||[:-] |→)`)

// notThere explains why oldText is not in the file as well as it can.
func notThere(path, text string, e replacement) *agent.Result {
	var r agent.Result
	old := strings.Split(strings.TrimSuffix(e.old, "\n"), "\n")
	numbered := true
	for _, line := range old {
		numbered = numbered && numberColumn.MatchString(line)
	}
	switch {
	case numbered:
		r = agent.Failed("not_found", "oldText is not in %s: each of its lines begins with a number. Remove line numbers.", path)
	case len(strings.TrimSpace(e.new)) > 3 && strings.Contains(text, e.new):
		r = agent.Failed("not_found", "oldText is not in %s, but newText is already present: the change may be done.", path)
	default:
		r = agent.Failed("not_found", "oldText is not in %s. Read the file and copy the text as it is.", path)
		if region := nearest(text, old); region != "" {
			r.Text += " The closest is at " + region
		}
	}
	return &r
}

// nearest finds the lines of text that are most like old. At least 60 % of them must be equal but
// for the spaces around them.
func nearest(text string, old []string) string {
	lines := strings.Split(text, "\n")
	if len(lines)*len(old) > nearestWork {
		return ""
	}
	trimmed := make([]string, len(lines))
	for i, l := range lines {
		trimmed[i] = strings.TrimSpace(l)
	}
	want := make([]string, len(old))
	for i, l := range old {
		want[i] = strings.TrimSpace(l)
	}
	best, at := 0, -1
	for i := 0; i+len(want) <= len(lines); i++ {
		equal := 0
		for j, w := range want {
			if w == trimmed[i+j] {
				equal++
			}
		}
		if equal > best {
			best, at = equal, i
		}
	}
	if at < 0 || best*10 < len(want)*6 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "line %d (→ is a tab, · a space at the end):", at+1)
	for _, line := range lines[at : at+min(len(want), nearestShown)] {
		b.WriteString("\n" + marked(line))
	}
	return b.String()
}

// marked shows the spaces of a line that matter and cannot be seen.
func marked(line string) string {
	body := strings.TrimRight(line, " ")
	return strings.ReplaceAll(visible(redact.Cut(body, maxLine)), "\t", "→") + strings.Repeat("·", len(line)-len(body))
}
