package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/core"
)

// What a provider says with a failure decides the code, and is then gone: no part of an error holds it.
func TestFailure_BodiesAreMatchedAndForgotten(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status     int
		body, code string
	}{
		{400, `{"error":{"message":"canary: context_length_exceeded","code":400}}`, core.CodeContextOverflow},
		{400, `{"error":{"message":"canary","code":"context_length_exceeded"}}`, core.CodeContextOverflow},
		{400, `{"error":"canary: This model's maximum context length is 8192 tokens"}`, core.CodeContextOverflow},
		{400, `{"error":{"message":"canary","metadata":{"raw":"prompt is too long: 210000 tokens > 200000 maximum"}}}`, core.CodeContextOverflow},
		{413, `canary`, core.CodeContextOverflow},
		{400, `{"error":{"message":"canary: unknown parameter"}}`, core.CodeModelRejected},
		{400, `{"error":"canary"}`, core.CodeModelRejected},
		{404, `<html>canary</html>`, core.CodeModelRejected},
		{422, ``, core.CodeModelRejected},
		{301, `canary`, core.CodeModelRejected},
		{401, `{"error":{"message":"canary: Incorrect API key sk-test-key-0123456789"}}`, core.CodeModelUnauthorized},
		{402, `{"error":{"message":"canary"}}`, core.CodeModelUnauthorized},
		{429, `<html>canary</html>`, core.CodeModelRateLimited},
		{500, `<html>canary</html>`, core.CodeModelUnavailable},
		{502, strings.Repeat("canary ", 100_000), core.CodeModelUnavailable},
		{504, ``, core.CodeModelTimeout},
		{204, ``, core.CodeModelRejected},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%d %.30s", test.status, test.body), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			t.Cleanup(server.Close)
			_, err := patient(t, server.URL, openai.Options{Retries: new(0)}).Stream(t.Context(), hello(), agent.Listener{})
			if core.CodeOf(err) != test.code {
				t.Errorf("got %v, want %s", err, test.code)
			}
			for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err), core.MessageOf(err)} {
				if strings.Contains(text, "canary") || strings.Contains(text, "sk-test") {
					t.Errorf("the provider's words in %s", text)
				}
			}
		})
	}
}

// The library judges models by their names; the provider is the one to do that.
func TestBody_EveryModelNameIsSent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gpt-5-mini", "o1", "o3-mini", "gpt-6", "text-davinci-003", "davinci", "openai/gpt-5", ""} {
		got := sent(t, openai.Options{Model: name, MaxOutput: 100, Effort: "high"}, hello())
		if name != "" && got.Model != name {
			t.Errorf("%q was sent as %q", name, got.Model)
		}
		newer := strings.HasPrefix(name, "gpt-") || strings.HasPrefix(name, "o1") || strings.HasPrefix(name, "o3")
		if (got.Body["max_completion_tokens"] != nil) != newer || (got.Body["max_tokens"] != nil) == newer {
			t.Errorf("%q: %s, %s", name, got.Body["max_tokens"], got.Body["max_completion_tokens"])
		}
	}
}
