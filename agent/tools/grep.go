package tools

import (
	"context"
	"fmt"
	"strings"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

// grepTool searches the contents of files.
type grepTool struct{ ws core.Workspace }

func (t *grepTool) Spec() agent.ToolSpec {
	return spec("grep", `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{"pattern":{"type":"string","minLength":1},"path":{"type":"string"},"glob":{"type":"string"},"ignoreCase":{"type":"boolean"},"literal":{"type":"boolean"},"context":{"type":"integer","minimum":0,"maximum":5},"limit":{"type":"integer","minimum":1,"maximum":1000}}}`)
}

func (t *grepTool) object(a *arguments) string { return a.text("pattern") }

func (t *grepTool) run(ctx context.Context, a *arguments) (agent.Result, error) {
	q := core.SearchQuery{
		Pattern:    a.need("pattern"),
		Glob:       a.text("glob", "include"),
		IgnoreCase: a.flag("ignoreCase"),
		Literal:    a.flag("literal"),
		Context:    a.number("context", 0, 5, 0),
		Limit:      a.number("limit", 1, 1000, 100),
	}
	given := a.path(".")
	if r := a.failed(); r != nil {
		return *r, nil
	}
	p, r := workspacePath(given, false)
	if r != nil {
		return *r, nil
	}
	q.Path = p
	found, err := t.ws.Search(ctx, q)
	if err != nil {
		return fileFailure(ctx, t.ws, p, err)
	}
	if found.Matches == 0 {
		text := "No matches found"
		if found.More {
			text += "\n[Not all of " + printed(p) + " was searched: it is too large. Narrow the path or glob.]"
		}
		if found.Ignored {
			text += "\n[Files that git ignores were not searched.]"
		}
		result := agent.OK(text, "no matches")
		result.Truncated = found.More
		return result, nil
	}
	return matches(found, q.Context > 0), nil
}

func matches(found core.SearchResult, context bool) agent.Result {
	var b strings.Builder
	shown := 0
	more := found.More
	for i, l := range found.Lines {
		sign := "-"
		if l.Match {
			sign = ":"
		}
		line := fmt.Sprintf("%s%s%d%s %s%s\n", printed(l.Path), sign, l.Number, sign, visible(l.Text), cutNote(l))
		if b.Len()+len(line) > maxText {
			more = true
			break
		}
		if context && i > 0 && (l.Path != found.Lines[i-1].Path || l.Number != found.Lines[i-1].Number+1) {
			b.WriteString("--\n")
		}
		b.WriteString(line)
		if l.Match {
			shown++
		}
	}
	if more {
		fmt.Fprintf(&b, "\n[%s shown; more exist. Narrow the pattern or path, or raise limit.]", plural(shown, "match"))
	}
	result := agent.OK(strings.TrimRight(b.String(), "\n"), plural(shown, "match"))
	result.Truncated = more
	return result
}

// cutNote says what of a long line is not shown, and where in it the match is.
func cutNote(l core.SearchLine) string {
	switch {
	case l.Length == 0:
		return ""
	case l.Match:
		return fmt.Sprintf(" [line is %s chars; the match is at column %s]", thousands(l.Length), thousands(l.Column))
	default:
		return fmt.Sprintf(" [line is %s chars]", thousands(l.Length))
	}
}
