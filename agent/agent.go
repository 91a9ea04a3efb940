// Package agent is the loop: it composes the context of one message, asks a model, runs the tools
// that the model calls one after the other, and ends with an answer or with a core.Error.
//
// It knows a workspace, a publisher, a model and a recorder by interface only. It holds no
// credential, no database and no container, and nothing in it is retried but what the model's
// client retries before a first byte.
package agent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
	"agent-sandboxing/prompts"
)

// Options are the parts of an Agent. Window is the model's context window in tokens; 0 takes
// DefaultWindow.
type Options struct {
	Model Model
	// Summaries is asked for the summaries between turns in place of Model; nil is Model. Prices are
	// not its own.
	Summaries Model
	Tools     Toolset
	Redactor  *redact.Redactor
	Limits    Limits
	Window    int
	Prices    *Prices // nil: only the provider knows the cost
}

// Agent runs invocations. It is safe for concurrent use.
type Agent struct {
	model    Model
	scribe   summarizer
	tools    Toolset
	redact   *redact.Redactor
	limits   Limits
	window   int
	prices   *Prices
	profiles map[string]profile
}

// New checks that every profile names a prompt and tools that exist, and that there is one for each
// thing the agent does.
func New(o Options) (*Agent, error) {
	a := &Agent{
		model: o.Model, scribe: summarizer{o.Model, o.Prices}, tools: o.Tools, redact: o.Redactor,
		limits: o.Limits.orDefault(), prices: o.Prices, window: cmp.Or(o.Window, DefaultWindow),
	}
	if o.Summaries != nil {
		a.scribe = summarizer{model: o.Summaries}
	}
	if a.window < MinWindow {
		return nil, fmt.Errorf("a context window of %d tokens is too small: at least %d are needed", a.window, MinWindow)
	}
	known := map[string]ToolSpec{}
	for _, t := range o.Tools(Env{}) {
		known[t.Spec().Name] = t.Spec()
	}
	declared, err := prompts.Profiles()
	if err != nil {
		return nil, err
	}
	a.profiles, err = profiles(declared, known)
	return a, err
}

// Model names the model as configured.
func (a *Agent) Model() string { return a.model.Name() }

// Run performs one invocation. With an error it still returns what was counted until then. The
// error is a core.Error, or the cause with which ctx was cancelled.
func (a *Agent) Run(ctx context.Context, req core.TurnRequest, ws core.Workspace, pub core.Publisher, rec core.TurnRecorder) (core.TurnResult, error) {
	p, ok := a.profiles[req.Profile]
	if !ok {
		return core.TurnResult{}, core.Fail(core.Internal, "unknown_profile", "There is no agent profile of this name.")
	}
	limits := a.limits.of(req.Limits)
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Wall,
		limitReached(fmt.Sprintf("it worked for %s", limits.Wall)))
	defer cancel()

	r := a.begin(p, limits, rec)
	env := Env{Workspace: ws, Publisher: pub, Policy: req.Policy, MessageID: req.MessageID}
	env.Investigate = func(ctx context.Context, task string) (Report, error) { return a.investigate(ctx, task, env, r) }
	r.offer(a.tools(env), p)
	room := usable(a.window)/2 - proseTokens(len(p.system)) - r.meter.fixed
	r.open(p.system, compose(req, max(0, room)*4))

	err := r.loop(ctx)
	return r.result, err
}

// begin makes a run of a profile, still without tools and messages.
func (a *Agent) begin(p profile, limits Limits, rec core.TurnRecorder) *run {
	return &run{
		model:   a.model,
		limits:  limits,
		prices:  a.prices,
		redact:  a.redact,
		rec:     rec,
		tools:   map[string]Tool{},
		ids:     map[string]bool{},
		did:     map[string]string{},
		meter:   meter{window: a.window},
		partial: partial{rec: rec, redact: a.redact, now: time.Now},
		result:  core.TurnResult{Model: a.model.Name(), PromptHash: p.hash, Limits: limits.record(), Context: core.ContextUse{Window: int64(a.window)}},
	}
}
