package openai_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/agent/openai"
)

// sent is the body of the request that a client with these options makes of req.
func sent(t *testing.T, o openai.Options, req agent.Request) modeltest.Request {
	t.Helper()
	model, url := serve(t, modeltest.Reply{Text: "ok"})
	if _, err := patient(t, url, o).Stream(t.Context(), req, agent.Listener{}); err != nil {
		t.Fatal(err)
	}
	return model.Journal()[0]
}

// worked is a conversation in the middle of a turn.
func worked() agent.Request {
	req := hello()
	req.Messages = append(req.Messages,
		agent.Message{Role: agent.Assistant, Calls: []agent.ToolCall{{ID: "a", Name: "ls"}}},
		agent.Message{Role: agent.ToolRole, CallID: "a"})
	return req
}

func TestBody_IsTheWholeRequest(t *testing.T) {
	t.Parallel()
	got := sent(t, openai.Options{}, worked())
	if got.Authorization != "Bearer sk-test-key-0123456789" {
		t.Errorf("authorization %q", got.Authorization)
	}
	want := `{
		"model": "some/model", "stream": true, "stream_options": {"include_usage": true},
		"tools": [{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}}],
		"messages": [
			{"role": "system", "content": "rules"},
			{"role": "user", "content": "hello"},
			{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
			{"role": "tool", "content": "(empty)", "tool_call_id": "a"}
		]
	}`
	if diff := cmp.Diff(decode(t, []byte(want)), decode(t, encode(t, got.Body))); diff != "" {
		t.Error(diff)
	}
}

