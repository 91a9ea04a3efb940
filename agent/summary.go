package agent

import (
	"fmt"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// SummaryLine adds a finished turn to the session's summary without asking a model: what was asked,
// how it ended, which files changed, how the answer begins. The result stays within the cap of the
// summary section; the oldest turns go first. The caller redacts what it stores.
func SummaryLine(prev, request string, f core.Finish) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- Asked: %s — %s", redact.Line(request, 400), ending(f))
	if len(f.Changed) > 0 {
		additions, deletions := core.Totals(f.Changed)
		fmt.Fprintf(&b, "; the work tree now differs in %d files (+%d −%d): %s",
			len(f.Changed), additions, deletions, someFiles(f.Changed))
	}
	if answer := redact.Line(f.Answer, 500); answer != "" {
		fmt.Fprintf(&b, ". Answer: %s", answer)
	}
	lines := strings.Split(strings.TrimSpace(prev), "\n")
	lines = append(lines, b.String())
	size := 0
	for i := len(lines) - 1; i >= 0; i-- {
		if size += len(lines[i]) + 1; size > summaryCap {
			lines = lines[i+1:]
			break
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func ending(f core.Finish) string {
	switch f.State {
	case core.Completed:
		return fmt.Sprintf("completed in %d steps", f.Result.Steps)
	case core.Failed:
		return "failed: " + f.FailureCode
	case core.Cancelled:
		return "cancelled by a person"
	case core.Queued, core.Working:
	}
	return string(f.State)
}

func someFiles(files []core.ChangedFile) string {
	const shown = 20
	names := make([]string, 0, shown)
	for _, f := range files[:min(len(files), shown)] {
		names = append(names, redact.Line(f.Path, 120))
	}
	if more := len(files) - shown; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
