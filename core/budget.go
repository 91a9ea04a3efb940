package core

import (
	"fmt"
	"strconv"
	"time"
)

// MaxTurnMinutes is the longest that any message may be worked on.
const MaxTurnMinutes = 240

// TurnLimits bound one message. A zero field takes the agent's own limit.
type TurnLimits struct {
	Steps   int `json:"steps,omitempty"` // model requests
	Minutes int `json:"minutes,omitempty"`
}

// Raised doubles both limits, up to ceiling steps and MaxTurnMinutes. more is false when neither
// can rise.
func (l TurnLimits) Raised(ceiling int) (raised TurnLimits, more bool) {
	raised = TurnLimits{
		Steps:   max(l.Steps, min(2*l.Steps, ceiling)),
		Minutes: max(l.Minutes, min(2*l.Minutes, MaxTurnMinutes)),
	}
	return raised, raised != l
}

// CostSource says where a cost comes from. A sum is as good as its worst part.
type CostSource string

const (
	CostByProvider CostSource = "provider" // the provider said it
	CostByPrice    CostSource = "price"    // reckoned from tokens and configured prices
	CostUnknown    CostSource = "unknown"  // of a part at least, which is estimated or, where no money is capped, left out
)

// Add is the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	u.PromptTokens += v.PromptTokens
	u.CachedTokens += v.CachedTokens
	u.CompletionTokens += v.CompletionTokens
	if v.CostUSD != nil {
		sum := *v.CostUSD
		if u.CostUSD != nil {
			sum += *u.CostUSD
		}
		u.CostUSD = &sum
	}
	u.CostSource = u.CostSource.worse(v.CostSource)
	return u
}

func (c CostSource) worse(d CostSource) CostSource {
	for _, s := range []CostSource{CostUnknown, CostByPrice} {
		if c == s || d == s {
			return s
		}
	}
	if c == "" {
		return d
	}
	return c
}

// Budgets cap the money of all messages of one session, and of all that one person's sessions start
// in one calendar month (UTC). In dollars; 0 is no cap.
type Budgets struct {
	SessionUSD float64
	MonthUSD   float64
}

// Spending is what is known to have been spent, in dollars, by a session and by its owner this month.
type Spending struct {
	SessionUSD float64
	MonthUSD   float64
	MonthEnds  time.Time
}

// Codes of a message that ends because a budget is used up.
const (
	CodeSessionBudget = "session_budget_reached"
	CodeMonthBudget   = "month_budget_reached"
)

// Check fails with Conflict session_budget_reached or month_budget_reached when a cap is reached.
func (b Budgets) Check(s Spending) error {
	switch {
	case b.SessionUSD > 0 && s.SessionUSD >= b.SessionUSD:
		return Fail(Conflict, CodeSessionBudget, fmt.Sprintf(
			"This session has used %s of the %s that one session may cost. Start a new session, or ask the operator to raise the limit.",
			Dollars(s.SessionUSD), Dollars(b.SessionUSD)))
	case b.MonthUSD > 0 && s.MonthUSD >= b.MonthUSD:
		return Fail(Conflict, CodeMonthBudget, fmt.Sprintf(
			"The sessions of this person have used %s of the %s that one person may spend in a month. It starts again at %s UTC; the operator can raise the limit.",
			Dollars(s.MonthUSD), Dollars(b.MonthUSD), s.MonthEnds.UTC().Format("2006-01-02 15:04")))
	}
	return nil
}

// Dollars is an amount for people: $0.00, $0.0042, $1.20.
func Dollars(usd float64) string {
	digits := 2
	if usd > 0 && usd < 0.01 {
		digits = 4
	}
	return "$" + strconv.FormatFloat(usd, 'f', digits, 64)
}
