package tools

import (
	"context"
	"encoding/json"
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

func (t *lsTool) Object(args json.RawMessage) string { return parse(args).path(".") }

func (t *lsTool) Run(ctx context.Context, args json.RawMessage) (agent.Result, error) {
	a := parse(args)
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
	if len(listing.Entries) == 0 {
		return agent.OK("[empty directory]", "empty"), nil
	}
	var b strings.Builder
	for _, e := range listing.Entries {
		b.WriteString(path.Base(e.Path))
		switch e.Kind {
		case core.FileDir:
			b.WriteString("/")
		case core.FileLink:
			b.WriteString("@")
		case core.FileRegular, core.FileOther:
		}
		b.WriteString("\n")
	}
	if listing.More {
		fmt.Fprintf(&b, "\n[%d entries shown; more exist. Raise limit or list a subdirectory.]", len(listing.Entries))
	}
	result := agent.OK(strings.TrimRight(b.String(), "\n"), plural(len(listing.Entries), "entry"))
	result.Truncated = listing.More
	return result, nil
}
