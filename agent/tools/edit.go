package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

const maxEdits = 20

// editTool replaces pieces of one file.
type editTool struct {
	ws    core.Workspace
	seen  *seenFiles
	exact bool
}

func (t *editTool) Spec() agent.ToolSpec {
	return spec("edit", `{"type":"object","additionalProperties":false,"required":["path","edits"],"properties":{"path":{"type":"string"},"edits":{"type":"array","minItems":1,"maxItems":20,"items":{"type":"object","additionalProperties":false,"required":["oldText","newText"],"properties":{"oldText":{"type":"string","minLength":1,"description":"Exact current text; must occur once in the file"},"newText":{"type":"string"},"replaceAll":{"type":"boolean"}}}}}}`)
}

func (t *editTool) object(a *arguments) string { return a.path("") }

func (t *editTool) run(ctx context.Context, a *arguments) (agent.Result, error) {
	given := a.path("")
	edits := a.edits()
	if r := a.failed(); r != nil {
		return *r, nil
	}
	p, r := workspacePath(given, true)
	if r != nil {
		return *r, nil
	}
	file, err := readWhole(ctx, t.ws, p)
	if err != nil {
		return fileFailure(ctx, t.ws, p, err)
	}
	if r := protected(file.Path); r != nil {
		return *r, nil
	}
	if len(file.Data) > core.MaxWrite {
		return tooLargeToEdit(p, "has", len(file.Data)), nil
	}
	done, r := apply(p, string(file.Data), edits, t.exact)
	if r != nil {
		return *r, nil
	}
	if len(done.text) > core.MaxWrite {
		return tooLargeToEdit(p, "would have", len(done.text)), nil
	}
	write := core.WriteFile{Path: p, Data: []byte(done.text), Expect: hash(file.Data)}
	if _, err := t.ws.Write(ctx, write); err != nil {
		return agent.FailedBy(ctx, err)
	}
	t.seen.note(p, write.Data)
	return agent.OK(done.report(p), fmt.Sprintf("+%d −%d", done.added, done.removed)), nil
}

func tooLargeToEdit(p, verb string, size int) agent.Result {
	return agent.Failed("file_too_large", "%s %s %s; files up to 1 MiB can be edited. Change it with bash, for example with sed.", p, verb, redact.Size(int64(size)))
}

// replacement is one edit as the model asked for it, with LF line endings.
type replacement struct {
	old, new string
	all      bool
}

// edits reads the list of edits, also as a string of JSON, as one object, or as the fields of one
// edit at the top level.
func (a *arguments) edits() []replacement {
	raw := a.get("edits")
	if raw == nil {
		if a.get("oldText", "old_string", "oldString", "old_text", "old_str") == nil {
			a.problems = append(a.problems, "edits is missing")
			return nil
		}
		return []replacement{a.edit("")}
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		var one map[string]json.RawMessage
		if json.Unmarshal(raw, &one) != nil || one == nil {
			a.problems = append(a.problems, "edits must be a list of {oldText, newText}")
			return nil
		}
		list = []map[string]json.RawMessage{one}
	}
	if len(list) < 1 || len(list) > maxEdits {
		a.problems = append(a.problems, fmt.Sprintf("edits must have 1 to %d entries", maxEdits))
		return nil
	}
	edits := make([]replacement, 0, len(list))
	for i, fields := range list {
		one, prefix := &arguments{fields: fields, asked: map[string]bool{}}, fmt.Sprintf("edits[%d].", i)
		edits = append(edits, one.edit(prefix))
		a.problems = append(a.problems, one.problems...)
		for _, name := range one.ignored() {
			a.unknown = append(a.unknown, prefix+name)
		}
	}
	return edits
}

func (a *arguments) edit(prefix string) replacement {
	newText := []string{"newText", "new_string", "newString", "new_text", "new_str"}
	if a.get(newText...) == nil { // left out it would delete
		a.problems = append(a.problems, prefix+"newText is missing; to delete the text send an empty one")
	}
	e := replacement{
		old: lf(a.text("oldText", "old_string", "oldString", "old_text", "old_str")),
		new: lf(a.text(newText...)),
		all: a.flag("replaceAll", "replace_all"),
	}
	if e.old == "" {
		a.problems = append(a.problems, prefix+"oldText is empty; to create or replace a whole file use write")
	}
	return e
}

func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
