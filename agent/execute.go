package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// recordTimeout bounds the records that are written after a cancel.
const recordTimeout = 5 * time.Second

// execute runs the calls of one response in their order and answers each in the message list. When
// the turn ends in the middle, every remaining call is answered too.
func (r *run) execute(ctx context.Context, resp Response) error {
	calls := r.named(resp.Calls)
	r.messages = append(r.messages, Message{Role: Assistant, Text: resp.Text, Calls: calls, Reasoning: resp.Reasoning})

	if resp.Finish == FinishLength {
		if r.cutShort++; r.cutShort > maxCutShort {
			return core.Fail(core.Conflict, core.CodeModelTruncated,
				"The model's calls were longer than they may be, three times. Ask for a smaller piece of work.")
		}
		r.answerRest(calls, "Not executed: the output limit was reached in the middle. Send smaller calls.")
		return nil
	}

	understood := false
	for i, call := range calls {
		if i >= r.limits.CallsPerResponse {
			r.answerRest(calls[i:], fmt.Sprintf("Not executed: at most %d calls in one response. Send it again.", r.limits.CallsPerResponse))
			break
		}
		ok, err := r.one(ctx, call, resp.Calls[i].Arguments)
		if err != nil {
			r.answerRest(calls[i+1:], "Not executed: cancelled.")
			if ctx.Err() != nil {
				r.recordCancelled(ctx, calls[i+1:])
			}
			return err
		}
		understood = understood || ok
	}
	if understood {
		r.malformed = 0
	} else if r.malformed++; r.malformed >= maxMalformed {
		return core.Fail(core.Unavailable, core.CodeModelMalformed,
			"The model sent calls that could not be read, three times in a row. Send the message again, or use another model.")
	}
	r.warn()
	return nil
}

// named gives every call an id that is unique in this run, for events, and arguments that are
// valid JSON, because some providers refuse a history which is not.
func (r *run) named(calls []ToolCall) []ToolCall {
	named := slices.Clone(calls)
	for i := range named {
		id := named[i].ID
		if id == "" {
			id = fmt.Sprintf("call_%d_%d", r.result.Steps, i)
		}
		for base, n := id, 2; r.ids[id]; n++ {
			id = fmt.Sprintf("%s_%d", base, n)
		}
		r.ids[id] = true
		named[i].ID = id
		if named[i].Name == "" {
			named[i].Name = "unnamed"
		}
		args, _ := readArguments(named[i].Arguments)
		named[i].Arguments = string(args)
	}
	return named
}

