package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/bashpolicy"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

const (
	maxCommand  = 8192 // bytes
	headLines   = 400  // kept of an output with too many lines
	tailLines   = 1600
	maxFullCopy = 2 << 20 // bytes of a cut output that are kept as an artifact
)

// quiet keeps programs from waiting for a person, paging or painting.
func quiet() []string {
	return []string{
		"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb", "NO_COLOR=1", "CI=1",
		"GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", // an editor that succeeded would run a rebase unchanged
	}
}

// bashTool runs one command line that the policy has judged.
type bashTool struct {
	ws      core.Workspace
	policy  core.BashPolicy
	message core.MessageID
	runs    int
}

func (t *bashTool) Spec() agent.ToolSpec {
	return spec("bash", `{"type":"object","additionalProperties":false,"required":["command"],"properties":{"command":{"type":"string","minLength":1,"maxLength":8192,"description":"One command line; join with && or |"},"timeout":{"type":"integer","minimum":1,"maximum":600,"description":"Seconds, default 120"}}}`)
}

func (t *bashTool) Object(args json.RawMessage) string { return parse(args).text("command", "cmd") }

func (t *bashTool) Run(ctx context.Context, args json.RawMessage) (agent.Result, error) {
	a := parse(args)
	command := a.need("command", "cmd")
	timeout := a.number("timeout", 1, 600, 120)
	if r := a.failed(); r != nil {
		return *r, nil
	}
	if len(command) > maxCommand {
		return agent.Failed("invalid_arguments", "the command has %d bytes; %d are allowed. Put long text into a file with write.", len(command), maxCommand), nil
	}
	canonical, refusal := bashpolicy.Check(t.policy, command)
	if refusal != nil {
		r := agent.Failed(refusal.Rule, "%s", refusal.Message)
		r.Outcome = agent.OutcomeRefused
		r.Refusal = &agent.Refusal{Rule: refusal.Rule, Message: refusal.Message, Command: command}
		return r, nil
	}
	t.runs++
	done, err := t.ws.Run(ctx, core.Command{
		Shell:   canonical,
		Env:     quiet(),
		Timeout: time.Duration(timeout) * time.Second,
		LogName: fmt.Sprintf("%s-%d.log", core.Short(t.message), t.runs),
	})
	if err != nil {
		return agent.FailedBy(ctx, err)
	}
	if ctx.Err() != nil {
		return agent.Result{}, context.Cause(ctx)
	}
	return t.answer(ctx, done, timeout), nil
}

func (t *bashTool) answer(ctx context.Context, done core.CommandResult, timeout int) agent.Result {
	r := agent.Result{Outcome: agent.OutcomeOK, Detail: fmt.Sprintf("exit %d", done.Exit), Exit: &done.Exit}
	text := string(done.Head) + string(done.Tail)
	switch {
	case done.Omitted > 0:
		r.Truncated = true
		text = string(done.Head) + t.omitted(done) + string(done.Tail)
		r.Full = t.wholeLog(ctx, done)
	case done.Lines > headLines+tailLines:
		r.Truncated = true
		r.Full = []byte(text)
		text = cutLines(text)
	}
	text = strings.TrimRight(redact.Clean(text), "\n")
	if text == "" {
		text = "(no output)"
	}
	for _, note := range notes(done, timeout) {
		text += "\n\n" + note
	}
	if done.TimedOut {
		r.Outcome, r.Code, r.Detail = agent.OutcomeError, "timed_out", fmt.Sprintf("timed out after %d s", timeout)
	}
	r.Text = text
	return r
}

// notes are what the model must know besides the output.
func notes(done core.CommandResult, timeout int) []string {
	var list []string
	switch {
	case done.TimedOut:
		list = append(list, fmt.Sprintf("[timed out after %d s; processes killed]", timeout))
	case done.OOMKilled:
		list = append(list, fmt.Sprintf("[exit code %d; killed because the sandbox ran out of memory]", done.Exit))
	case done.Signal != "":
		list = append(list, fmt.Sprintf("[exit code %d; killed by signal %s]", done.Exit, done.Signal))
	case done.Exit != 0:
		list = append(list, fmt.Sprintf("[exit code %d]", done.Exit))
	}
	if done.Survivors > 0 {
		list = append(list, fmt.Sprintf("[it left %s running; they were ended]", plural(done.Survivors, "background process")))
	}
	return list
}

func (t *bashTool) omitted(done core.CommandResult) string {
	note := fmt.Sprintf("\n\n[… %s left out of %s in %d lines.", redact.Size(done.Omitted), redact.Size(done.Total), done.Lines)
	if done.LogPath != "" {
		note += " Full output: " + done.LogPath + " — read it with offset and limit, or grep it."
	}
	return note + "]\n\n"
}

// wholeLog fetches the kept output for people. Without it the turn goes on.
func (t *bashTool) wholeLog(ctx context.Context, done core.CommandResult) []byte {
	if done.LogPath == "" {
		return nil
	}
	file, err := t.ws.Read(ctx, done.LogPath, 0, maxFullCopy)
	if err != nil {
		return nil
	}
	if !file.EOF {
		return append(file.Data, "\n[cut here at 2 MiB]\n"...)
	}
	return file.Data
}

// cutLines keeps the first and last lines of an output that is short in bytes but has many lines.
func cutLines(text string) string {
	lines := splitLines(text)
	left := len(lines) - headLines - tailLines
	if left <= 0 {
		return text
	}
	return strings.Join(lines[:headLines], "") +
		fmt.Sprintf("\n[… %d lines left out. Narrow the output with head, tail or grep.]\n\n", left) +
		strings.Join(lines[len(lines)-tailLines:], "")
}
