package tools

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
	"agent-sandboxing/prompts"
)

const (
	maxLines = 2000
	maxLine  = 2000 // characters shown of one line
)

const utf8BOM = "\xEF\xBB\xBF"

// readTool shows whole lines of one text file.
type readTool struct {
	ws       core.Workspace
	seen     *seenFiles
	numbered bool
}

func (t *readTool) Spec() agent.ToolSpec {
	s := spec("read", `{"type":"object","additionalProperties":false,"required":["path"],"properties":{"path":{"type":"string","description":"File, relative to the repository root"},"offset":{"type":"integer","minimum":1,"description":"First line, from 1"},"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"Number of lines"}}}`)
	if t.numbered {
		s.Description = prompts.Tool("read_numbered")
	}
	return s
}

func (t *readTool) object(a *arguments) string { return a.path("") }

func (t *readTool) run(ctx context.Context, a *arguments) (agent.Result, error) {
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
	if binary(file.Data) {
		return binaryFile(p, file, "Only text can be read. With bash, file and head -c tell more."), nil
	}
	t.seen.note(p, file.Data)
	return show(p, string(file.Data), offset, limit, t.numbered), nil
}

// show cuts whole lines out of content, numbered if wished, and adds the notes that the model needs to
// go on.
func show(p, content string, offset, limit int, numbered bool) agent.Result {
	text, bom := strings.CutPrefix(content, utf8BOM)
	crlf, newlines := strings.Count(text, "\r\n"), strings.Count(text, "\n")
	text = lf(text)
	if text == "" {
		return agent.OK("[empty file]", "empty")
	}
	lines := splitLines(text)
	if offset > len(lines) {
		return agent.Failed("offset_past_end", "%s has %s. Use a smaller offset.", p, plural(len(lines), "line"))
	}
	var b strings.Builder
	next, control := offset-1, false
	for ; next < len(lines) && next-offset+1 < limit; next++ {
		line := visible(lines[next])
		shown := cutLine(line, next+1)
		if numbered {
			shown = fmt.Sprintf("%d\t%s", next+1, shown)
		}
		if b.Len()+len(shown) > maxText {
			break // never at the first: a cut line is shorter
		}
		control = control || line != strings.ToValidUTF8(lines[next], "\uFFFD")
		b.WriteString(shown)
	}
	rest := next < len(lines)
	var notes []string
	switch {
	case rest:
		notes = append(notes, fmt.Sprintf("[lines %d-%d of %d. Use offset=%d to continue.]", offset, next, len(lines), next+1))
	case offset > 1:
		notes = append(notes, fmt.Sprintf("[lines %d-%d of %d.]", offset, next, len(lines)))
	}
	switch {
	case crlf > 0 && crlf == newlines:
		notes = append(notes, "[CRLF line endings]")
	case crlf > 0:
		notes = append(notes, fmt.Sprintf("[mixed line endings: %d CRLF, %d LF]", crlf, newlines-crlf))
	}
	if bom {
		notes = append(notes, "[UTF-8 BOM]")
	}
	if !utf8.ValidString(text) {
		notes = append(notes, "[not UTF-8: bytes shown as \uFFFD cannot be edited here]")
	}
	if control {
		notes = append(notes, "[control characters are shown as pictures such as ␀ and ␛; change them with bash]")
	}
	out := b.String()
	if len(notes) > 0 {
		out = strings.TrimSuffix(out, "\n") + "\n\n" + strings.Join(notes, "\n")
	}
	r := agent.OK(out, fmt.Sprintf("%d–%d", offset, next))
	r.Truncated = rest
	return r
}

// cutLine shortens a line of too many characters and says how to see the rest of it.
func cutLine(line string, number int) string {
	if len(line) <= maxLine {
		return line
	}
	size := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
	if size <= maxLine {
		return line
	}
	end := 0
	for range maxLine {
		_, n := utf8.DecodeRuneInString(line[end:])
		end += n
	}
	return line[:end] + fmt.Sprintf("… [line is %s chars; use bash: sed -n '%dp' FILE | head -c 20000]\n", thousands(size), number)
}
