package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient is a client with all its patience, which a busy machine does not exhaust. What happens
// when it ends is tested on a clock of its own, in time_test.go.
func patient(t *testing.T, url string, o openai.Options) *openai.Client {
	t.Helper()
	o.BaseURL, o.Key, o.RetryWait = url+"/v1", "sk-test-key-0123456789", time.Millisecond
	if o.Model == "" {
		o.Model = "some/model"
	}
	c := openai.New(o)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, replies ...modeltest.Reply) (*modeltest.Server, string) {
	t.Helper()
	model := modeltest.NewServer(modeltest.Sequence(replies...), 0)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	return model, server.URL
}

func scripted(t *testing.T, replies ...modeltest.Reply) (*modeltest.Server, *openai.Client) {
	t.Helper()
	model, url := serve(t, replies...)
	return model, patient(t, url, openai.Options{})
}

func hello() agent.Request {
	return agent.Request{
		Messages: []agent.Message{{Role: agent.System, Text: "rules"}, {Role: agent.User, Text: "hello"}},
		Tools:    []agent.ToolSpec{{Name: "read", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object"}`)}},
	}
}

func TestStream_TextAndCallsArriveWhole(t *testing.T) {
	t.Parallel()
	arguments := `{"path":"src/é日本🙂.ts","content":"` + strings.Repeat("long text 日本 ", 40) + `"}`
	_, c := scripted(t, modeltest.Reply{
		Text:  "I will look at two files. Ω≈ç",
		Calls: []modeltest.Call{{ID: "a", Name: "write", Arguments: arguments}, {ID: "b", Name: "ls"}},
	})
	var text strings.Builder
	got, err := c.Stream(t.Context(), hello(), agent.Listener{Text: func(s string) { text.WriteString(s) }})
	if err != nil {
		t.Fatal(err)
	}
	want := []agent.ToolCall{{ID: "a", Name: "write", Arguments: arguments}, {ID: "b", Name: "ls"}}
	if diff := cmp.Diff(want, got.Calls); diff != "" {
		t.Error(diff)
	}
	if got.Text != "I will look at two files. Ω≈ç" || text.String() != got.Text {
		t.Errorf("text %q, streamed %q", got.Text, text.String())
	}
	if got.Finish != agent.FinishToolCalls || !got.UsageKnown || got.Usage.PromptTokens == 0 || got.Usage.CostUSD == nil || got.Model != "scripted" {
		t.Errorf("got %+v", got)
	}
}

func TestStream_FailuresHaveTheirCodes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault   modeltest.Fault
		code    string
		retries int
	}{
		{modeltest.Unauthorized, core.CodeModelUnauthorized, 0},
		{modeltest.LongLimit, core.CodeModelRateLimited, 0},
		{modeltest.ServerError, core.CodeModelUnavailable, 0},
		{modeltest.Overloaded, core.CodeModelUnavailable, 2},
		{modeltest.ContextLength, core.CodeContextOverflow, 0},
		{modeltest.Redirect, core.CodeModelRejected, 0},
		{modeltest.Broken, core.CodeModelStreamError, 0},
		{modeltest.Truncated, core.CodeModelStreamError, 0},
		{modeltest.HTML, core.CodeModelStreamError, 0},
		{modeltest.JSONError, core.CodeModelStreamError, 0},
		{modeltest.ErrorFrame, core.CodeModelStreamError, 0},
		{modeltest.Garbage, core.CodeModelStreamError, 0},
	}
	for _, test := range tests {
		t.Run(string(test.fault), func(t *testing.T) {
			t.Parallel()
			reply := modeltest.Reply{
				Text: "some words before it breaks", Fault: test.fault,
				Calls: []modeltest.Call{{Name: "write", Arguments: `{"path":"a","content":"b"}`}},
			}
			model, url := serve(t, reply, reply, reply, reply)
			c := patient(t, url, openai.Options{})
			retries := 0
			got, err := c.Stream(t.Context(), hello(), agent.Listener{Retry: func(context.Context, core.ModelRequestRetry) error {
				retries++
				return nil
			}})
			if code := core.CodeOf(err); code != test.code {
				t.Errorf("code %q, want %q (%v)", code, test.code, err)
			}
			if len(got.Calls) > 0 {
				t.Errorf("calls of a failed answer: %v", got.Calls)
			}
			if retries != test.retries || len(model.Journal()) != test.retries+1 {
				t.Errorf("%d retries announced, %d requests, want %d retries", retries, len(model.Journal()), test.retries)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("provider text in the error: %v", err)
			}
		})
	}
}

