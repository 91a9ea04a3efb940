package tools

import (
	"context"
	"fmt"
	"strings"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

// findTool finds files by name.
type findTool struct{ ws core.Workspace }

func (t *findTool) Spec() agent.ToolSpec {
	return spec("find", `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{"pattern":{"type":"string","minLength":1,"description":"Glob, e.g. *.ts or src/**/*.go"},"path":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":1000}}}`)
}

func (t *findTool) object(a *arguments) string { return a.text("pattern", "glob") }

func (t *findTool) run(ctx context.Context, a *arguments) (agent.Result, error) {
	pattern := strings.TrimPrefix(a.need("pattern", "glob"), core.RepoDir+"/")
	given := a.path(".")
	limit := a.number("limit", 1, 1000, 200)
	if r := a.failed(); r != nil {
		return *r, nil
	}
	p, r := workspacePath(given, false)
	if r != nil {
		return *r, nil
	}
	found, err := t.ws.Find(ctx, core.FindQuery{Pattern: pattern, Path: p, Limit: limit})
	if err != nil {
		return fileFailure(ctx, t.ws, p, err)
	}
	if len(found.Paths) == 0 {
		text := "No files found"
		if hint := findHint(printed(p), pattern, found.More); hint != "" {
			text += "\n[" + hint + "]"
		}
		result := agent.OK(text, "none")
		result.Truncated = found.More
		return result, nil
	}
	var b strings.Builder
	shown := 0
	for _, name := range found.Paths {
		name = printed(name)
		if b.Len()+len(name) > maxText {
			break
		}
		b.WriteString(name + "\n")
		shown++
	}
	more := found.More || shown < len(found.Paths)
	if more {
		fmt.Fprintf(&b, "\n[%s shown; more exist. Narrow the pattern or path, or raise limit.]", plural(shown, "file"))
	}
	result := agent.OK(strings.TrimRight(b.String(), "\n"), plural(shown, "file"))
	result.Truncated = more
	return result, nil
}

// findHint says why a pattern may have found nothing in dir, "" when there is nothing to say.
func findHint(dir, pattern string, more bool) string {
	rooted := strings.HasPrefix(pattern, "/")
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	switch {
	case more:
		return "Not all of " + dir + " was looked at: it is too large. Name a directory in it."
	case strings.HasSuffix(pattern, "/"):
		return "Only files are found; " + visible(pattern) + "** finds those in it."
	case strings.HasPrefix(pattern, "**/"), strings.HasPrefix(pattern, "!"), !rooted && !strings.Contains(pattern, "/"):
		return ""
	}
	return fmt.Sprintf("A pattern with a slash is matched from %s on; **/%s looks below it too.", dir, visible(pattern))
}
