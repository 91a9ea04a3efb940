package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"agent-sandboxing/agent"
)

// toolDelta is a piece of a tool call.
type toolDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type partialCall struct {
	index     int // -1 when the provider gives none
	id, name  string
	arguments strings.Builder
}

// addCall joins the pieces of calls. They belong together by index; where that is missing, a new id begins
// a new call, and with a name also where one index is used for two. A new id alone is a provider that makes
// one for each piece: the first stays.
func (a *answer) addCall(d toolDelta) {
	call := a.openCall(d)
	other := call != nil && d.ID != "" && call.id != "" && d.ID != call.id
	if other && d.Index != nil && d.Function.Name == "" {
		d.ID, other = call.id, false
	}
	if call == nil || other {
		call = &partialCall{index: -1}
		if d.Index != nil {
			call.index = *d.Index
		}
		a.calls = append(a.calls, call)
	}
	if d.ID != "" {
		call.id = d.ID
	}
	if d.Function.Name != "" && call.name == "" {
		call.name = d.Function.Name
	}
	var piece string
	if json.Unmarshal(d.Function.Arguments, &piece) == nil {
		call.arguments.WriteString(piece)
	} else if len(d.Function.Arguments) > 0 {
		call.arguments.Write(d.Function.Arguments) // an object in place of text
	}
}

// openCall is the call that a piece may continue: the last one with its index, or the last of all.
func (a *answer) openCall(d toolDelta) *partialCall {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if d.Index == nil || a.calls[i].index == *d.Index {
			return a.calls[i]
		}
	}
	return nil
}

// wholeCalls gives every call an id of its own.
func (a *answer) wholeCalls() []agent.ToolCall {
	var calls []agent.ToolCall
	seen := map[string]bool{}
	for i, c := range a.calls {
		id := c.id
		if id == "" {
			id = fmt.Sprintf("call_%d", i)
		}
		for base, n := id, 2; seen[id]; n++ {
			id = fmt.Sprintf("%s_%d", base, n)
		}
		seen[id] = true
		calls = append(calls, agent.ToolCall{ID: id, Name: c.name, Arguments: c.arguments.String()})
	}
	return calls
}
