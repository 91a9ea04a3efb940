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

// spend counts what a response cost and has it recorded. It fails when that cost had to be known and
// is not; the response is then not acted upon.
func (r *run) spend(ctx context.Context, resp Response) error {
	u := priced(resp, r.prices)
	if u.CostUSD != nil {
		r.dearest = max(r.dearest, *u.CostUSD)
	}
	r.charge(u, r.rec.Spent(ctx, u))
	if u.CostSource == core.CostUnknown && r.limits.CostKnown {
		return core.Fail(core.Unavailable, core.CodeCostUnknown,
			"The model's provider did not say what a request cost, and this installation caps the cost. The changes so far are kept. Ask the operator to check the model's prices.")
	}
	return nil
}

// lost notes a request that ended without an answer but may be charged for. Its cost stays unknown, but
// it counts: caps would not hold against requests that are cancelled again and again. heard is what came
// of the answer, in bytes.
func (r *run) lost(ctx context.Context, err error, heard int) {
	u := spentOn(ctx, Response{}, err, nil)
	if u == (core.Usage{}) {
		return
	}
	cost := r.dearest
	if r.prices != nil {
		cost = r.prices.cost(core.Usage{PromptTokens: int64(r.meter.size(r.messages)), CompletionTokens: int64(proseTokens(heard))})
	}
	if cost > 0 {
		u.CostUSD = &cost
	}
	r.charge(u, r.rec.Spent(ctx, u))
}

// spentOn is what a request used. One that ended without an answer may be charged for all the same,
// unless it was refused or never arrived.
func spentOn(ctx context.Context, resp Response, err error, prices *Prices) core.Usage {
	code := core.CodeOf(err)
	switch {
	case err == nil:
		return priced(resp, prices)
	case ctx.Err() != nil, code == core.CodeModelStreamError, code == core.CodeModelTimeout:
		return core.Usage{CostSource: core.CostUnknown}
	}
	return core.Usage{}
}

// charge counts a usage where it was used and, of a subagent, where it is paid for.
func (r *run) charge(u core.Usage, spent error) {
	for ; r != nil; r = r.parent {
		r.result.Usage, r.spent = r.result.Usage.Add(u), spent
	}
}

// mayAsk says whether the money allows another request.
func (r *run) mayAsk() error {
	if r.spent != nil {
		return r.spent
	}
	if r.parent != nil {
		return r.parent.mayAsk()
	}
	if cost := r.result.Usage.CostUSD; r.limits.CostUSD > 0 && cost != nil && *cost >= r.limits.CostUSD {
		return limitReached("it cost " + core.Dollars(*cost) + " of the " + core.Dollars(r.limits.CostUSD) + " that one message may")
	}
	return nil
}
