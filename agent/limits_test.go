package agent_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/core"
)

// look is one step of work that costs money.
func look(n int, usd float64) modeltest.Reply {
	return modeltest.Reply{Calls: []modeltest.Call{call("ls", map[string]any{"limit": n})}, Cost: usd}
}

// onRequest is a script that somebody watches.
type onRequest struct {
	modeltest.Script
	heard func(modeltest.Request)
}

func (s onRequest) Reply(req modeltest.Request) modeltest.Reply {
	s.heard(req)
	return s.Script.Reply(req)
}

func (b *bench) runWith(ctx context.Context, limits core.TurnLimits) (core.TurnResult, error) {
	return b.agent.Run(ctx, core.TurnRequest{Profile: "main", Policy: core.PolicySeed, Request: "x", Limits: limits}, b.ws, b.publisher, b.rec)
}

func TestLimits_AMessageBringsItsOwnUpToTheCeiling(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ ask, want core.TurnLimits }{
		"none":          {core.TurnLimits{}, core.TurnLimits{Steps: 2, Minutes: 30}},
		"higher":        {core.TurnLimits{Steps: 3, Minutes: 60}, core.TurnLimits{Steps: 3, Minutes: 60}},
		"above ceiling": {core.TurnLimits{Steps: 100, Minutes: 10_000}, core.TurnLimits{Steps: 4, Minutes: core.MaxTurnMinutes}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, modeltest.Sequence(look(1, 0), look(2, 0), look(3, 0), look(4, 0), look(5, 0)), agent.Limits{Steps: 2, StepsCeiling: 4}, nil)
			got, err := b.runWith(t.Context(), test.ask)
			if core.CodeOf(err) != core.CodeLimitReached || got.Steps != test.want.Steps {
				t.Errorf("%v after %d steps", err, got.Steps)
			}
			if diff := cmp.Diff(test.want, got.Limits); diff != "" {
				t.Errorf("recorded limits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLimits_MoneyIsCheckedBeforeEachRequest(t *testing.T) {
	t.Parallel()
	t.Run("of the message", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(look(1, 0.25), look(2, 0.25), look(3, 0.25), look(4, 0.25)), agent.Limits{CostUSD: 0.5}, nil)
		got, err := b.run(t.Context(), "x")
		if core.CodeOf(err) != core.CodeLimitReached || !strings.Contains(core.MessageOf(err), "$0.50 of the $0.50") {
			t.Errorf("got %v", err)
		}
		// The request that reached the cap was paid for, so its call is carried out.
		if got.Steps != 2 || len(b.rec.results()) != 2 {
			t.Errorf("%d steps, %q", got.Steps, b.rec.results())
		}
	})
	t.Run("an answer is not thrown away", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(modeltest.Reply{Text: "Done.", Cost: 3}), agent.Limits{CostUSD: 1, CostKnown: true}, nil)
		b.rec.onSpent = func(total core.Usage) error {
			if total.CostUSD != nil {
				return core.Fail(core.Conflict, core.CodeSessionBudget, "Used up.")
			}
			return nil
		}
		if got, err := b.run(t.Context(), "x"); err != nil || got.Answer != "Done." {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("used up already", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(modeltest.Reply{Text: "Done."}), agent.Limits{}, nil)
		b.rec.onSpent = func(core.Usage) error { return core.Fail(core.Conflict, core.CodeMonthBudget, "Used up.") }
		if _, err := b.run(t.Context(), "x"); core.CodeOf(err) != core.CodeMonthBudget || len(b.server.Journal()) != 0 {
			t.Errorf("%v after %d requests", err, len(b.server.Journal()))
		}
	})
	t.Run("used up by others meanwhile", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(look(1, 0.1), look(2, 0.1), look(3, 0.1)), agent.Limits{}, nil)
		b.rec.onSpent = func(total core.Usage) error {
			if total.CostUSD != nil && *total.CostUSD > 0.15 {
				return core.Fail(core.Conflict, core.CodeMonthBudget, "Used up.")
			}
			return nil
		}
		if got, err := b.run(t.Context(), "x"); core.CodeOf(err) != core.CodeMonthBudget || got.Steps != 2 {
			t.Errorf("%v after %d steps", err, got.Steps)
		}
	})
}