func TestBody_OpenRouterGetsItsKeysAndNobodyElse(t *testing.T) {
	t.Parallel()
	got := sent(t, openai.Options{
		Dialect: openai.DialectOpenRouter, Effort: "high", Providers: []string{"one", "two"}, MaxOutput: 4000, OneCall: true,
	}, hello()).Body
	for key, want := range map[string]string{
		"provider":            `{"require_parameters":true,"data_collection":"deny","only":["one","two"],"allow_fallbacks":false}`,
		"plugins":             `[{"id":"context-compression","enabled":false}]`,
		"usage":               `{"include":true}`,
		"reasoning":           `{"effort":"high"}`,
		"max_tokens":          `4000`,
		"parallel_tool_calls": `false`,
	} {
		if string(got[key]) != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
	if got["reasoning_effort"] != nil || got["models"] != nil {
		t.Errorf("%s, %s", got["reasoning_effort"], got["models"])
	}
	got = sent(t, openai.Options{Dialect: openai.DialectOpenRouter, AllowRetention: true}, hello()).Body
	if string(got["provider"]) != `{"require_parameters":true,"data_collection":"allow"}` || got["reasoning"] != nil {
		t.Errorf("provider %s, reasoning %s", got["provider"], got["reasoning"])
	}

	got = sent(t, openai.Options{Effort: "low", Model: "o3", MaxOutput: 9}, hello()).Body
	for key := range got {
		switch key {
		case "model", "stream", "stream_options", "tools", "messages", "reasoning_effort", "max_completion_tokens":
		default:
			t.Errorf("a plain endpoint gets %s", key)
		}
	}
	if string(got["reasoning_effort"]) != `"low"` || string(got["max_completion_tokens"]) != "9" {
		t.Errorf("%s, %s", got["reasoning_effort"], got["max_completion_tokens"])
	}
}

// The host decides when nothing is set.
func TestBody_DialectFollowsTheHost(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]bool{"https://openrouter.ai/api/v1": true, "https://models.example.com/v1": false} {
		var keys map[string]json.RawMessage
		transport := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
		transport.RegisterProtocol("https", roundTrip(func(r *http.Request) (*http.Response, error) {
			err := json.NewDecoder(r.Body).Decode(&keys)
			if err == nil {
				err = http.ErrHandlerTimeout
			}
			return nil, err
		}))
		c := openai.New(openai.Options{BaseURL: base, Model: "m", Retries: new(0), Transport: transport})
		if _, err := c.Stream(t.Context(), hello(), agent.Listener{}); err == nil {
			t.Fatal("an answer from nowhere")
		}
		if got := keys["provider"] != nil; got != want {
			t.Errorf("%s: openrouter %v", base, got)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What a model made up must not make the next request one that providers refuse; modeltest does.
func TestBody_HistoryIsAlwaysAcceptable(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"search_files", " read ", "", strings.Repeat("a/b", 100), "日本", "x.y:z", "___"} {
		for _, arguments := range []string{"", "{}", `{"path": "a`, "\xff", "null"} {
			req := hello()
			req.Messages = append(req.Messages,
				agent.Message{Role: agent.Assistant, Text: " \n", Calls: []agent.ToolCall{{ID: "a", Name: name, Arguments: arguments}}},
				agent.Message{Role: agent.ToolRole, CallID: "a", Text: "Error (unknown_tool): no. \x00\xff"})
			if got := sent(t, openai.Options{}, req).Messages[2].Content; got != "" {
				t.Errorf("a blank text was sent: %q", got)
			}
		}
	}
}

func TestBody_CacheIsMarkedOnlyWhereTheFamilyNeedsIt(t *testing.T) {
	t.Parallel()
	marks := func(o openai.Options) int {
		return bytes.Count(encode(t, sent(t, o, worked()).Body), []byte(`"cache_control":{"type":"ephemeral"}`))
	}
	claude := openai.Options{Dialect: openai.DialectOpenRouter, Model: "anthropic/claude-sonnet-4.5"}
	if n := marks(claude); n != 3 {
		t.Errorf("%d marks, want rules, tools and conversation", n)
	}
	got := sent(t, claude, worked())
	if got.Messages[0].Content != "rules" || got.Messages[3].Content != "(empty)" {
		t.Errorf("the texts changed: %+v", got.Messages)
	}
	for _, o := range []openai.Options{
		{Dialect: openai.DialectOpenRouter, Model: "deepseek/deepseek-chat"},
		{Model: "anthropic/claude-sonnet-4.5"},
	} {
		if n := marks(o); n != 0 {
			t.Errorf("%+v has %d marks", o, n)
		}
	}
}

// A prompt that is cached has to be the same bytes.
func TestBody_SameRequestSameBytes(t *testing.T) {
	t.Parallel()
	req := worked()
	req.Messages[1].Text = "<b>&amp; a < b && c > d</b>"
	var first string
	for range 5 {
		body := string(sent(t, openai.Options{Dialect: openai.DialectOpenRouter, Schema: openai.SchemaMinimal}, req).Body["messages"])
		if first == "" {
			first = body
		}
		if body != first {
			t.Fatalf("%s\n%s", first, body)
		}
	}
	if !strings.Contains(first, "<b>&amp; a < b && c > d</b>") {
		t.Errorf("angle brackets cost escapes: %s", first)
	}
}

func TestBody_MinimalSchemaKeepsWhatEveryEndpointBears(t *testing.T) {
	t.Parallel()
	req := hello()
	req.Tools[0].Parameters = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["edits"],"properties":{
		"edits":{"type":"array","minItems":1,"maxItems":20,"description":"What to change","items":{"type":"object","additionalProperties":false,
			"properties":{"minimum":{"type":"integer","minimum":1,"default":3},"items":{"type":"string","maxLength":9}},"required":["minimum"]}}}}`)
	want := `{"type":"object","required":["edits"],"properties":{
		"edits":{"type":"array","description":"What to change","items":{"type":"object",
			"properties":{"minimum":{"type":"integer"},"items":{"type":"string"}},"required":["minimum"]}}}}`
	got := sent(t, openai.Options{Schema: openai.SchemaMinimal}, req).Tools[0].Function.Parameters
	if diff := cmp.Diff(decode(t, []byte(want)), decode(t, got)); diff != "" {
		t.Error(diff)
	}
	got = sent(t, openai.Options{}, req).Tools[0].Function.Parameters
	if diff := cmp.Diff(decode(t, req.Tools[0].Parameters), decode(t, got)); diff != "" {
		t.Errorf("the full schema was changed: %s", diff)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func decode(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
