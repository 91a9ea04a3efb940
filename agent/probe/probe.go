// Package probe asks a model endpoint ten things that the agent depends on, and says in words what
// will not work with it. It knows an agent.Model and nothing below it.
package probe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

// State is how bad a finding is.
type State string

const (
	Fine     State = "fine"
	Degraded State = "degraded" // the agent works, worse
	Broken   State = "broken"   // the agent cannot work
	Untested State = "untested" // something before it has to work first
)

// Finding is one thing that was looked at. Words say what it means for the agent's work.
type Finding struct {
	Name  string
	State State
	Words string
}

// Options: zero fields take their defaults.
type Options struct {
	ContextTokens int           // about how long the long prompt is; 60,000
	Patience      time.Duration // for one request; 5 minutes
	Promptly      time.Duration // for the end of a cancelled request; 5 seconds
	Heard         func(Finding) // each finding as it is made
}

// Report is all that was found.
type Report struct {
	Findings []Finding
	Requests int // without repeats of the same one
}

// Worst is the worst state of all findings that were made.
func (r Report) Worst() State {
	worst := Fine
	for _, f := range r.Findings {
		if f.State == Broken || f.State == Degraded && worst == Fine {
			worst = f.State
		}
	}
	return worst
}

// Verdict sums up in a sentence or two.
func (r Report) Verdict() string {
	named := func(s State) string {
		var names []string
		for _, f := range r.Findings {
			if f.State == s {
				names = append(names, f.Name)
			}
		}
		return strings.Join(names, ", ")
	}
	switch r.Worst() {
	case Broken:
		return "The agent cannot work with this model: " + named(Broken) + "."
	case Degraded:
		return "The agent can work with this model. Not as it should be: " + named(Degraded) + "."
	case Fine, Untested:
	}
	return "Everything that the agent needs works."
}

// Run makes ten requests, one after the other; fewer when the first one already fails.
func Run(ctx context.Context, model agent.Model, o Options) Report {
	if o.ContextTokens == 0 {
		o.ContextTokens = 60_000
	}
	if o.Patience == 0 {
		o.Patience = 5 * time.Minute
	}
	if o.Promptly == 0 {
		o.Promptly = 5 * time.Second
	}
	p := &prober{model: model, options: o}
	if p.answers(ctx) {
		p.streams(ctx)
		p.toolResult(ctx, p.toolCall(ctx))
		p.parallelCalls(ctx)
		p.arguments(ctx)
		p.recovery(ctx)
		p.longOutput(ctx)
		p.longContext(ctx)
		p.cancel(ctx)
		p.records()
	}
	return p.report
}

// prober is one run.
type prober struct {
	model   agent.Model
	options Options
	report  Report

	answered int // requests with a whole answer, and of these
	counted  int // those with a usage record
	priced   int // and with a price
	repeats  int
}

func (p *prober) found(name string, state State, format string, args ...any) {
	f := Finding{Name: name, State: state, Words: fmt.Sprintf(format, args...)}
	p.report.Findings = append(p.report.Findings, f)
	if p.options.Heard != nil {
		p.options.Heard(f)
	}
}

// ask makes one request.
func (p *prober) ask(ctx context.Context, req agent.Request, text func(string)) (agent.Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.Patience, core.Fail(core.Unavailable, core.CodeModelTimeout,
		fmt.Sprintf("There was no whole answer within %s.", p.options.Patience)))
	defer cancel()
	p.report.Requests++
	resp, err := p.model.Stream(ctx, req, agent.Listener{Text: text, Retry: func(context.Context, core.ModelRequestRetry) error {
		p.repeats++
		return nil
	}})
	if err != nil {
		return agent.Response{}, err
	}
	p.answered++
	if resp.UsageKnown {
		p.counted++
	}
	if resp.Usage.CostUSD != nil {
		p.priced++
	}
	return resp, nil
}

// say makes a request of the rules and one prompt.
func say(prompt string, tools ...agent.ToolSpec) agent.Request {
	return agent.Request{
		Messages: []agent.Message{
			{Role: agent.System, Text: "A program is checking how you answer. Do exactly what is asked and nothing else."},
			{Role: agent.User, Text: prompt},
		},
		Tools: tools,
	}
}

// records judges what the answers said about themselves.
func (p *prober) records() {
	switch p.counted {
	case p.answered:
		p.found("usage", Fine, "every answer counts its tokens")
	case 0:
		p.found("usage", Degraded, "No answer counts its tokens: the size of the context is an estimate, and the record of a turn has none.")
	default:
		p.found("usage", Degraded, "%d of %d answers do not count their tokens: the record of a turn will be too low.", p.answered-p.counted, p.answered)
	}
	if p.priced == p.answered {
		p.found("cost", Fine, "every answer says its price")
	} else {
		p.found("cost", Degraded, "%d of %d answers do not say their price: the cost of a turn is unknown, and a limit of money needs prices of your own.", p.answered-p.priced, p.answered)
	}
	if p.repeats == 0 {
		p.found("stability", Fine, "no request had to be repeated")
	} else {
		p.found("stability", Degraded, "%d times a request had to be repeated: the provider is busy or limits you. Turns will be slow, and some will fail.", p.repeats)
	}
}
