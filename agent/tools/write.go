package tools

import (
	"context"
	"fmt"
	"strings"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// writeTool creates or replaces one file.
type writeTool struct {
	ws   core.Workspace
	seen *seenFiles
}

func (t *writeTool) Spec() agent.ToolSpec {
	return spec("write", `{"type":"object","additionalProperties":false,"required":["path","content"],"properties":{"path":{"type":"string"},"content":{"type":"string","description":"The full new text of the file"}}}`)
}

func (t *writeTool) object(a *arguments) string { return a.path("") }

func (t *writeTool) run(ctx context.Context, a *arguments) (agent.Result, error) {
	given := a.path("")
	content := a.need("content")
	if r := a.failed(); r != nil {
		return *r, nil
	}
	p, r := workspacePath(given, true)
	if r != nil {
		return *r, nil
	}
	if len(content) > core.MaxWrite {
		return agent.Failed("file_too_large", "the content has %s; 1 MiB is allowed. Write it in parts, or generate it with a script.", redact.Size(int64(len(content)))), nil
	}
	old, exists, result, err := t.current(ctx, p)
	if result != nil || err != nil {
		return orZero(result), err
	}
	if line := placeholder(content, old); line > 0 {
		return *omitted("content", line), nil
	}
	content, note := keepStyle(old, content)
	expect := "absent"
	verb := "Created"
	if exists {
		expect = hash([]byte(old))
		verb = "Overwrote"
		if content == old {
			return agent.OK(fmt.Sprintf("%s already has this content; nothing was written.", p), "unchanged"), nil
		}
	}
	if _, err := t.ws.Write(ctx, core.WriteFile{Path: p, Data: []byte(content), Expect: expect}); err != nil {
		return agent.FailedBy(ctx, err)
	}
	t.seen.note(p, []byte(content))
	lines := plural(countLines(content), "line")
	text := fmt.Sprintf("%s %s (%s, %s)%s", verb, p, lines, redact.Size(int64(len(content))), note)
	return agent.OK(text, lines), nil
}

// current reads what a write would replace. A file that the model has not seen in its present
// state is answered with a refusal.
func (t *writeTool) current(ctx context.Context, p string) (old string, exists bool, refused *agent.Result, err error) {
	file, err := readWhole(ctx, t.ws, p)
	if core.CodeOf(err) == "not_found" && ctx.Err() == nil {
		return "", false, nil, nil
	}
	if err != nil {
		r, err := agent.FailedBy(ctx, err)
		return "", false, &r, err
	}
	if r := protected(file.Path); r != nil {
		return "", true, r, nil
	}
	seen, ok := t.seen.hashes[p]
	switch {
	case !ok && binary(file.Data):
		r := binaryFile(p, file, "It is not replaced by text: remove it with bash first, if it is to go.")
		return "", true, &r, nil
	case !ok:
		r := agent.Failed("not_read", "%s exists and was not read in this turn. Read it first, or change it with edit.", p)
		return "", true, &r, nil
	case seen != hash(file.Data):
		r := agent.Failed("changed_since_read", "%s has changed since it was read. Read it again.", p)
		return "", true, &r, nil
	}
	return string(file.Data), true, nil, nil
}

func orZero(r *agent.Result) agent.Result {
	if r == nil {
		return agent.Result{}
	}
	return *r
}

// keepStyle gives content the byte order mark and the CRLF line endings of the text it replaces.
func keepStyle(old, content string) (styled, note string) {
	if strings.HasPrefix(old, utf8BOM) && !strings.HasPrefix(content, utf8BOM) {
		content = utf8BOM + content
		note += " Kept the UTF-8 BOM."
	}
	crlf := strings.Count(old, "\r\n")
	if crlf > 0 && crlf == strings.Count(old, "\n") && !strings.Contains(content, "\r\n") && strings.Contains(content, "\n") {
		content = strings.ReplaceAll(content, "\n", "\r\n")
		note += " Kept CRLF line endings."
	}
	return content, note
}

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
