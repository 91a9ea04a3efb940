package openai

import (
	"encoding/json"

	"agent-sandboxing/core"
)

// usage is what a provider counted.
type usage struct {
	PromptTokens     count           `json:"prompt_tokens"`
	CompletionTokens count           `json:"completion_tokens"`
	Cost             json.RawMessage `json:"cost"`
	Details          struct {
		Cached count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHits count `json:"prompt_cache_hit_tokens"` // another name for the same
}

// count is a number of tokens, as a number of any kind. Anything else is 0.
type count int64

const maxCount = 1e12

// UnmarshalJSON never fails: a strange count shall not cost an answer.
func (c *count) UnmarshalJSON(raw []byte) error {
	var n float64
	if json.Unmarshal(raw, &n) == nil && n > 0 && n < maxCount {
		*c = count(n)
	}
	return nil
}

// readUsage is nil when there is none, or one that counts nothing.
func readUsage(raw json.RawMessage) *usage {
	var u usage
	if !isSet(raw) || json.Unmarshal(raw, &u) != nil || u.PromptTokens == 0 && u.CompletionTokens == 0 {
		return nil
	}
	return &u
}

// record is usage as it is kept. Cached tokens are some of the prompt's, never more.
func (u *usage) record() core.Usage {
	return core.Usage{
		PromptTokens:     int64(u.PromptTokens),
		CompletionTokens: int64(u.CompletionTokens),
		CachedTokens:     int64(min(max(u.Details.Cached, u.CacheHits), u.PromptTokens)),
		CostUSD:          cost(u.Cost),
	}
}

// maxCost is what no request costs, in dollars. Sums of more than it would overflow.
const maxCost = 1e6

// cost reads a price in dollars: a number, a number as text, or an object with a total. What it
// cannot read is unknown, which is nil and not zero.
func cost(raw json.RawMessage) *float64 {
	if !isSet(raw) {
		return nil
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		n, err := number.Float64()
		if err != nil || n < 0 || n > maxCost {
			return nil
		}
		return &n
	}
	var object struct {
		Total     json.RawMessage `json:"total"`
		TotalCost json.RawMessage `json:"total_cost"`
	}
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	if isSet(object.Total) {
		return cost(object.Total)
	}
	return cost(object.TotalCost)
}
