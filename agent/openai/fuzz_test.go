package openai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/core"
)

func FuzzStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n")
	f.Add(": x\n\ndata: {\"error\":{}}\n\ndata: [DONE]")
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1}]}}]}\n\n")
	var body atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, *body.Load())
	}))
	f.Cleanup(server.Close)
	c := openai.New(openai.Options{BaseURL: server.URL + "/v1", Key: "k", Model: "m"})
	f.Cleanup(c.Close)
	f.Fuzz(func(t *testing.T, stream string) {
		body.Store(&stream)
		got, err := c.Stream(t.Context(), hello(), agent.Listener{})
		if err == nil && got.Finish == "" {
			t.Errorf("%q is an answer without a reason for finishing", stream)
		}
		if err != nil && core.CodeOf(err) == "internal" {
			t.Errorf("%q gives an error without a code: %v", stream, err)
		}
	})
}