func TestStream_UnreachableIsRetriedAndUnavailable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	retries := 0
	_, err := patient(t, server.URL, openai.Options{}).Stream(t.Context(), hello(), agent.Listener{Retry: func(context.Context, core.ModelRequestRetry) error {
		retries++
		return nil
	}})
	if core.CodeOf(err) != core.CodeModelUnavailable || retries != 2 {
		t.Errorf("%v after %d retries", err, retries)
	}
}

func TestStream_RetrySucceeds(t *testing.T) {
	t.Parallel()
	_, c := scripted(t, modeltest.Reply{Fault: modeltest.Overloaded}, modeltest.Reply{Text: "fine now"})
	var seen []core.ModelRequestRetry
	got, err := c.Stream(t.Context(), hello(), agent.Listener{Retry: func(_ context.Context, e core.ModelRequestRetry) error {
		seen = append(seen, e)
		return nil
	}})
	if err != nil || got.Text != "fine now" {
		t.Fatalf("%v, %v", got, err)
	}
	if len(seen) != 1 || seen[0].Attempt != 1 || seen[0].Reason == "" {
		t.Errorf("retries %+v", seen)
	}
}

func TestStream_CancelReturnsItsCause(t *testing.T) {
	t.Parallel()
	_, c := scripted(t, modeltest.Reply{Text: "a b c d e f", Delay: time.Hour})
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := c.Stream(ctx, hello(), agent.Listener{Text: func(string) { cancel(core.ErrCancelledByUser) }})
	if !errors.Is(err, core.ErrCancelledByUser) {
		t.Errorf("got %v", err)
	}
}

// raw serves lines as an event stream, as they are.
func raw(t *testing.T, text string) *openai.Client {
	t.Helper()
	return rawWith(t, text, openai.Options{})
}

func rawWith(t *testing.T, text string, o openai.Options) *openai.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return patient(t, server.URL, o)
}

