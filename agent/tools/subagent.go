package tools

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/agent"
	"agent-sandboxing/core/redact"
)

const (
	maxTask   = 4_000  // characters
	maxReport = 20_000 // characters
)

// subagentTool has a question answered in a context of its own.
type subagentTool struct {
	investigate func(ctx context.Context, task string) (agent.Report, error)
}

func (t *subagentTool) Spec() agent.ToolSpec {
	return spec("subagent", `{"type":"object","additionalProperties":false,"required":["task"],"properties":{"task":{"type":"string","minLength":1,"maxLength":4000,"description":"A self-contained question to investigate"}}}`)
}

// object is the question in one line.
func (t *subagentTool) object(a *arguments) string {
	return redact.Line(a.text("task"), 200)
}

func (t *subagentTool) run(ctx context.Context, a *arguments) (agent.Result, error) {
	task := strings.TrimSpace(a.need("task", "prompt", "description"))
	if r := a.failed(); r != nil {
		return *r, nil
	}
	if n := utf8.RuneCountInString(task); n == 0 || n > maxTask {
		return agent.Failed("invalid_arguments", "task must have 1 to %d characters. Send the call again with such a task.", maxTask), nil
	}
	report, err := t.investigate(ctx, task)
	if err != nil {
		return agent.Result{}, err
	}
	steps := plural(report.Steps, "step")
	text, cut := cutReport(report.Text)
	if report.Failure != "" {
		r := agent.Failed("subagent_failed", "%s Ask a smaller question, or look yourself.", report.Failure)
		if text != "" {
			r.Text += "\nThe last that it said:\n" + text
		}
		r.Detail, r.Truncated = steps, cut
		return r, nil
	}
	r := agent.OK(fmt.Sprintf("%s\n\n[subagent: %s]", text, steps), steps)
	r.Truncated = cut
	return r, nil
}

// cutReport bounds a report and says so in it.
func cutReport(s string) (text string, cut bool) {
	n := utf8.RuneCountInString(s)
	if n <= maxReport {
		return s, false
	}
	end := 0
	for range maxReport {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return fmt.Sprintf("%s\n[The report had %d characters; the rest is left out.]", s[:end], n), true
}
