package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// run is one invocation while it lasts.
type run struct {
	model    Model
	limits   Limits
	redact   *redact.Redactor
	rec      core.TurnRecorder
	tools    map[string]Tool
	specs    []ToolSpec
	mark     string            // of the tags that are the platform's own in this run
	ids      map[string]bool   // call ids given out in this run
	did      map[string]string // by call id: what a result shows, for the line that may replace it
	messages []Message
	meter    meter
	partial  partial
	repeats  repeats
	prices   *Prices
	dearest  *float64 // of the turn's requests so far, in dollars; nil while no cost is known
	spent    error    // what the last Spent said: no further request when it is not nil
	result   core.TurnResult
	parent   *run // of a subagent: the run that pays for it

	malformed int // responses in a row without a call that could be run
	cutShort  int // responses with calls that ended at the output limit
	warned    bool
}

// offer gives the run those of the tools that its profile has. They are sorted and byte-identical in
// every request, or no provider could cache them.
func (r *run) offer(tools []Tool, p profile) {
	for _, t := range tools {
		if spec := t.Spec(); slices.Contains(p.tools, spec.Name) {
			r.tools[spec.Name] = t
			r.specs = append(r.specs, spec)
		}
	}
	slices.SortFunc(r.specs, func(a, b ToolSpec) int { return cmp.Compare(a.Name, b.Name) })
	r.meter.fixed = specTokens(r.specs)
}

// open begins the conversation with the rules and the one message that the run is about.
func (r *run) open(system string, sections []section) {
	r.mark = freshID(sections)
	r.messages = []Message{{Role: System, Text: system}, {Role: User, Text: render(r.mark, sections)}}
}

// loop asks and executes until the model answers without a call. On return the shown text is whole.
func (r *run) loop(ctx context.Context) error {
	defer r.partial.flush()
	r.spent = r.rec.Spent(ctx, core.Usage{})
	for r.result.Steps < r.limits.Steps {
		if err := r.fit(); err != nil {
			return err
		}
		if err := checkMessages(r.messages); err != nil {
			return core.Fail(core.Internal, "context_invalid", "The conversation with the model broke its own rules.").Because(err)
		}
		if err := cmp.Or(ctx.Err(), r.mayAsk()); err != nil {
			return r.ending(ctx, err)
		}
		r.result.Steps++
		resp, err := r.ask(ctx)
		if err != nil {
			return r.ending(ctx, err)
		}
		if err := refusedFinish(resp); err != nil {
			return err
		}
		if len(resp.Calls) == 0 {
			r.result.Answer, _ = r.redact.Text(redact.Clean(strings.TrimSpace(resp.Text)))
			return nil
		}
		if err := r.execute(ctx, resp); err != nil {
			return r.ending(ctx, err)
		}
	}
	return limitReached(fmt.Sprintf("%d steps", r.limits.Steps))
}

// ask sends the messages so far and counts what it cost.
func (r *run) ask(ctx context.Context) (Response, error) {
	r.partial.begin()
	before := r.partial.text.Len()
	resp, err := r.model.Stream(ctx, Request{Messages: r.messages, Tools: r.specs}, Listener{
		Text:  r.partial.add,
		Retry: r.rec.ModelRetry,
	})
	counted := r.count(ctx, resp, err, r.partial.text.Len()-before)
	if err != nil {
		return Response{}, err
	}
	if resp.Model != "" {
		r.result.Model = resp.Model
	}
	r.meter.calibrate(resp.Usage, len(r.messages))
	r.result.Context.Tokens = resp.Usage.PromptTokens
	return resp, counted
}

// refusedFinish maps the ways of stopping that leave nothing to go on with.
func refusedFinish(resp Response) error {
	switch {
	case resp.Finish == FinishContentFilter:
		return core.Fail(core.Conflict, core.CodeModelRefused,
			"The model's provider refused to answer this. Rephrase the request, or use another model.")
	case resp.Finish == FinishLength && len(resp.Calls) == 0:
		return core.Fail(core.Conflict, core.CodeModelTruncated,
			"The model's answer was longer than it may be. Ask for a smaller piece of work.")
	case len(resp.Calls) == 0 && strings.TrimSpace(resp.Text) == "":
		return core.Fail(core.Unavailable, core.CodeModelEmptyResponse,
			"The model answered with nothing. Send the message again, or use another model.")
	}
	return nil
}

// ending prefers the reason why ctx was cancelled to the error that this led to.
func (r *run) ending(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	return fmt.Errorf("step %d: %w", r.result.Steps, err)
}
