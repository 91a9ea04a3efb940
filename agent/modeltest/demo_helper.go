package modeltest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The demo answers for two more agents than the one that works: for the subagent that it asks, and
// for the one that keeps the session's record. It tells them apart by the tools they are offered.

// offers says that a request has a tool.
func offers(req Request, name string) bool {
	return slices.ContainsFunc(req.Tools, func(t Tool) bool { return t.Function.Name == name })
}

// investigate is the subagent's turn: one search, then a report of what it showed.
func investigate(task string, rounds [][]string) Reply {
	words := regexp.MustCompile(`/(.+)/`).FindStringSubmatch(task)
	if len(rounds) == 0 && words != nil {
		return Reply{Calls: []Call{
			CallJSON("grep", map[string]any{"pattern": words[1], "limit": 60}),
			CallJSON("find", map[string]any{"pattern": "*.md", "limit": 60}),
		}}
	}
	if len(rounds) == 0 || len(rounds[0]) < 2 {
		return Reply{Text: "Nothing was found: the task names no pattern."}
	}
	found := matchesOf(rounds[0][0])
	byFile := map[string]int{}
	for _, m := range found {
		byFile[m.path]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s.\n", count(len(found), "place"), count(len(byFile), "file"))
	for i, m := range found {
		if i == 8 {
			fmt.Fprintf(&b, "and %d more\n", len(found)-i)
			break
		}
		fmt.Fprintf(&b, "- `%s:%s` %s\n", m.path, m.line, oneLine(m.text, 100))
	}
	return Reply{Text: b.String()}
}

// record keeps the session's record to the outline that is asked for.
func record(document string) Reply {
	part := func(name string) string { return oneLine(sectionOf(document, name), 300) }
	var files []string
	for _, m := range regexp.MustCompile(`[\w./-]+\.\w+`).FindAllString(sectionOf(document, "workspace"), -1) {
		if len(files) < 10 && !slices.Contains(files, m) {
			files = append(files, m)
		}
	}
	var b strings.Builder
	write := func(heading, text string) {
		if text == "" {
			text = "none"
		}
		fmt.Fprintf(&b, "## %s\n%s\n\n", heading, text)
	}
	list := ""
	for _, f := range files {
		list += "- " + f + " — changed in this session\n"
	}
	write("Objective", part("request"))
	write("Constraints from the user", "")
	write("State", "The turn is done.")
	write("Result of this turn", part("final answer"))
	write("Blockers", "")
	write("Files", strings.TrimSpace(list))
	write("Next", "")
	return Reply{Text: b.String()}
}
