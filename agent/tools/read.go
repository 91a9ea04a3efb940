package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

const (
	maxLines = 2000
	maxLine  = 2000 // bytes shown of one line
)

const utf8BOM = "\xEF\xBB\xBF"

// readTool shows whole lines of one text file.
type readTool struct {
	ws   core.Workspace
	seen *seenFiles
}

func (t *readTool) Spec() agent.ToolSpec {
	return spec("read", `{"type":"object","additionalProperties":false,"required":["path"],"properties":{"path":{"type":"string","description":"File, relative to the repository root"},"offset":{"type":"integer","minimum":1,"description":"First line, from 1"},"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"Number of lines"}}}`)
}

func (t *readTool) Object(args json.RawMessage) string { return parse(args).path("") }

func (t *readTool) Run(ctx context.Context, args json.RawMessage) (agent.Result, error) {
	a := parse(args)
	given := a.path("")
	offset := a.number("offset", 1, 1<<30, 1)
	limit := a.number("limit", 1, maxLines, maxLines)
	if r := a.failed(); r != nil {
		return *r, nil
	}
	p, r := workspacePath(given, false)
	if r != nil {
		return *r, nil
	}
	file, err := readWhole(ctx, t.ws, p)
	if err != nil {
		return fileFailure(ctx, t.ws, p, err)
	}
	if bytes.IndexByte(file.Data[:min(len(file.Data), 8<<10)], 0) >= 0 {
		return agent.Failed("binary_file", "%s is binary (%s). Only text can be read.", p, redact.Size(file.Size)), nil
	}
	t.seen.note(p, file.Data)
	return show(p, string(file.Data), offset, limit), nil
}

// show cuts whole lines out of content and adds the notes that the model needs to go on.
func show(p, content string, offset, limit int) agent.Result {
	var notes []string
	text, bom := strings.CutPrefix(content, utf8BOM)
	crlf := strings.Count(text, "\r\n")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if text == "" {
		return agent.OK("[empty file]", "empty")
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if offset > len(lines) {
		return agent.Failed("offset_past_end", "%s has %s. Use a smaller offset.", p, plural(len(lines), "line"))
	}
	var b strings.Builder
	next := offset - 1
	for ; next < len(lines) && next-offset+1 < limit; next++ {
		line := strings.ToValidUTF8(lines[next], "\uFFFD")
		if size := utf8.RuneCountInString(line); len(line) > maxLine {
			line = redact.Head(line, maxLine) + fmt.Sprintf("… [line is %d characters; use bash: sed -n '%dp' FILE | head -c 20000]\n", size, next+1)
		}
		if b.Len()+len(line) > maxText && next > offset-1 {
			break
		}
		b.WriteString(line)
	}
	rest := next < len(lines)
	switch {
	case rest:
		notes = append(notes, fmt.Sprintf("[lines %d-%d of %d. Use offset=%d to continue.]", offset, next, len(lines), next+1))
	case offset > 1:
		notes = append(notes, fmt.Sprintf("[lines %d-%d of %d.]", offset, next, len(lines)))
	}
	if crlf > 0 {
		notes = append(notes, "[CRLF line endings]")
	}
	if bom {
		notes = append(notes, "[UTF-8 BOM]")
	}
	if !utf8.ValidString(text) {
		notes = append(notes, "[not UTF-8: bytes shown as \uFFFD cannot be edited here]")
	}
	out := b.String()
	if len(notes) > 0 {
		out = strings.TrimSuffix(out, "\n") + "\n\n" + strings.Join(notes, "\n")
	}
	r := agent.OK(out, fmt.Sprintf("%d–%d", offset, next))
	r.Truncated = rest
	return r
}