func TestLimits_AnUnknownCostEndsACappedTurn(t *testing.T) {
	t.Parallel()
	unpriced := modeltest.Reply{Text: "Half.", Quirk: modeltest.NoCost, Calls: []modeltest.Call{call("write", map[string]any{"path": "x", "content": "x"})}}
	for name, last := range map[string]modeltest.Reply{"calls": unpriced, "an answer": {Text: "Done.", Quirk: modeltest.NoCost}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, modeltest.Sequence(look(1, 0.25), last, look(2, 0)), agent.Limits{CostKnown: true}, nil)
			got, err := b.run(t.Context(), "x")
			if core.CodeOf(err) != core.CodeCostUnknown || got.Steps != 2 {
				t.Errorf("%v after %d steps", err, got.Steps)
			}
			if u := got.Usage; u.CostSource != core.CostUnknown || u.CostUSD == nil || *u.CostUSD != 0.5 {
				t.Errorf("usage %+v: want the unknown one as dear as the known, and the sum marked", u)
			}
			if diff := cmp.Diff([]string{"ls ok empty"}, b.rec.results()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("without a cap nothing ends", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(unpriced, modeltest.Reply{Text: "Done."}), agent.Limits{}, nil)
		if got, err := b.run(t.Context(), "x"); err != nil || got.Usage.CostSource != core.CostUnknown {
			t.Errorf("%+v, %v", got.Usage, err)
		}
	})
}

func TestLimits_PricesGiveTheCost(t *testing.T) {
	t.Parallel()
	b := setup(t, modeltest.Sequence(modeltest.Reply{Text: "One two three.", Quirk: modeltest.NoCost}), agent.Limits{}, nil)
	b.limit(t, agent.Limits{CostKnown: true}, &agent.Prices{Input: 3, Output: 15, Cached: 0.3})
	got, err := b.run(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	u := got.Usage
	want := (float64(u.PromptTokens)*3 + float64(u.CompletionTokens)*15) / 1e6
	if u.CostSource != core.CostByPrice || u.CostUSD == nil || want == 0 || math.Abs(*u.CostUSD-want) > 1e-12 {
		t.Errorf("usage %+v, want %v by price", u, want)
	}
	if diff := cmp.Diff(u, b.rec.spent); diff != "" {
		t.Errorf("what was recorded request by request differs (-result +recorded):\n%s", diff)
	}
}

func TestLimits_ARequestThatBrokeOffIsOfUnknownCost(t *testing.T) {
	t.Parallel()
	for fault, want := range map[modeltest.Fault]core.CostSource{modeltest.Broken: core.CostUnknown, modeltest.Unauthorized: core.CostByProvider} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			b := setup(t, modeltest.Sequence(look(1, 0.25), modeltest.Reply{Text: "half an answer", Fault: fault}), agent.Limits{}, nil)
			got, _ := b.run(t.Context(), "x")
			if got.Usage.CostSource != want || b.rec.spent.CostSource != want {
				t.Errorf("source %s, recorded %s, want %s", got.Usage.CostSource, b.rec.spent.CostSource, want)
			}
		})
	}
}

