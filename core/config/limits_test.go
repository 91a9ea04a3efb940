package config

import (
	"maps"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

func TestLimits_Defaults(t *testing.T) {
	t.Parallel()
	c, err := Parse(Serve, valid())
	if err != nil {
		t.Fatal(err)
	}
	if want := (Limits{AgentMaxSteps: 60, AgentMaxStepsCeiling: 240, AgentMaxMinutes: 30}); c.Limits != want || c.Limits.Money() || c.Limits.Budgets() != (core.Budgets{}) {
		t.Errorf("limits %+v, want %+v and no caps of money", c.Limits, want)
	}
}

// Each line is a set-up in which a cap would hold nothing; a cap that cannot hold is no start.
func TestLimits_ACapWithoutKnownPricesIsAStartUpError(t *testing.T) {
	t.Parallel()
	local := map[string]string{"MODEL_BASE_URL": "http://127.0.0.1:11434/v1"}
	for name, test := range map[string]struct {
		vars map[string]string
		want string // in the error, "" for none
	}{
		"no cap, no prices":             {map[string]string{}, ""},
		"message cap":                   {map[string]string{"AGENT_MAX_COST_USD": "2"}, "MODEL_PRICE_INPUT"},
		"session cap":                   {map[string]string{"SESSION_MAX_COST_USD": "2"}, "MODEL_PRICE_INPUT"},
		"month cap":                     {map[string]string{"USER_MONTH_MAX_COST_USD": "2"}, "MODEL_PRICE_INPUT"},
		"cap and prices":                {map[string]string{"AGENT_MAX_COST_USD": "2", "MODEL_PRICE_INPUT": "3", "MODEL_PRICE_OUTPUT": "15"}, ""},
		"cap and prices of zero":        {map[string]string{"AGENT_MAX_COST_USD": "2", "MODEL_PRICE_INPUT": "0", "MODEL_PRICE_OUTPUT": "0"}, ""},
		"cap on OpenRouter":             {map[string]string{"AGENT_MAX_COST_USD": "2", "MODEL_BASE_URL": "https://openrouter.ai/api/v1"}, ""},
		"a host that only looks so":     {map[string]string{"AGENT_MAX_COST_USD": "2", "MODEL_BASE_URL": "https://openrouter.ai.example.org/v1"}, "MODEL_PRICE_INPUT"},
		"the dialect tells costs":       {map[string]string{"AGENT_MAX_COST_USD": "2", "MODEL_DIALECT": "openrouter"}, ""},
		"another dialect there":         {map[string]string{"AGENT_MAX_COST_USD": "2", "MODEL_DIALECT": "openai", "MODEL_BASE_URL": "https://openrouter.ai/api/v1"}, "MODEL_PRICE_INPUT"},
		"cap and another summarizer":    {map[string]string{"AGENT_MAX_COST_USD": "2", "MODEL_PRICE_INPUT": "3", "MODEL_PRICE_OUTPUT": "15", "AGENT_SUMMARY_MODEL": "small"}, "AGENT_SUMMARY_MODEL"},
		"the same where costs are told": {map[string]string{"AGENT_MAX_COST_USD": "2", "MODEL_DIALECT": "openrouter", "AGENT_SUMMARY_MODEL": "small"}, ""},
		"half of the prices":            {map[string]string{"MODEL_PRICE_INPUT": "3"}, "go together"},
		"cached price alone":            {map[string]string{"MODEL_PRICE_CACHED": "3"}, "go together"},
		"no number as a cap":            {map[string]string{"AGENT_MAX_COST_USD": "NaN"}, "AGENT_MAX_COST_USD must"},
		"infinity as a cap":             {map[string]string{"SESSION_MAX_COST_USD": "Inf"}, "SESSION_MAX_COST_USD must"},
		"below zero":                    {map[string]string{"USER_MONTH_MAX_COST_USD": "-1"}, "USER_MONTH_MAX_COST_USD must"},
		"no number as a price":          {map[string]string{"MODEL_PRICE_INPUT": "NaN", "MODEL_PRICE_OUTPUT": "1"}, "MODEL_PRICE_INPUT must"},
		"text as a price":               {map[string]string{"MODEL_PRICE_INPUT": "three", "MODEL_PRICE_OUTPUT": "1"}, "MODEL_PRICE_INPUT is not"},
		"text as a cap":                 {map[string]string{"AGENT_MAX_COST_USD": "two"}, "AGENT_MAX_COST_USD is not"},
		"no steps":                      {map[string]string{"AGENT_MAX_STEPS": "0"}, "AGENT_MAX_STEPS"},
		"steps above the ceiling":       {map[string]string{"AGENT_MAX_STEPS": "300"}, "AGENT_MAX_STEPS_CEILING"},
		"no minutes":                    {map[string]string{"AGENT_MAX_MINUTES": "0"}, "AGENT_MAX_MINUTES"},
		"days":                          {map[string]string{"AGENT_MAX_MINUTES": "2000"}, "AGENT_MAX_MINUTES"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vars := valid()
			maps.Copy(vars, local)
			maps.Copy(vars, test.vars)
			_, err := Parse(Serve, vars)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestLimits_WebNeedsNoPrices(t *testing.T) {
	t.Parallel()
	vars := valid()
	maps.Copy(vars, map[string]string{
		"DATABASE_URL": "postgres://x", "ENCRYPTION_KEYS": "a:AAAA", "AGENT_MAX_COST_USD": "2", "MODEL_BASE_URL": "http://127.0.0.1:1/v1",
	})
	if _, err := Parse(Web, vars); err != nil {
		t.Errorf("web, which asks no model: %v", err)
	}
	vars["AGENT_MAX_STEPS_CEILING"] = "1"
	if _, err := Parse(Web, vars); err == nil || !strings.Contains(err.Error(), "AGENT_MAX_STEPS_CEILING") {
		t.Errorf("web, which offers the ceiling: %v", err)
	}
}