// eventID is a call's id for people and for names of artifacts. The model's own goes back to it as it came,
// and may hold anything.
func (r *run) eventID(id string) string {
	if clean, _ := r.redact.Text(id); clean == id && plainID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:8])
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$`)

// one runs a call and records it. ok says that the call could be read; an error ends the turn.
func (r *run) one(ctx context.Context, call ToolCall, raw string) (ok bool, err error) {
	if err := ctx.Err(); err != nil {
		r.answer(call, "Not executed: cancelled.")
		r.recordCancelled(ctx, []ToolCall{call})
		return false, context.Cause(ctx)
	}
	args, argErr := readArguments(raw)
	tool := r.tools[call.Name]
	object := ""
	if tool != nil && argErr == nil {
		object = r.line(tool.Object(args), core.MaxSnippet)
	}
	event := core.AgentToolCall{CallID: r.eventID(call.ID), Tool: r.line(call.Name, 100), Object: object, Step: r.result.Steps}
	if err := r.rec.ToolCall(ctx, event); err != nil {
		r.answer(call, "Not executed.")
		return false, err
	}

	start := time.Now()
	var result Result
	switch {
	case tool == nil:
		result = Failed("unknown_tool", "there is no tool %q. Available: %s.", redact.Line(call.Name, 100), strings.Join(r.toolNames(), ", "))
	case argErr != nil:
		result = Failed("invalid_arguments", "%s. Send the call again with valid JSON.", argErr)
	default:
		result, err = tool.Run(ctx, args)
	}
	ms := time.Since(start).Milliseconds()
	if err != nil {
		r.answer(call, "Interrupted.")
		r.recordInterrupted(ctx, event, ms)
		return false, err
	}
	nudge, stop := r.repeats.add(r.result.Steps, call.Name, call.Arguments, result)
	r.did[call.ID] = r.line(strings.Join([]string{call.Name, object, result.Detail}, " "), 200)
	r.answer(call, result.Text)
	r.notice(result.Notice)
	r.notice(hiddenNote(result.Text))
	r.notice(nudge)
	if err := r.record(ctx, event, result, ms); err != nil {
		return false, err
	}
	return tool != nil && argErr == nil, stop
}

// record writes the result of a call, and before it the refusal that it was.
func (r *run) record(ctx context.Context, call core.AgentToolCall, result Result, ms int64) error {
	if refusal := result.Refusal; refusal != nil {
		err := r.rec.PolicyRefused(ctx, core.PolicyRefused{
			CallID: call.CallID, Rule: refusal.Rule, Message: refusal.Message, Snippet: r.snippet(refusal.Command),
		})
		if err != nil {
			return err
		}
	}
	var full []byte
	if result.Truncated && result.Full != nil {
		full = []byte(redact.Clean(string(result.Full)))
		full, _ = r.redact.Bytes(full)
	}
	return r.rec.ToolResult(ctx, core.AgentToolResult{
		CallID: call.CallID, Tool: call.Tool, Object: call.Object,
		Outcome: result.Outcome, Detail: r.line(result.Detail, 200), Code: result.Code, Exit: result.Exit,
		Snippet: r.snippet(result.Text), Truncated: result.Truncated, Ignored: r.names(result.Ignored), Ms: ms,
	}, full)
}

// recordInterrupted ends a call that was running when the turn ended.
func (r *run) recordInterrupted(ctx context.Context, call core.AgentToolCall, ms int64) {
	outcome := "interrupted"
	if ctx.Err() != nil {
		outcome = OutcomeCancelled
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	// The turn is already ending for a better reason than a failure to record it.
	_ = r.rec.ToolResult(end, core.AgentToolResult{
		CallID: call.CallID, Tool: call.Tool, Object: call.Object, Outcome: outcome, Ms: ms,
	}, nil)
}

// recordCancelled shows the calls that the model still wanted when the turn was cancelled.
func (r *run) recordCancelled(ctx context.Context, calls []ToolCall) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	for _, call := range calls {
		event := core.AgentToolCall{CallID: r.eventID(call.ID), Tool: r.line(call.Name, 100), Step: r.result.Steps}
		if tool := r.tools[call.Name]; tool != nil {
			event.Object = r.line(tool.Object(json.RawMessage(call.Arguments)), core.MaxSnippet)
		}
		if r.rec.ToolCall(end, event) != nil {
			return
		}
		r.recordInterrupted(ctx, event, 0)
	}
}

// answer is what a tool says. It cannot say anything in the platform's name.
func (r *run) answer(call ToolCall, text string) {
	r.messages = append(r.messages, Message{Role: ToolRole, CallID: call.ID, Text: r.unmarked(text)})
}

func (r *run) answerRest(calls []ToolCall, text string) {
	for _, call := range calls {
		r.answer(call, text)
	}
}

// warn tells the model once, after four fifths of its steps, how many are left.
func (r *run) warn() {
	left := r.limits.Steps - r.result.Steps
	if r.warned || r.result.Steps*5 < r.limits.Steps*4 || left <= 0 {
		return
	}
	r.warned = true
	steps := "steps"
	if left == 1 {
		steps = "step"
	}
	r.notice(fmt.Sprintf("%d %s left: finish and report.", left, steps))
}

func (r *run) toolNames() []string {
	names := make([]string, len(r.specs))
	for i, s := range r.specs {
		names[i] = s.Name
	}
	return names
}

// line is text for one line of an event: cleaned, redacted, then cut.
func (r *run) line(s string, limit int) string {
	s, _ = r.redact.Text(redact.Clean(s))
	return redact.Line(s, limit)
}

// names are some words of the model for an event.
func (r *run) names(list []string) []string {
	const most, long = 10, 60
	var names []string
	for _, name := range list[:min(len(list), most)] {
		names = append(names, r.line(name, long))
	}
	return names
}

// snippet is text for an event, in at most core.MaxSnippet bytes.
func (r *run) snippet(s string) string {
	s, _ = r.redact.Text(redact.Clean(s))
	return redact.Cut(strings.TrimSpace(s), core.MaxSnippet)
}

// readArguments makes a JSON object of what the model sent. Nothing is an empty object, an object
// in a JSON string is unwrapped; anything else is an error for the model to read, with "{}".
func readArguments(raw string) (json.RawMessage, error) {
	empty := json.RawMessage("{}")
	text := bytes.TrimSpace([]byte(raw))
	if len(text) == 0 || string(text) == "null" {
		return empty, nil
	}
	var inner string
	if json.Unmarshal(text, &inner) == nil {
		text = bytes.TrimSpace([]byte(inner))
	}
	var object map[string]json.RawMessage
	err := json.Unmarshal(text, &object)
	if err == nil && object != nil {
		return json.RawMessage(text), nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(int(syntax.Offset), len(text))
		return empty, fmt.Errorf("the arguments are not valid JSON at byte %d, after %q", at, redact.Tail(string(text[:at]), 40))
	}
	return empty, errors.New("the arguments are not a JSON object")
}