// A cap must hold against requests that break off or are cancelled, of which nobody says what they cost.
func TestLimits_ARequestThatBrokeOffCounts(t *testing.T) {
	t.Parallel()
	broken := modeltest.Reply{Text: strings.Repeat("half an answer ", 40), Fault: modeltest.Broken}
	t.Run("as the dearest before it", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(look(1, 0.25), look(2, 0.1), broken), agent.Limits{}, nil)
		got, err := b.run(t.Context(), "x")
		if u := got.Usage; core.CodeOf(err) != core.CodeModelStreamError || u.CostUSD == nil || math.Abs(*u.CostUSD-0.6) > 1e-9 {
			t.Errorf("%v, usage %+v, want $0.60", err, u)
		}
	})
	t.Run("by the prices", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(broken), agent.Limits{}, nil)
		b.limit(t, agent.Limits{CostKnown: true}, &agent.Prices{Input: 1e6, Output: 0})
		got, _ := b.run(t.Context(), "x")
		sent := float64(len(b.server.Journal()[0].Body["messages"]) + len(b.server.Journal()[0].Body["tools"]))
		u := got.Usage
		if u.CostSource != core.CostUnknown || u.CostUSD == nil || *u.CostUSD < sent/6 || *u.CostUSD > sent/3 {
			t.Errorf("usage %+v for %v bytes that were sent", u, sent)
		}
		if diff := cmp.Diff(u, b.rec.spent); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("by assumed prices where nobody has told any", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(broken), agent.Limits{CostUSD: 1, CostKnown: true}, nil)
		got, _ := b.run(t.Context(), "x")
		sent := float64(len(b.server.Journal()[0].Body["messages"]) + len(b.server.Journal()[0].Body["tools"]))
		u := got.Usage
		if u.CostSource != core.CostUnknown || u.CostUSD == nil || *u.CostUSD < sent/6*15e-6 || *u.CostUSD > sent/3*15e-6 {
			t.Errorf("usage %+v for %v bytes that were sent", u, sent)
		}
		if diff := cmp.Diff(u, b.rec.spent); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("but not where no money is capped", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(broken), agent.Limits{}, nil)
		if got, _ := b.run(t.Context(), "x"); got.Usage != (core.Usage{CostSource: core.CostUnknown}) {
			t.Errorf("usage %+v", got.Usage)
		}
	})
	t.Run("of a subagent", func(t *testing.T) {
		t.Parallel()
		ask := modeltest.Reply{Calls: []modeltest.Call{call("subagent", map[string]any{"task": "Where is x?"})}, Cost: 0.25}
		b := setup(t, modeltest.Sequence(ask, broken, modeltest.Reply{Text: "Done.", Cost: 0.1}), agent.Limits{CostUSD: 5, CostKnown: true}, nil)
		got, err := b.run(t.Context(), "x")
		if u := got.Usage; err != nil || u.CostSource != core.CostUnknown || u.CostUSD == nil || math.Abs(*u.CostUSD-0.6) > 1e-9 {
			t.Errorf("%v, usage %+v, want $0.60", err, u)
		}
		if diff := cmp.Diff(got.Usage, b.rec.spent); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("of a subagent that is cancelled", func(t *testing.T) {
		t.Parallel()
		ask := modeltest.Reply{Calls: []modeltest.Call{call("subagent", map[string]any{"task": "Where is x?"})}, Cost: 0.25}
		ctx, cancel := context.WithCancelCause(t.Context())
		script := onRequest{modeltest.Sequence(ask, modeltest.Reply{Text: "x", Fault: modeltest.Hang}), func(req modeltest.Request) {
			if len(req.Tools) == 4 {
				cancel(core.ErrCancelledByUser)
			}
		}}
		b := setup(t, script, agent.Limits{CostUSD: 5, CostKnown: true}, nil)
		got, err := b.run(ctx, "x")
		if u := got.Usage; !errors.Is(err, core.ErrCancelledByUser) || u.CostUSD == nil || math.Abs(*u.CostUSD-0.5) > 1e-9 {
			t.Errorf("%v, usage %+v, want $0.50", err, u)
		}
		if diff := cmp.Diff(got.Usage, b.rec.spent); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("cancelled by a person", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(modeltest.Reply{Text: "x", Fault: modeltest.Hang}), agent.Limits{}, nil)
		b.limit(t, agent.Limits{}, &agent.Prices{Input: 10})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if got, _ := b.run(ctx, "x"); got.Usage.CostUSD == nil || *got.Usage.CostUSD <= 0 {
			t.Errorf("usage %+v", got.Usage)
		}
	})
}
