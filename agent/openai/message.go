package openai

import (
	"encoding/json"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"agent-sandboxing/agent"
)

// maxName is how long a tool's name may be on the wire, in bytes.
const maxName = 64

// message is one message on the wire. Content is always there, because endpoints differ in what
// they make of a missing one: a text that is never empty, text parts, or null beside calls.
type message struct {
	Role             string          `json:"role"`
	Content          any             `json:"content"` // string, []textPart or nil
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
	ReasoningContent json.RawMessage `json:"reasoning_content,omitempty"`
	ToolCalls        []api.ToolCall  `json:"tool_calls,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"`
}

type textPart struct {
	Type         string        `json:"type"`
	Text         string        `json:"text"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

func (o Options) message(m agent.Message) message {
	out := message{Role: string(m.Role), ToolCallID: m.CallID}
	switch {
	case strings.TrimSpace(m.Text) != "":
		out.Content = m.Text
	case len(m.Calls) == 0:
		out.Content = "(empty)"
	}
	switch {
	case m.Role != agent.Assistant:
	case o.Replay == ReplayDetails:
		out.ReasoningDetails = m.Reasoning
	case o.Replay == ReplayContent:
		out.ReasoningContent = m.Reasoning
	}
	for _, call := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, api.ToolCall{
			ID: call.ID, Type: api.ToolTypeFunction,
			Function: api.FunctionCall{Name: wireName(call.Name), Arguments: wireArguments(call.Arguments)},
		})
	}
	return out
}

func (m *message) markCache() {
	if text, ok := m.Content.(string); ok {
		m.Content = []textPart{{Type: "text", Text: text, CacheControl: ephemeral()}}
	}
}

// wireArguments: endpoints read the arguments of earlier calls and refuse what is no JSON.
func wireArguments(s string) string {
	if !json.Valid([]byte(s)) {
		return "{}"
	}
	return s
}

// wireName makes of a name that a model made up one that endpoints accept in the history.
func wireName(s string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
	if strings.Trim(name, "_") == "" {
		return "unnamed"
	}
	return name[:min(len(name), maxName)]
}
