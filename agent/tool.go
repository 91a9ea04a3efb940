package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"agent-sandboxing/core"
)

// Tool is one thing that the model may do.
type Tool interface {
	Spec() ToolSpec
	// Object names the one thing that a call acts on, for people: a path, a command, a pattern.
	// Arguments that cannot be read give "".
	Object(args json.RawMessage) string
	// Run does it. What the model can learn from, a bad argument or a failing command, is a Result;
	// an error means that the turn cannot go on: ctx was cancelled or the sandbox is lost.
	Run(ctx context.Context, args json.RawMessage) (Result, error)
}

// Toolset makes the tools of one invocation. It must also work on a zero Env, from which only the
// specifications are taken.
type Toolset func(Env) []Tool

// Env is what the tools of one invocation may use.
type Env struct {
	Workspace core.Workspace
	Publisher core.Publisher
	Policy    core.BashPolicy
	MessageID core.MessageID // names the kept logs of cut outputs
	// Investigate lets a subagent answer a question about the repository. Its failure is an error as
	// a tool's is: it ends the turn.
	Investigate func(ctx context.Context, task string) (Report, error)
}

// Report is what a subagent found. Failure says why it did not finish, "" when it did; Text is then
// the last that it said.
type Report struct {
	Text    string
	Steps   int
	Failure string
}

// Outcomes of a tool call, as events carry them.
const (
	OutcomeOK        = "ok"
	OutcomeError     = "error"
	OutcomeRefused   = "refused"
	OutcomeCancelled = "cancelled"
)

// Result is what a tool answers. Text is what the model sees of what was done, never empty, and Notice
// what the platform has to say of it, in its own name; the rest is for events.
type Result struct {
	Text      string
	Notice    string
	Outcome   string
	Code      string // of an error, or the rule of a refusal
	Detail    string // "exit 1", "+8 −2", "14 matches"
	Exit      *int
	Truncated bool   // Text leaves something out
	Full      []byte // the whole output when Truncated and known; kept as an artifact
	Refusal   *Refusal
	Ignored   []string // names of arguments that the tool does not know
}

// Refusal is a command that the bash policy did not let through. Nothing was started.
type Refusal struct {
	Rule    string
	Message string
	Command string
}

// OK is a successful result.
func OK(text, detail string) Result {
	return Result{Text: text, Outcome: OutcomeOK, Detail: detail}
}

// Failed is a result that tells the model what went wrong and what to do next. Code is snake_case.
func Failed(code, format string, args ...any) Result {
	return Result{
		Text:    "Error (" + code + "): " + fmt.Sprintf(format, args...),
		Outcome: OutcomeError,
		Code:    code,
		Detail:  code,
	}
}

// FailedBy turns the error of a workspace or a publisher into a result for the model. An error that
// ends the turn is handed on instead: a cancelled ctx, a lost sandbox, and what has no code for people.
func FailedBy(ctx context.Context, err error) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	e, ok := errors.AsType[*core.Error](err)
	if !ok || e.Kind == core.Internal || e.Code == "sandbox_lost" {
		return Result{}, err
	}
	return Failed(e.Code, "%s", e.Message), nil
}