func TestStream_ReadsWhatProvidersReallySend(t *testing.T) {
	t.Parallel()
	call := func(args string) []agent.ToolCall { return []agent.ToolCall{{ID: "a", Name: "ls", Arguments: args}} }
	many := strings.Repeat(": OPENROUTER PROCESSING\n\n", 500)
	tests := map[string]struct {
		stream string
		text   string
		calls  []agent.ToolCall
		finish agent.FinishReason
		code   string
	}{
		"last line without newline": {stream: "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}", text: "hi", finish: agent.FinishStop},
		"no space after data":       {stream: "data:{\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n", text: "hi", finish: agent.FinishStop},
		"a byte order mark":         {stream: "\ufeffdata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", text: "hi", finish: agent.FinishStop},
		"CRLF and events":           {stream: "event: message\r\nid: 1\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n", text: "hi", finish: agent.FinishStop},
		"many comments":             {stream: many + "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n", text: "hi", finish: agent.FinishStop},
		"content as parts":          {stream: "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]},\"finish_reason\":\"stop\"}]}\n\n", text: "hi", finish: agent.FinishStop},
		"arguments as object":       {stream: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"ls\",\"arguments\":{\"path\":\"x\"}}}]},\"finish_reason\":\"tool_calls\"}]}\n\n", calls: call(`{"path":"x"}`), finish: agent.FinishToolCalls},
		"stop with calls":           {stream: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"ls\",\"arguments\":\"\"}}]},\"finish_reason\":\"stop\"}]}\n\n", calls: call(""), finish: agent.FinishToolCalls},
		"calls without index": {
			stream: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"ls\",\"arguments\":\"{\"}}]}}]}\n\n" +
				"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"}\"}}]}}]}\n\n" +
				"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
			calls: []agent.ToolCall{{ID: "a", Name: "ls", Arguments: "{}"}, {ID: "b", Name: "ls", Arguments: "{}"}}, finish: agent.FinishToolCalls,
		},
		"an id for each piece": {
			stream: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"ls\",\"arguments\":\"{\\\"path\\\"\"}},{\"index\":0,\"id\":\"b\",\"function\":{\"arguments\":\":\\\"x\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
			calls:  call(`{"path":"x"}`), finish: agent.FinishToolCalls,
		},
		"one index for two calls": {
			stream: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}},{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
			calls:  []agent.ToolCall{{ID: "a", Name: "ls", Arguments: "{}"}, {ID: "b", Name: "ls", Arguments: "{}"}}, finish: agent.FinishToolCalls,
		},
		"ids missing and doubled": {
			stream: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"ls\"}},{\"index\":1,\"id\":\"a\",\"function\":{\"name\":\"ls\"}},{\"index\":2,\"id\":\"a\",\"function\":{\"name\":\"ls\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
			calls:  []agent.ToolCall{{ID: "call_0", Name: "ls"}, {ID: "a", Name: "ls"}, {ID: "a_2", Name: "ls"}}, finish: agent.FinishToolCalls,
		},
		"length":                  {stream: "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"length\"}]}\n\n", text: "hi", finish: agent.FinishLength},
		"content filter":          {stream: "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n", finish: agent.FinishContentFilter},
		"refusal":                 {stream: "data: {\"choices\":[{\"delta\":{\"refusal\":\"no\"},\"finish_reason\":\"stop\"}]}\n\n", finish: agent.FinishContentFilter},
		"error first":             {stream: "data: {\"error\":{\"code\":429,\"message\":\"canary\"}}\n\n", code: core.CodeModelRateLimited},
		"error after comment":     {stream: ": x\n\ndata: {\"error\":{\"message\":\"canary\"}}\n\n", code: core.CodeModelStreamError},
		"error as text":           {stream: "data: {\"error\":\"canary\"}\n\n", code: core.CodeModelStreamError},
		"error of another server": {stream: "data: {\"object\":\"error\",\"message\":\"canary\",\"code\":400}\n\n", code: core.CodeModelStreamError},
		"overflow in the stream":  {stream: "data: {\"error\":{\"message\":\"maximum context length is 8192\"}}\n\n", code: core.CodeContextOverflow},
		"finish error":            {stream: "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n", code: core.CodeModelStreamError},
		"error in a choice":       {stream: "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"error\":{\"code\":429,\"message\":\"canary\"},\"finish_reason\":\"error\"}]}\n\n", code: core.CodeModelRateLimited},
		"error after text": {
			stream: "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\ndata: {\"error\":{\"message\":\"canary\",\"code\":502}}\n\ndata: [DONE]\n\n",
			code:   core.CodeModelStreamError,
		},
		"error after the reason for finishing": {
			stream: "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"error\":{\"message\":\"canary\",\"code\":502}}\n\n",
			code:   core.CodeModelStreamError,
		},
		"no error, said so": {stream: "data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"hi\"},\"error\":null,\"finish_reason\":\"stop\"}]}\n\n", text: "hi", finish: agent.FinishStop},
		"no JSON after the reason for finishing": {
			stream: "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"usage\n\n",
			code:   core.CodeModelStreamError,
		},
		"a second choice":      {stream: "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}},{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n", text: "hi", finish: agent.FinishStop},
		"another reason":       {stream: "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"eos\"}]}\n\n", text: "hi", finish: agent.FinishStop},
		"nothing but blanks":   {stream: "\n\n\n  \n", code: core.CodeModelStreamError},
		"nothing":              {stream: "", code: core.CodeModelStreamError},
		"done at once":         {stream: "data: [DONE]\n\n", code: core.CodeModelStreamError},
		"calls without finish": {stream: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n", code: core.CodeModelStreamError},
		"line too long":        {stream: "data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("x", 5<<20) + "\"}}]}\n\n", code: core.CodeModelStreamError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := raw(t, test.stream).Stream(t.Context(), hello(), agent.Listener{})
			if test.code != "" {
				if core.CodeOf(err) != test.code || strings.Contains(err.Error(), "canary") {
					t.Fatalf("got %v, want code %s", err, test.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != test.text || got.Finish != test.finish {
				t.Errorf("text %q, finish %q", got.Text, got.Finish)
			}
			if diff := cmp.Diff(test.calls, got.Calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStream_TakesNothingButAnEventStream(t *testing.T) {
	t.Parallel()
	tests := []struct{ kind, body, code string }{
		{"text/plain", "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n", core.CodeModelStreamError},
		{"application/json", `{"choices":[{"message":{"content":"hi"}}]}`, core.CodeModelStreamError}, // no reason for finishing
		{"application/json", `{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`, core.CodeModelStreamError},
		{"application/json", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}`, core.CodeModelStreamError},
		{"application/json", `{"id":"x","error":{"message":"canary"},"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`, core.CodeModelStreamError},
		{"", `<html>canary</html>`, core.CodeModelStreamError},
		{"application/json", `{"error":{"code":429,"message":"canary"}}`, core.CodeModelRateLimited},
		{"application/json", `{"error":{"code":401,"message":"canary"}}`, core.CodeModelUnauthorized},
	}
	for _, test := range tests {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.kind)
			_, _ = io.WriteString(w, test.body)
		}))
		t.Cleanup(server.Close)
		if _, err := patient(t, server.URL, openai.Options{}).Stream(t.Context(), hello(), agent.Listener{}); core.CodeOf(err) != test.code {
			t.Errorf("%s %s gives %v, want %s", test.kind, test.body, err, test.code)
		}
	}
}
