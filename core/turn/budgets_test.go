package turn_test

import (
	"context"
	"errors"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/core/turn"
)

// spender is an agent that asks a model as long as it may; each request costs 0.4 dollars.
type spender struct {
	agentFunc // for its summaries
	limits    chan core.TurnLimits
}

func (a spender) Run(ctx context.Context, req core.TurnRequest, _ core.Workspace, _ core.Publisher, rec core.TurnRecorder) (core.TurnResult, error) {
	a.limits <- req.Limits
	cost := 0.4
	request := core.Usage{PromptTokens: 100, CostUSD: &cost, CostSource: core.CostByProvider}
	result := core.TurnResult{Limits: core.TurnLimits{Steps: 60, Minutes: 30}}
	err := rec.Spent(ctx, core.Usage{})
	for ; err == nil; result.Steps++ {
		result.Usage = result.Usage.Add(request)
		err = rec.Spent(ctx, request)
	}
	return result, err
}

func with(agent turn.Agent, budgets core.Budgets) func(*turn.Options) {
	return func(o *turn.Options) { o.Agent, o.Budgets = agent, budgets }
}

func TestTurn_ABudgetEndsTheTurnAndThenTheQueue(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s).ID
	session := storetest.Session(t, s, owner)
	limits := make(chan core.TurnLimits, 9)
	boxes := &boxes{}
	st := run(t, s, nil, boxes, with(spender{limits: limits}, core.Budgets{SessionUSD: 1}))
	st.events(t, session.ID, "summary_updated")
	m := st.message(t, session.ID)
	if m.State != core.Failed || m.FailureCode != core.CodeSessionBudget || m.Steps != 3 || m.Usage.CostUSD == nil || *m.Usage.CostUSD < 1.19 {
		t.Errorf("the turn that used the budget up: %+v", m)
	}
	tl, err := s.Timeline(t.Context(), session.ID, 0, 0)
	if err != nil || tl.Diff == nil {
		t.Errorf("its changes are not kept: %v, %v", tl.Diff, err)
	}

	boxes.fail = errors.New("a sandbox was prepared for a message that may not run")
	next, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: session.ID, OwnerID: owner, Text: "More"})
	if err != nil {
		t.Fatal(err)
	}
	st.eventsUntil(t, session.ID, "message_failed", func(e core.Event) bool { return e.Type == "message_failed" && e.MessageID == next.ID })
	if m, err = s.Message(t.Context(), session.ID, next.ID); err != nil {
		t.Fatal(err)
	}
	if m.FailureCode != core.CodeSessionBudget || !m.StartedAt.IsZero() || len(limits) != 1 {
		t.Errorf("the next message: %s %+v, and the agent ran %d times", m.FailureCode, m, len(limits))
	}
}

// obedient is an agent that answers at once and says under which limits.
type obedient struct {
	agentFunc // for its summaries
	limits    chan core.TurnLimits
}

func (a obedient) Run(_ context.Context, req core.TurnRequest, _ core.Workspace, _ core.Publisher, _ core.TurnRecorder) (core.TurnResult, error) {
	a.limits <- req.Limits
	return core.TurnResult{Answer: "Done.", Limits: core.TurnLimits{Steps: 100, Minutes: 30}}, nil
}

func TestTurn_TheMessagesLimitsReachTheAgentAndTheRecord(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s).ID
	session := storetest.Session(t, s, owner)
	asked := core.TurnLimits{Steps: 120, Minutes: 60}
	last, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: session.ID, OwnerID: owner, Text: "On", Limits: asked})
	if err != nil {
		t.Fatal(err)
	}
	limits := make(chan core.TurnLimits, 2)
	st := run(t, s, nil, &boxes{}, with(obedient{limits: limits}, core.Budgets{}))
	st.eventsUntil(t, session.ID, "message_completed", func(e core.Event) bool { return e.Type == "message_completed" && e.MessageID == last.ID })
	if first, second := <-limits, <-limits; first != (core.TurnLimits{}) || second != asked {
		t.Errorf("the agent got %+v and %+v, want none and %+v", first, second, asked)
	}
	if m, err := s.Message(t.Context(), session.ID, last.ID); err != nil || m.Limits != (core.TurnLimits{Steps: 100, Minutes: 30}) {
		t.Errorf("the record: %+v, %v; want the limits that it ran under", m.Limits, err)
	}
}
