package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"agent-sandboxing/core"
)

// subagentSteps bounds the requests of one subagent.
const subagentSteps = 20

// investigate runs a subagent: the same loop with a context of its own, tools that only look, and no
// way to start another. It ends with its parent, which pays for it. What it does is no event of the
// session; people see the one call that asked for it.
func (a *Agent) investigate(ctx context.Context, task string, env Env, parent *run) (Report, error) {
	p := a.profiles[profileSubagent]
	quiet := &quietRecorder{TurnRecorder: parent.rec}
	limits := parent.limits
	limits.Steps = min(subagentSteps, limits.Steps)
	r := a.begin(p, limits, quiet)
	r.parent = parent
	r.offer(a.tools(Env{Workspace: env.Workspace, Policy: core.PolicyReadonly, MessageID: env.MessageID}), p)
	r.open(p.system, []section{{"task", task}})
	err := r.loop(ctx)
	report := Report{Text: r.result.Answer, Steps: r.result.Steps}
	if err == nil {
		return report, nil
	}
	e, ok := errors.AsType[*core.Error](err)
	if ctx.Err() != nil || !ok || e.Kind == core.Internal || e.Code == "sandbox_lost" || e.Code == core.CodeCostUnknown {
		return report, err
	}
	report.Text, report.Failure = r.lastText(), e.Message
	if r.result.Steps >= r.limits.Steps {
		report.Failure = fmt.Sprintf("reached %d steps.", r.result.Steps)
	}
	return report, nil
}

// lastText is the last that the model said.
func (r *run) lastText() string {
	for i := len(r.messages) - 1; i >= 0; i-- {
		if m := r.messages[i]; m.Role == Assistant && strings.TrimSpace(m.Text) != "" {
			clean, _ := r.redact.Text(m.Text)
			return strings.TrimSpace(clean)
		}
	}
	return ""
}

// quietRecorder records of a subagent only that a request was repeated.
type quietRecorder struct{ core.TurnRecorder }

func (quietRecorder) ToolCall(ctx context.Context, _ core.AgentToolCall) error { return stopped(ctx) }

func (quietRecorder) ToolResult(ctx context.Context, _ core.AgentToolResult, _ []byte) error {
	return stopped(ctx)
}

func (quietRecorder) PolicyRefused(ctx context.Context, _ core.PolicyRefused) error {
	return stopped(ctx)
}
func (quietRecorder) Partial(string) {}

func stopped(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
