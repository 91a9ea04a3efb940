package agent

import (
	"math"
	"testing"

	"agent-sandboxing/core"
)

func TestPriced_TrustsNothingThatCouldLowerASum(t *testing.T) {
	t.Parallel()
	usd := func(v float64) *float64 { return &v }
	prices := &Prices{Input: 2, Output: 10, Cached: 0.5}
	for name, test := range map[string]struct {
		usage  core.Usage
		known  bool
		prices *Prices
		source core.CostSource
		cost   float64
	}{
		"the provider's word":                  {core.Usage{PromptTokens: 10, CostUSD: usd(0.5)}, true, nil, core.CostByProvider, 0.5},
		"free, says the provider":              {core.Usage{PromptTokens: 10, CostUSD: usd(0)}, true, nil, core.CostByProvider, 0},
		"prices win":                           {core.Usage{PromptTokens: 1e6, CompletionTokens: 1e6, CostUSD: usd(0)}, true, prices, core.CostByPrice, 12},
		"cached tokens are inside":             {core.Usage{PromptTokens: 1e6, CachedTokens: 4e5}, true, prices, core.CostByPrice, 1.4},
		"more cached than sent":                {core.Usage{PromptTokens: 1e6, CachedTokens: 9e6}, true, prices, core.CostByPrice, 0.5},
		"cached below zero":                    {core.Usage{PromptTokens: 1e6, CachedTokens: -9e6}, true, prices, core.CostByPrice, 2},
		"no usage record":                      {core.Usage{}, false, prices, core.CostUnknown, 0},
		"no usage record, but a cost":          {core.Usage{CostUSD: usd(0.5)}, false, prices, core.CostByProvider, 0.5},
		"an empty usage record":                {core.Usage{}, true, prices, core.CostUnknown, 0},
		"tokens below zero":                    {core.Usage{PromptTokens: 10, CompletionTokens: -1e9}, true, prices, core.CostUnknown, 0},
		"a cost below zero":                    {core.Usage{PromptTokens: 10, CostUSD: usd(-4)}, true, nil, core.CostUnknown, 0},
		"neither prices nor a cost":            {core.Usage{PromptTokens: 10, CompletionTokens: 10}, true, nil, core.CostUnknown, 0},
		"a model that the operator calls free": {core.Usage{PromptTokens: 10}, true, &Prices{}, core.CostByPrice, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := priced(Response{Usage: test.usage, UsageKnown: test.known}, test.prices)
			if u.CostSource != test.source || (u.CostUSD == nil) != (test.source == core.CostUnknown) {
				t.Fatalf("%+v, want source %s", u, test.source)
			}
			if u.CostUSD != nil && math.Abs(*u.CostUSD-test.cost) > 1e-12 {
				t.Errorf("cost %v, want %v", *u.CostUSD, test.cost)
			}
		})
	}
}
