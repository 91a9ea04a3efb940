package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"agent-sandboxing/agent"
)

// chunk is one data line, as far as it is used. What providers send in several forms stays raw.
type chunk struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
}

type choice struct {
	Index        int             `json:"index"`
	Delta        delta           `json:"delta"`
	Message      *delta          `json:"message"` // of a whole completion, where none was streamed
	FinishReason *string         `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
}

type delta struct {
	Content          json.RawMessage `json:"content"`
	Refusal          *string         `json:"refusal"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	ToolCalls        []toolDelta     `json:"tool_calls"`
}

// answer is a response while it comes in.
type answer struct {
	text      strings.Builder
	reasoning reasoning
	refusal   bool
	calls     []*partialCall
	finish    string
	model     string
	usage     *usage
}

// add takes one data line.
func (a *answer) add(raw []byte, text func(string)) error {
	if f := errorFrame(raw); f != nil {
		return f
	}
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		f := streamError("The model's answer could not be read.")
		f.err = f.err.Because(errors.New("a data line is not a chunk"))
		return f
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if u := readUsage(c.Usage); u != nil {
		a.usage = u
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if isSet(choice.Error) {
			return errorFrame([]byte(`{"error":` + string(choice.Error) + `}`))
		}
		d := choice.Delta
		if choice.Message != nil {
			d = *choice.Message
		}
		if err := a.addDelta(d, text); err != nil {
			return err
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			a.finish = *choice.FinishReason
		}
	}
	return nil
}

// What one answer may hold: more than any model writes, and little enough to be kept, shown while it
// grows and answered call by call.
const (
	maxText  = 2 << 20 // bytes
	maxCalls = 256
)

func (a *answer) addDelta(d delta, text func(string)) error {
	if s := contentText(d.Content); s != "" {
		a.text.WriteString(s)
		if text != nil {
			text(s)
		}
	}
	if d.Refusal != nil && *d.Refusal != "" {
		a.refusal = true
	}
	a.reasoning.add(d)
	for _, call := range d.ToolCalls {
		if a.addCall(call); len(a.calls) > maxCalls {
			return tooMuch()
		}
	}
	if a.text.Len() > maxText {
		return tooMuch()
	}
	return nil
}

func tooMuch() *failure { return streamError("The model's answer is larger than an answer may be.") }

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
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// response is the finished answer. Without a reason for finishing there is none.
func (a *answer) response(replay Replay) (agent.Response, error) {
	out := agent.Response{
		Text: a.text.String(), Calls: a.wholeCalls(), Reasoning: a.reasoning.whole(replay),
		Model: a.model,
	}
	if a.usage != nil {
		out.UsageKnown, out.Usage = true, a.usage.record()
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

// isSet: the field is there and not null.
func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
