package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/agent/openai"
)

// modeltest refuses a block that comes back changed, as signing providers do.
func TestReasoning_GoesBackUnchangedWithinTheTurn(t *testing.T) {
	t.Parallel()
	thought := "First “look”, then <think> & act. 日本"
	tests := map[string]struct {
		options openai.Options
		details bool
		content bool
	}{
		"blocks, by the router":     {options: openai.Options{Dialect: openai.DialectOpenRouter}, details: true},
		"not for Gemini":            {options: openai.Options{Dialect: openai.DialectOpenRouter, Model: "google/gemini-3-pro"}},
		"not for plain endpoints":   {},
		"blocks, as configured":     {options: openai.Options{Replay: openai.ReplayDetails}, details: true},
		"a text, as configured":     {options: openai.Options{Replay: openai.ReplayContent}, content: true},
		"nothing, as configured":    {options: openai.Options{Dialect: openai.DialectOpenRouter, Replay: openai.ReplayNone}},
		"a text, behind the router": {options: openai.Options{Dialect: openai.DialectOpenRouter, Replay: openai.ReplayContent}, content: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, url := serve(t, modeltest.Reply{Reasoning: thought, Calls: []modeltest.Call{{ID: "a", Name: "ls"}}}, modeltest.Reply{Text: "done"})
			c := patient(t, url, test.options)
			req := hello()
			first, err := c.Stream(t.Context(), req, agent.Listener{})
			if err != nil {
				t.Fatal(err)
			}
			if first.Text != "" {
				t.Errorf("text %q", first.Text)
			}
			req.Messages = append(req.Messages,
				agent.Message{Role: agent.Assistant, Calls: first.Calls, Reasoning: first.Reasoning},
				agent.Message{Role: agent.ToolRole, CallID: "a", Text: "a.go"})
			if _, err := c.Stream(t.Context(), req, agent.Listener{}); err != nil {
				t.Fatal(err)
			}
			var messages []map[string]any
			if err := json.Unmarshal(model.Journal()[1].Body["messages"], &messages); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			if test.details {
				want["reasoning_details"] = []any{map[string]any{
					"type": "reasoning.text", "index": 0.0, "format": "modeltest-v1", "text": thought, "signature": modeltest.Signature(thought),
				}}
			}
			if test.content {
				want["reasoning_content"] = thought
			}
			got := messages[2]
			for _, key := range []string{"role", "content", "tool_calls"} {
				delete(got, key)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReasoning_BlocksStayApartAndWhole(t *testing.T) {
	t.Parallel()
	line := func(details string) string {
		return `data: {"choices":[{"delta":{"reasoning_details":` + details + `}}]}` + "\n\n"
	}
	tests := map[string]struct{ stream, want string }{
		"two texts": {
			line(`[{"type":"reasoning.text","index":0,"text":"a"}]`) + line(`[{"type":"reasoning.text","index":0,"text":"b","signature":null}]`) +
				line(`[{"type":"reasoning.text","index":0,"text":null,"signature":"s","other":{"x":1}}]`) + line(`[{"type":"reasoning.text","index":1,"text":"c"}]`),
			`[{"type":"reasoning.text","index":0,"text":"ab","signature":"s","other":{"x":1}},{"type":"reasoning.text","index":1,"text":"c"}]`,
		},
		"a signature, then more": {
			line(`[{"type":"reasoning.text","text":"a","signature":"s"}]`) + line(`[{"type":"reasoning.text","text":"b","signature":null}]`),
			`[{"type":"reasoning.text","text":"ab","signature":"s"}]`,
		},
		"encrypted blocks": {
			line(`[{"type":"reasoning.encrypted","id":"1","data":"AA"},{"type":"reasoning.encrypted","id":"2","data":"BB"}]`),
			`[{"type":"reasoning.encrypted","id":"1","data":"AA"},{"type":"reasoning.encrypted","id":"2","data":"BB"}]`,
		},
		"a summary, then what it sums up": {
			line(`[{"type":"reasoning.summary","summary":"a"}]`) + line(`[{"type":"reasoning.summary","summary":"b"},{"type":"reasoning.encrypted","data":"CC"}]`),
			`[{"type":"reasoning.summary","summary":"ab"},{"type":"reasoning.encrypted","data":"CC"}]`,
		},
		"a long one in small pieces": {
			strings.Repeat(line(`[{"type":"reasoning.text","index":0,"format":"some-format-with-a-long-name-v1","text":"word "}]`), 20_000),
			`[{"type":"reasoning.text","index":0,"format":"some-format-with-a-long-name-v1","text":"` + strings.Repeat("word ", 20_000) + `"}]`,
		},
		"no blocks": {line(`null`) + line(`"odd"`) + line(`[null]`) + line(`{}`), ``},
		"too much":  {strings.Repeat(line(`[{"type":"reasoning.text","text":"`+strings.Repeat("x", 100<<10)+`"}]`), 12), ``},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rawWith(t, test.stream+said, openai.Options{Replay: openai.ReplayDetails}).Stream(t.Context(), hello(), agent.Listener{})
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if got.Reasoning != nil {
					t.Errorf("%.200s", got.Reasoning)
				}
				return
			}
			if diff := cmp.Diff(decode(t, []byte(test.want)), decode(t, got.Reasoning)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReasoning_TextUnderEitherNameOnce(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{`"reasoning":"why"`, `"reasoning_content":"why"`, `"reasoning":"why","reasoning_content":"why"`} {
		stream := `data: {"choices":[{"delta":{` + fields + `}}]}` + "\n\n" + said
		got, err := rawWith(t, stream, openai.Options{Replay: openai.ReplayContent}).Stream(t.Context(), hello(), agent.Listener{})
		if err != nil || string(got.Reasoning) != `"why"` || got.Text != "x" {
			t.Errorf("%s: %+v, %v", fields, got, err)
		}
	}
}
