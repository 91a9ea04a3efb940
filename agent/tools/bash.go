package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/bashpolicy"
	"agent-sandboxing/core"
)

const (
	maxCommand  = 8192    // bytes
	maxFullCopy = 2 << 20 // bytes of a cut output that are kept as an artifact
)

// quiet keeps programs from waiting for a person, paging or painting. An editor fails: one that did
// nothing and succeeded would let git go on with a text that nobody wrote.
func quiet() []string {
	return []string{
		"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb", "NO_COLOR=1", "CI=1",
		"EDITOR=false", "VISUAL=false", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false",
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

func (t *bashTool) object(a *arguments) string { return a.text("command", "cmd") }

func (t *bashTool) run(ctx context.Context, a *arguments) (agent.Result, error) {
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
		LogName: t.logName(),
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
	r := agent.Result{Outcome: agent.OutcomeOK, Detail: fmt.Sprintf("exit %d", done.Exit), Exit: &done.Exit, Notice: advice(done)}
	out := cutOutput(done)
	text := out.head
	if r.Truncated = out.cut; out.cut {
		log := done.LogPath
		if done.Omitted == 0 {
			r.Full = append(append(r.Full, done.Head...), done.Tail...)
			log = t.keep(ctx, r.Full)
		} else {
			r.Full = t.wholeLog(ctx, log)
		}
		text = strings.TrimRight(out.head, "\n") + "\n\n" + out.note(done, log) + "\n\n" + out.tail
	}
	text = strings.TrimRight(text, "\n")
	if text == "" {
		text = "(no output)"
	}
	for _, note := range notes(done, timeout) {
		text += "\n\n" + note
	}
	switch {
	case done.OverQuota:
		r.Outcome, r.Code, r.Detail = agent.OutcomeError, "workspace_quota_exceeded", "ended: disk budget used up"
	case done.HostFull:
		r.Outcome, r.Code, r.Detail = agent.OutcomeError, "disk_low", "ended: the host's disk is almost full"
	case done.TimedOut:
		r.Outcome, r.Code, r.Detail = agent.OutcomeError, "timed_out", fmt.Sprintf("timed out after %d s", timeout)
	}
	if done.OOMKilled && !done.TimedOut && done.Exit != 0 {
		r.Outcome, r.Code = agent.OutcomeError, "oom_killed"
	}
	r.Text = text
	return r
}

// advice is what the model is to do about how the command ended: not for any output to say.
func advice(done core.CommandResult) string {
	switch {
	case done.OverQuota:
		return "The workspace's disk budget is used up: delete files that are not needed before you go on."
	case done.HostFull:
		return "The disk of the sandbox's host is almost full: write less."
	}
	return networkNote(done.Refused)
}

// notes are what the model must know besides the output.
func notes(done core.CommandResult, timeout int) []string {
	var list []string
	switch {
	case done.TimedOut:
		list = append(list, fmt.Sprintf("[timed out after %d s; processes killed]", timeout))
	case done.OverQuota:
		list = append(list, "[killed because the workspace's disk budget is used up]")
	case done.HostFull:
		list = append(list, "[killed because the disk of the sandbox's host is almost full]")
	case done.OOMKilled:
		limit := ""
		if done.MemoryLimit > 0 {
			limit = fmt.Sprintf("; its limit is %d MiB", done.MemoryLimit>>20)
		}
		list = append(list, fmt.Sprintf("[exit code %d; killed because the sandbox ran out of memory%s]", done.Exit, limit))
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

// keep writes an output that has too many lines where one that has too many bytes is kept by itself,
// and returns where; "" when that failed, which the answer can do without.
func (t *bashTool) keep(ctx context.Context, whole []byte) string {
	log := core.OutputDir + "/" + t.logName()
	if _, err := t.ws.Write(ctx, core.WriteFile{Path: log, Data: whole}); err != nil {
		return ""
	}
	return log
}

func (t *bashTool) logName() string {
	return fmt.Sprintf("%s-%d.log", core.Short(t.message), t.runs)
}

// wholeLog fetches the kept output for people. Without it the turn goes on.
func (t *bashTool) wholeLog(ctx context.Context, log string) []byte {
	if log == "" {
		return nil
	}
	file, err := t.ws.Read(ctx, log, 0, maxFullCopy)
	if err != nil {
		return nil
	}
	if !file.EOF {
		return append(file.Data, "\n[cut here at 2 MiB]\n"...)
	}
	return file.Data
}
