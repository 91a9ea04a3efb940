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
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
	"agent-sandboxing/prompts"
)

// Options are the parts of an Agent.
type Options struct {
	Model    Model
	Tools    Toolset
	Redactor *redact.Redactor
	Limits   Limits
	Prices   *Prices // nil: only the provider knows the cost
}

// Agent runs invocations. It is safe for concurrent use.
type Agent struct {
	model    Model
	tools    Toolset
	redact   *redact.Redactor
	limits   Limits
	prices   *Prices
	profiles map[string]profile
}

// profile is a system prompt with the tools that go with it.
type profile struct {
	system string
	tools  []string
	hash   string // of all that the model is told before the message
}

// New checks that every profile names a prompt and tools that exist.
func New(o Options) (*Agent, error) {
	a := &Agent{model: o.Model, tools: o.Tools, redact: o.Redactor, limits: o.Limits.orDefault(), prices: o.Prices, profiles: map[string]profile{}}
	known := map[string]ToolSpec{}
	for _, t := range o.Tools(Env{}) {
		known[t.Spec().Name] = t.Spec()
	}
	declared, err := prompts.Profiles()
	if err != nil {
		return nil, err
	}
	for name, d := range declared {
		system, err := prompts.System(d.Prompt)
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", name, err)
		}
		hash := sha256.New()
		hash.Write([]byte(system))
		slices.Sort(d.Tools)
		for _, tool := range d.Tools {
			spec, ok := known[tool]
			if !ok {
				return nil, fmt.Errorf("profile %s: no tool %q", name, tool)
			}
			hash.Write([]byte("\x00" + spec.Name + "\x00" + spec.Description + "\x00" + string(spec.Parameters)))
		}
		a.profiles[name] = profile{system: system, tools: d.Tools, hash: hex.EncodeToString(hash.Sum(nil))}
	}
	return a, nil
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

	env := Env{Workspace: ws, Publisher: pub, Policy: req.Policy, MessageID: req.MessageID}
	r := &run{
		model:  a.model,
		limits: limits,
		prices: a.prices,
		redact: a.redact,
		rec:    rec,
		tools:  map[string]Tool{},
		ids:    map[string]bool{},
		messages: []Message{
			{Role: System, Text: p.system},
			{Role: User, Text: compose(req, newSectionID())},
		},
		partial: partial{rec: rec, redact: a.redact, now: time.Now},
		result:  core.TurnResult{Model: a.model.Name(), PromptHash: p.hash, Limits: limits.record()},
	}
	for _, t := range a.tools(env) {
		if spec := t.Spec(); slices.Contains(p.tools, spec.Name) {
			r.tools[spec.Name] = t
			r.specs = append(r.specs, spec)
		}
	}
	// Sorted and byte-identical in every request, or no provider could cache them.
	slices.SortFunc(r.specs, func(a, b ToolSpec) int { return cmp.Compare(a.Name, b.Name) })

	err := r.loop(ctx)
	return r.result, err
}
