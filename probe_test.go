package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/core/config"
)

func TestModelProbe_PrintsWhatItFindsAndFailsOnWhatIsBroken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(modeltest.NewServer(modeltest.Sequence(), 0)) // it only ever talks
	t.Cleanup(server.Close)
	cfg, err := config.Parse(config.Probe, map[string]string{
		"HOME": t.TempDir(), "OPENROUTER_API_KEY": "canary-key", "MODEL_BASE_URL": server.URL + "/v1", "AGENT_MODEL": "scripted",
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = probeModel(t.Context(), &out, modelOptions(cfg.Model), 1000)
	if err == nil || !strings.Contains(err.Error(), "cannot work with this model: tool call") {
		t.Errorf("got %v", err)
	}
	text := out.String()
	for _, want := range []string{"fine      answers        as scripted\n", "fine      streams", "broken    tool call      Asked to call a tool, the model answers with text", "untested  tool result"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "canary") {
		t.Errorf("the key is in\n%s", text)
	}
}
