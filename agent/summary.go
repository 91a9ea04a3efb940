package agent

import (
	"fmt"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// turnLine says of a turn, without a model, what was asked, how it ended, which files differ and how
// the answer begins.
func turnLine(request string, f core.Finish) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- Asked: %s — %s", oneLine(request, 400), ending(f))
	if len(f.Changed) > 0 {
		additions, deletions := core.Totals(f.Changed)
		fmt.Fprintf(&b, "; the work tree now differs in %s (+%d −%d): %s",
			countFiles(len(f.Changed)), additions, deletions, someFiles(f.Changed))
	}
	if answer := oneLine(f.Answer, 500); answer != "" {
		fmt.Fprintf(&b, ". Answer: %s", answer)
	}
	return b.String()
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

// platformFacts is what the platform itself knows of the workspace: never a model's word.
func platformFacts(w core.WorkspaceState) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Branch: %s, made from %s at %s\n", w.Branch, oneLine(w.BaseBranch, 200), w.BaseSHA)
	if w.PullRequest != "" {
		fmt.Fprintf(&b, "Pull request: %s\n", w.PullRequest)
	}
	if len(w.Changed) == 0 {
		b.WriteString("Changed files: none")
		return b.String()
	}
	additions, deletions := core.Totals(w.Changed)
	fmt.Fprintf(&b, "Changed: %s (+%d −%d): %s", countFiles(len(w.Changed)), additions, deletions, someFiles(w.Changed))
	return b.String()
}

func countFiles(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

func someFiles(files []core.ChangedFile) string {
	const shown = 20
	names := make([]string, 0, shown+1)
	for _, f := range files[:min(len(files), shown)] {
		name := oneLine(f.Path, 120)
		if f.Status == "deleted" {
			name += " (deleted)"
		}
		names = append(names, name)
	}
	if more := len(files) - shown; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return redact.Cut(strings.Join(names, ", "), 2_000)
}
