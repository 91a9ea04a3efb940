package tools

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

// lsTool lists one directory.
type lsTool struct{ ws core.Workspace }

func (t *lsTool) Spec() agent.ToolSpec {
	return spec("ls", `{"type":"object","additionalProperties":false,"properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":2000}}}`)
}

func (t *lsTool) object(a *arguments) string { return a.path(".") }

func (t *lsTool) run(ctx context.Context, a *arguments) (agent.Result, error) {
	given := a.path(".")
	limit := a.number("limit", 1, 2000, 500)
	if r := a.failed(); r != nil {
		return *r, nil
	}
	p, r := workspacePath(given, false)
	if r != nil {
		return *r, nil
	}
	listing, err := t.ws.List(ctx, p, limit)
	if err != nil {
		if e, ok := errors.AsType[*core.Error](err); ok && e.Code == "not_a_directory" {
			return agent.Failed("not_a_directory", "%s is a file. Use read.", p), nil
		}
		return fileFailure(ctx, t.ws, p, err)
	}
	return entries(listing), nil
}

// entries prints one path a line. Git's own folder is left out, as everywhere; it can be listed by
// its name.
func entries(listing core.Listing) agent.Result {
	var b strings.Builder
	shown, more := 0, listing.More
	for _, e := range listing.Entries {
		if path.Base(e.Path) == ".git" {
			continue
		}
		line := printed(e.Path)
		switch e.Kind {
		case core.FileDir:
			line += "/"
		case core.FileLink:
			line += "@"
		case core.FileRegular, core.FileOther:
		}
		if b.Len()+len(line) > maxText {
			more = true
			break
		}
		b.WriteString(line + "\n")
		shown++
	}
	if shown == 0 && !more {
		return agent.OK("[empty directory]", "empty")
	}
	if more {
		fmt.Fprintf(&b, "\n[%s shown; more exist. Raise limit or list a subdirectory.]", plural(shown, "entry"))
	}
	result := agent.OK(strings.TrimRight(b.String(), "\n"), plural(shown, "entry"))
	result.Truncated = more
	return result
}
