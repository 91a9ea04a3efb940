package config

import (
	"errors"
	"fmt"
	"math"

	"agent-sandboxing/core"
)

// Limits bound the work and the money. Each field is named as its variable; 0 dollars is no cap.
type Limits struct {
	AgentMaxSteps        int     `env:"AGENT_MAX_STEPS" envDefault:"60"`
	AgentMaxStepsCeiling int     `env:"AGENT_MAX_STEPS_CEILING" envDefault:"240"` // when a person asks for more
	AgentMaxMinutes      int     `env:"AGENT_MAX_MINUTES" envDefault:"30"`
	AgentMaxCostUSD      float64 `env:"AGENT_MAX_COST_USD"` // of one message
	SessionMaxCostUSD    float64 `env:"SESSION_MAX_COST_USD"`
	UserMonthMaxCostUSD  float64 `env:"USER_MONTH_MAX_COST_USD"`
}

// mostSteps is the highest ceiling that can be set.
const mostSteps = 1000

// Money says that some amount is capped, so that every cost has to be known.
func (l Limits) Money() bool {
	return l.AgentMaxCostUSD != 0 || l.SessionMaxCostUSD != 0 || l.UserMonthMaxCostUSD != 0
}

// Budgets are the caps that more than one message shares.
func (l Limits) Budgets() core.Budgets {
	return core.Budgets{SessionUSD: l.SessionMaxCostUSD, MonthUSD: l.UserMonthMaxCostUSD}
}

// checkWork concerns web too, which offers more steps up to the ceiling.
func (l Limits) checkWork() []error {
	var p []error
	if l.AgentMaxSteps < 1 || l.AgentMaxStepsCeiling < l.AgentMaxSteps || l.AgentMaxStepsCeiling > mostSteps {
		p = append(p, fmt.Errorf("AGENT_MAX_STEPS must be at least 1, and AGENT_MAX_STEPS_CEILING between it and %d", mostSteps))
	}
	if l.AgentMaxMinutes < 1 || l.AgentMaxMinutes > core.MaxTurnMinutes {
		p = append(p, fmt.Errorf("AGENT_MAX_MINUTES must be between 1 and %d", core.MaxTurnMinutes))
	}
	return p
}

// checkMoney refuses what would leave a cap without effect.
func (c *Config) checkMoney() []error {
	var p []error
	l, m := c.Limits, c.Model
	for _, limit := range []struct {
		name string
		usd  float64
	}{
		{"AGENT_MAX_COST_USD", l.AgentMaxCostUSD}, {"SESSION_MAX_COST_USD", l.SessionMaxCostUSD}, {"USER_MONTH_MAX_COST_USD", l.UserMonthMaxCostUSD},
	} {
		if !amount(limit.usd) {
			p = append(p, fmt.Errorf("%s must be an amount of dollars, 0 for no cap", limit.name))
		}
	}
	for _, price := range []struct {
		name string
		usd  *float64
	}{
		{"MODEL_PRICE_INPUT", m.ModelPriceInput}, {"MODEL_PRICE_OUTPUT", m.ModelPriceOutput}, {"MODEL_PRICE_CACHED", m.ModelPriceCached},
	} {
		if price.usd != nil && !amount(*price.usd) {
			p = append(p, fmt.Errorf("%s must be an amount of dollars for a million tokens", price.name))
		}
	}
	if (m.ModelPriceInput == nil) != (m.ModelPriceOutput == nil) || m.ModelPriceCached != nil && m.ModelPriceInput == nil {
		p = append(p, errors.New("MODEL_PRICE_INPUT and MODEL_PRICE_OUTPUT go together, and MODEL_PRICE_CACHED only with them"))
	}
	if l.Money() && m.ModelPriceInput == nil && !m.ReportsCost() {
		p = append(p, errors.New("AGENT_MAX_COST_USD, SESSION_MAX_COST_USD and USER_MONTH_MAX_COST_USD need known prices, and only the dialect openrouter tells them: "+
			"set MODEL_PRICE_INPUT and MODEL_PRICE_OUTPUT, in dollars for a million tokens (0 when they are free)"))
	}
	if l.Money() && m.AgentSummaryModel != "" && !m.ReportsCost() {
		p = append(p, errors.New("AGENT_SUMMARY_MODEL goes with a cap on money only where the endpoint tells each cost (the dialect openrouter): MODEL_PRICE_… are those of AGENT_MODEL"))
	}
	return p
}

// amount is false for NaN and infinity, which no cost would ever reach.
func amount(usd float64) bool { return usd >= 0 && !math.IsInf(usd, 0) }
