package openai_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

const said = `data: {"id":"gen-1","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\n"

func TestUsage_IsWhatTheProviderSaid(t *testing.T) {
	t.Parallel()
	price := func(f float64) *float64 { return &f }
	tests := map[string]struct {
		usage string
		known bool
		want  core.Usage
	}{
		"a number":               {`{"prompt_tokens":9,"completion_tokens":1,"cost":0.25}`, true, core.Usage{PromptTokens: 9, CompletionTokens: 1, CostUSD: price(0.25)}},
		"a number as text":       {`{"prompt_tokens":9,"cost":"0.25"}`, true, core.Usage{PromptTokens: 9, CostUSD: price(0.25)}},
		"an object":              {`{"prompt_tokens":9,"cost":{"total":0.25,"input":0.2}}`, true, core.Usage{PromptTokens: 9, CostUSD: price(0.25)}},
		"another object":         {`{"prompt_tokens":9,"cost":{"total":null,"total_cost":"0.25"}}`, true, core.Usage{PromptTokens: 9, CostUSD: price(0.25)}},
		"free":                   {`{"prompt_tokens":9,"cost":0}`, true, core.Usage{PromptTokens: 9, CostUSD: price(0)}},
		"no price":               {`{"prompt_tokens":9}`, true, core.Usage{PromptTokens: 9}},
		"a price that is null":   {`{"prompt_tokens":9,"cost":null}`, true, core.Usage{PromptTokens: 9}},
		"a price below nothing":  {`{"prompt_tokens":9,"cost":-1}`, true, core.Usage{PromptTokens: 9}},
		"a price beyond reason":  {`{"prompt_tokens":9,"cost":1e308}`, true, core.Usage{PromptTokens: 9}},
		"a price nobody reads":   {`{"prompt_tokens":9,"cost":["x"]}`, true, core.Usage{PromptTokens: 9}},
		"a price in words":       {`{"prompt_tokens":9,"cost":"cheap"}`, true, core.Usage{PromptTokens: 9}},
		"cached inside":          {`{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}`, true, core.Usage{PromptTokens: 9, CachedTokens: 4}},
		"cached by another name": {`{"prompt_tokens":9,"prompt_cache_hit_tokens":4}`, true, core.Usage{PromptTokens: 9, CachedTokens: 4}},
		"cached beside":          {`{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":400}}`, true, core.Usage{PromptTokens: 9, CachedTokens: 9}},
		"odd counts":             {`{"prompt_tokens":9.0,"completion_tokens":-3,"prompt_tokens_details":null,"prompt_cache_hit_tokens":"x"}`, true, core.Usage{PromptTokens: 9}},
		"nothing counted":        {`{"prompt_tokens":0,"completion_tokens":0}`, false, core.Usage{}},
		"no record":              {`null`, false, core.Usage{}},
		"no object":              {`"none"`, false, core.Usage{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := raw(t, said+`data: {"choices":[],"usage":`+test.usage+"}\n\ndata: [DONE]\n\n").Stream(t.Context(), hello(), agent.Listener{})
			if err != nil {
				t.Fatal(err)
			}
			if got.UsageKnown != test.known {
				t.Errorf("usage known %v", got.UsageKnown)
			}
			if diff := cmp.Diff(test.want, got.Usage); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUsage_LastRecordCounts(t *testing.T) {
	t.Parallel()
	got, err := raw(t, `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`+"\n\n"+said+
		`data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}`+"\n\n"+
		`data: {"choices":[],"usage":null}`+"\n\n").Stream(t.Context(), hello(), agent.Listener{})
	if err != nil || got.Usage.CompletionTokens != 7 {
		t.Errorf("%+v, %v", got.Usage, err)
	}
}

// A stream that ends before the record has an answer, and no usage.
func TestUsage_IsUnknownWhenTheRecordNeverCame(t *testing.T) {
	t.Parallel()
	got, err := raw(t, said).Stream(t.Context(), hello(), agent.Listener{})
	if err != nil || got.UsageKnown || got.Usage.CostUSD != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
