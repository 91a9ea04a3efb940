package agent

import (
	"context"

	"agent-sandboxing/core"
)

// Prices are what a model costs, in dollars per million tokens.
type Prices struct {
	Input  float64
	Output float64
	Cached float64 // of prompt tokens that the provider had cached
}

// cost reckons the price of a usage. Cached tokens are inside the prompt's.
func (p Prices) cost(u core.Usage) float64 {
	cached := min(max(u.CachedTokens, 0), u.PromptTokens)
	return (float64(u.PromptTokens-cached)*p.Input + float64(cached)*p.Cached + float64(u.CompletionTokens)*p.Output) / 1e6
}

// priced is the usage of a response with its cost and where that comes from: the operator's prices on
// the tokens that were counted, else the provider's word. What neither says is unknown, never free.
func priced(resp Response, prices *Prices) core.Usage {
	u := resp.Usage
	switch {
	case prices != nil && resp.UsageKnown && u.PromptTokens > 0 && u.CompletionTokens >= 0:
		cost := prices.cost(u)
		u.CostUSD, u.CostSource = &cost, core.CostByPrice
	case u.CostUSD != nil && *u.CostUSD >= 0:
		u.CostSource = core.CostByProvider
	default:
		u.CostUSD, u.CostSource = nil, core.CostUnknown
	}
	return u
}

// assumed are the prices of a request on which nobody has put one: as dear as models are. A cap has to hold
// against requests that are cancelled before it is told what such a request costs.
func assumed() *Prices { return &Prices{Input: 15, Output: 75, Cached: 15} }

// used is what one request counts as. One that broke off, or whose cost nobody tells, may be charged for all
// the same: guess says for how much, nil when that is nobody's concern. One that was refused or never arrived
// counts nothing.
func used(ctx context.Context, resp Response, err error, prices *Prices, guess func(core.Usage) *float64) core.Usage {
	u := core.Usage{CostSource: core.CostUnknown}
	if code := core.CodeOf(err); err == nil {
		u = priced(resp, prices)
	} else if ctx.Err() == nil && code != core.CodeModelStreamError && code != core.CodeModelTimeout {
		return core.Usage{}
	}
	if u.CostSource == core.CostUnknown {
		u.CostUSD = guess(u)
	}
	return u
}

// count adds up what a request used and has it recorded; heard is what came of its answer, in bytes. It
// fails when the cost had to be known and is not; the response is then not acted upon.
func (r *run) count(ctx context.Context, resp Response, err error, heard int) error {
	u := used(ctx, resp, err, r.prices, func(u core.Usage) *float64 { return r.guess(u, heard) })
	if u == (core.Usage{}) {
		return nil
	}
	r.charge(u, r.rec.Spent(ctx, u))
	if err == nil && u.CostSource == core.CostUnknown && r.limits.CostKnown {
		return core.Fail(core.Unavailable, core.CodeCostUnknown,
			"The model's provider did not say what a request cost, and this installation caps the cost. The changes so far are kept. Ask the operator to check the model's prices.")
	}
	return nil
}

// guess is what a request counts as whose cost nobody tells: by the operator's prices, else as much as the
// dearest of the turn, else, under a cap, by assumed prices.
func (r *run) guess(u core.Usage, heard int) *float64 {
	prices := r.prices
	if prices == nil {
		if dearest := r.payer().dearest; dearest != nil || !r.limits.CostKnown {
			return dearest
		}
		prices = assumed()
	}
	if u.PromptTokens == 0 {
		u.PromptTokens = int64(r.meter.size(r.messages))
	}
	u.CompletionTokens = max(u.CompletionTokens, int64(proseTokens(heard)))
	cost := prices.cost(u)
	return &cost
}

// payer is the run that pays: of a subagent the one that asked for it.
func (r *run) payer() *run {
	for r.parent != nil {
		r = r.parent
	}
	return r
}

// charge counts a usage where it was used and, of a subagent, where it is paid for.
func (r *run) charge(u core.Usage, spent error) {
	if p := r.payer(); u.CostSource != core.CostUnknown && u.CostUSD != nil && (p.dearest == nil || *u.CostUSD > *p.dearest) {
		p.dearest = u.CostUSD
	}
	for ; r != nil; r = r.parent {
		r.result.Usage, r.spent = r.result.Usage.Add(u), spent
	}
}

// mayAsk says whether the money allows another request.
func (r *run) mayAsk() error {
	r = r.payer()
	if r.spent != nil {
		return r.spent
	}
	if cost := r.result.Usage.CostUSD; r.limits.CostUSD > 0 && cost != nil && *cost >= r.limits.CostUSD {
		return limitReached("it cost " + core.Dollars(*cost) + " of the " + core.Dollars(r.limits.CostUSD) + " that one message may")
	}
	return nil
}
