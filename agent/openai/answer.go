package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

// chunk is one data line, as far as it is used. What providers send in several forms stays raw.
type chunk struct {
	Model   string `json:"model"`
	Object  string `json:"object"`
	Choices []struct {
		Index        int     `json:"index"`
		Delta        delta   `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

type delta struct {
	Content   json.RawMessage `json:"content"`
	Refusal   *string         `json:"refusal"`
	ToolCalls []toolDelta     `json:"tool_calls"`
}

type toolDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	PromptTokens     int64           `json:"prompt_tokens"`
	CompletionTokens int64           `json:"completion_tokens"`
	Cost             json.RawMessage `json:"cost"`
	Details          *struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// answer is a response while it comes in.
type answer struct {
	text    strings.Builder
	refusal bool
	calls   []*partialCall
	finish  string
	model   string
	usage   *usage
}

type partialCall struct {
	index     int // -1 when the provider gives none
	id, name  string
	arguments strings.Builder
}

// add takes one data line.
func (a *answer) add(raw []byte, text func(string)) error {
	if f := errorFrame(raw); f != nil {
		return f
	}
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		f := streamError("The model's answer could not be read.")
		f.err = f.err.Because(errors.New("a data line is not valid JSON"))
		return f
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.usage = c.Usage
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if s := contentText(choice.Delta.Content); s != "" {
			a.text.WriteString(s)
			if text != nil {
				text(s)
			}
		}
		if r := choice.Delta.Refusal; r != nil && *r != "" {
			a.refusal = true
		}
		for _, call := range choice.Delta.ToolCalls {
			a.addCall(call)
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			a.finish = *choice.FinishReason
		}
	}
	return nil
}

// addCall joins the pieces of calls. They belong together by index; where that is missing, or one
// index is used for two calls, a new id begins a new call.
func (a *answer) addCall(d toolDelta) {
	var call *partialCall
	if d.Index == nil && len(a.calls) > 0 {
		call = a.calls[len(a.calls)-1]
	}
	if d.Index != nil {
		for _, c := range a.calls {
			if c.index == *d.Index {
				call = c
			}
		}
	}
	if call == nil || d.ID != "" && call.id != "" && d.ID != call.id {
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

// contentText reads content that is text, or a list of parts with text.
func contentText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// response is the finished answer. Without a reason for finishing there is none.
func (a *answer) response() (agent.Response, error) {
	out := agent.Response{Text: a.text.String(), Model: a.model}
	if a.usage != nil {
		out.UsageKnown = true
		out.Usage = core.Usage{
			PromptTokens:     a.usage.PromptTokens,
			CompletionTokens: a.usage.CompletionTokens,
			CostUSD:          cost(a.usage.Cost),
		}
		if a.usage.Details != nil {
			out.Usage.CachedTokens = a.usage.Details.Cached
		}
	}
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
		out.Calls = append(out.Calls, agent.ToolCall{ID: id, Name: c.name, Arguments: c.arguments.String()})
	}
	switch a.finish {
	case "":
		return agent.Response{}, streamBroken(errors.New("the stream ended without finish_reason")).err
	case "error":
		return agent.Response{}, streamError("The model provider reported a failure.").err
	case "length", "max_tokens":
		out.Finish = agent.FinishLength
	case "content_filter", "refusal":
		out.Finish = agent.FinishContentFilter
	default:
		out.Finish = agent.FinishStop
		if len(out.Calls) > 0 {
			out.Finish = agent.FinishToolCalls
		}
	}
	if a.refusal && out.Text == "" && len(out.Calls) == 0 {
		out.Finish = agent.FinishContentFilter
	}
	return out, nil
}

// cost reads a price in dollars: a number, a number as text, or an object with a total.
func cost(raw json.RawMessage) *float64 {
	var n float64
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if json.Unmarshal(raw, &n) == nil {
		return &n
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		if n, err := number.Float64(); err == nil {
			return &n
		}
	}
	var object struct {
		Total *float64 `json:"total"`
		Cost  *float64 `json:"total_cost"`
	}
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	if object.Total != nil {
		return object.Total
	}
	return object.Cost
}
