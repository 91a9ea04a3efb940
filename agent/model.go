package agent

import (
	"context"
	"encoding/json"

	"agent-sandboxing/core"
)

// Model streams completions of one language model. A failure is a core.Error with a code of
// core/agent.go, or the cause of a cancelled ctx. The agent never repeats a call of Stream.
type Model interface {
	// Name is the model as configured.
	Name() string
	// Stream sends one request and returns the whole answer. It returns calls only when the model
	// has said that it is finished: what a broken stream holds is never executed.
	Stream(ctx context.Context, req Request, on Listener) (Response, error)
}

// Request is one completion request.
type Request struct {
	Messages []Message
	Tools    []ToolSpec
}

// Listener hears of a request while it runs, on the goroutine of Stream.
type Listener struct {
	Text  func(delta string)
	Retry func(ctx context.Context, e core.ModelRequestRetry) error
}

// Role says who a message is from.
type Role string

const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message of a request. Calls and Reasoning belong to the assistant's, CallID to a
// tool's.
type Message struct {
	Role      Role
	Text      string
	Calls     []ToolCall
	CallID    string
	Reasoning json.RawMessage // of the Response that the message came from, unchanged
}

// ToolCall is what the model wants done. Arguments is its text, which may be no valid JSON.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
}

// ToolSpec declares a tool to the model. Parameters is a JSON Schema object.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// FinishReason is why the model stopped.
type FinishReason string

const (
	FinishStop          FinishReason = "stop"
	FinishToolCalls     FinishReason = "tool_calls"
	FinishLength        FinishReason = "length"
	FinishContentFilter FinishReason = "content_filter"
)

// Response is one whole completion.
type Response struct {
	Text       string
	Calls      []ToolCall
	Finish     FinishReason
	Model      string // as the provider names it, "" when it did not
	Usage      core.Usage
	UsageKnown bool // the provider sent a usage record
	// Reasoning is what the model thought before it answered, in the Model's own form, where it wants
	// that back with the message for as long as the turn lasts; nil where it does not.
	Reasoning json.RawMessage
}
