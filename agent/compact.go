package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// compactionTime bounds the making of a summary, the model's retries included.
const compactionTime = time.Minute

// Caps of the document that a summary is made from, in bytes.
const (
	compactedRequest = 12 << 10
	compactedAnswer  = 16 << 10
)

// summarizer writes the summaries; without prices only the provider knows what they cost.
type summarizer struct {
	model  Model
	prices *Prices
}

// Compact makes the session's next summary of an ended turn. After a completed one the model writes
// it to a fixed outline and code checks it; after any other, when only a line is asked for, and whenever
// the model's text cannot be taken, the old summary is kept and one line is added to it. It never fails and takes at most 60 s;
// ctx ends it earlier.
func (a *Agent) Compact(ctx context.Context, req core.CompactionRequest, ws core.Workspace, rec core.TurnRecorder) core.Compaction {
	facts := platformFacts(req.Workspace)
	made := core.Compaction{Summary: a.withLine(req, facts)}
	if req.LineOnly || req.Finish.State != core.Completed || ctx.Err() != nil {
		return made
	}
	if err := a.affords(ctx, req, rec); err != nil {
		made.Code = core.CodeOf(err)
		return made
	}
	parent := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, compactionTime,
		core.Fail(core.Unavailable, core.CodeSummaryTimeout, "The model did not write the session's summary within a minute."))
	defer cancel()
	p := a.profiles[profileCompaction]
	document := a.document(req, len(p.system))
	resp, err := a.scribe.model.Stream(ctx, Request{Messages: []Message{
		{Role: System, Text: p.system},
		{Role: User, Text: document},
	}}, Listener{Retry: rec.ModelRetry})
	made.Usage = used(ctx, resp, err, a.scribe.prices, func(u core.Usage) *float64 { return a.guessSummary(u, len(document)) })
	// The answer is paid for; what this says keeps the next request back, not this summary.
	_ = rec.Spent(parent, made.Usage)
	if err == nil {
		err = refusedFinish(resp)
	}
	if parent.Err() != nil {
		return made // the worker stops, or has lost the session: that is no failure of the summary
	}
	if err != nil {
		made.Code = core.CodeOf(err)
		return made
	}
	o, err := a.checked(ctx, resp.Text, req, ws)
	if err != nil {
		made.Code = core.CodeSummaryInvalid
		return made
	}
	o.facts = facts
	made.Summary, made.ByModel = o.within(summaryCap), true
	return made
}

// affords says whether the caps of money leave anything for a summary.
func (a *Agent) affords(ctx context.Context, req core.CompactionRequest, rec core.TurnRecorder) error {
	if cost := req.Finish.Result.Usage.CostUSD; a.limits.CostUSD > 0 && cost != nil && *cost >= a.limits.CostUSD {
		return limitReached("its cost")
	}
	return rec.Spent(ctx, core.Usage{})
}

// guessSummary is what a summary counts as whose cost nobody tells.
func (a *Agent) guessSummary(u core.Usage, document int) *float64 {
	prices := a.scribe.prices
	switch {
	case prices == nil && !a.limits.CostKnown:
		return nil
	case prices == nil:
		prices = assumed()
	}
	u.PromptTokens = max(u.PromptTokens, int64(proseTokens(document)))
	cost := prices.cost(u)
	return &cost
}

// document is one turn as material: the model is to describe it, not to go on with it.
func (a *Agent) document(req core.CompactionRequest, system int) string {
	sections := []section{
		{"record so far", visible(req.Previous)},
		{"request", ends(visible(req.Request), compactedRequest)},
		{"final answer", ends(visible(req.Finish.Answer), compactedAnswer)},
		{"tool activity", activity(req.Activity, activityCap)},
		{"workspace", platformFacts(req.Workspace)},
	}
	const tags = 1_000 // bytes of the sections' tags
	room := max(0, usable(a.window)*4-system-tags)
	size := 0
	for _, s := range sections {
		size += len(s.text)
	}
	for i := range sections {
		s := &sections[i]
		if size > room {
			s.text = ends(s.text, len(s.text)*room/size)
		}
		if s.text = strings.TrimSpace(s.text); s.text == "" {
			s.text = nothing
		}
	}
	return render(freshID(sections), sections)
}

// checked makes a summary of the model's text, or says why it is none.
func (a *Agent) checked(ctx context.Context, text string, req core.CompactionRequest, ws core.Workspace) (outline, error) {
	if limit := len(req.Previous) + summaryCap; len(text) > limit {
		return outline{}, fmt.Errorf("%d bytes, where %d are the most", len(text), limit)
	}
	text, _ = a.redact.Text(redact.Clean(text))
	o, err := readOutline(text)
	if err != nil {
		return outline{}, err
	}
	changed := map[string]bool{}
	for _, f := range req.Workspace.Changed {
		changed[f.Path] = f.Status != "deleted"
	}
	o.keepFiles(func(path string) bool {
		if there, known := changed[path]; known {
			return there
		}
		_, err := ws.Stat(ctx, path)
		return err == nil || core.KindOf(err) == core.Unavailable // a sandbox that is gone says nothing of its files
	})
	return o, nil
}

// withLine keeps the old summary and adds the turn to it as a line.
func (a *Agent) withLine(req core.CompactionRequest, facts string) string {
	line, _ := a.redact.Text(turnLine(req.Request, req.Finish))
	o := storedOutline(req.Previous)
	o.later = append(o.later, line)
	o.facts = facts
	return o.within(summaryCap)
}
