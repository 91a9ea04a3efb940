package store_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

func usd(v float64) *float64 { return &v }

// spend lets a session's waiting message cost an amount and end.
func spend(t *testing.T, s *store.Store, amount float64) core.Claim {
	t.Helper()
	claim := storetest.Claim(t, s)
	_, err := s.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m")
	must(t, err)
	_, err = s.AddUsage(t.Context(), claim.Lease, claim.Message.ID, core.Usage{PromptTokens: 10, CostUSD: &amount, CostSource: core.CostByProvider})
	must(t, err)
	storetest.Finish(t, s, claim, "ok")
	return claim
}

func follow(t *testing.T, s *store.Store, c core.ChatSession, text string) core.Message {
	t.Helper()
	m, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: c.ID, OwnerID: c.OwnerID, Text: text})
	must(t, err)
	return m
}

func TestClaim_RefusesWhatASessionHasNoMoneyFor(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s).ID
	session := storetest.Session(t, s, owner)
	spend(t, s, 0.3)
	worker, budgets := storetest.Worker(t, s, "host-1"), core.Budgets{SessionUSD: 0.5}

	follow(t, s, session, "There is money left")
	claim, err := s.Claim(t.Context(), worker, storetest.Lease, budgets)
	must(t, err)
	_, err = s.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m")
	must(t, err)
	spent, err := s.AddUsage(t.Context(), claim.Lease, claim.Message.ID, core.Usage{CostUSD: usd(0.2), CostSource: core.CostByPrice})
	must(t, err)
	if spent.SessionUSD != 0.5 || core.CodeOf(budgets.Check(spent)) != core.CodeSessionBudget {
		t.Errorf("spent %+v, which is %v; want the cap reached exactly", spent, budgets.Check(spent))
	}
	storetest.Finish(t, s, claim, "ok")

	refused := []core.Message{follow(t, s, session, "Too late"), follow(t, s, session, "Too late again")}
	other := storetest.Session(t, s, owner)
	claim, err = s.Claim(t.Context(), worker, storetest.Lease, budgets)
	if err != nil || claim.Session.ID != other.ID {
		t.Fatalf("claimed %s, %v; want the session that has money, %s", claim.Session.ID, err, other.ID)
	}
	for _, m := range refused {
		m = message(t, s, m)
		if m.State != core.Failed || m.FailureCode != core.CodeSessionBudget || !m.StartedAt.IsZero() || m.FailureText == "" {
			t.Errorf("refused message: %+v", m)
		}
	}
	tl, err := s.Timeline(t.Context(), session.ID, 0, 1)
	must(t, err)
	if last := tl.Events[0]; last.Type != "message_failed" || tl.Session.LeaseOwner != "" {
		t.Errorf("last event %s, lease of %q; want message_failed and a free session", last.Type, tl.Session.LeaseOwner)
	}
	// What was made can still be published.
	_, err = s.RequestPublish(t.Context(), core.Publication{SessionID: session.ID, RequestedBy: owner, Title: "T", ClientKey: "k"}, nil)
	must(t, err)
	if claim, err = s.Claim(t.Context(), worker, storetest.Lease, budgets); err != nil || claim.Publication == nil {
		t.Errorf("publication of a session without money: %+v, %v", claim, err)
	}
}

func TestClaim_RefusesWhatAPersonHasNoMoneyForThisMonth(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	person := storetest.User(t, s).ID
	storetest.Session(t, s, person)
	before := spend(t, s, 7)
	budgets := core.Budgets{MonthUSD: 5}
	worker := storetest.Worker(t, s, "host-1")

	// It began in the last second of the month before: not this month's money.
	const month = `date_trunc('month', now() AT TIME ZONE 'UTC')`
	storetest.Exec(t, s, `UPDATE messages SET started_at = (`+month+` - interval '1 second') AT TIME ZONE 'UTC' WHERE id = $1`, before.Message.ID)
	first := storetest.Session(t, s, person)
	claim, err := s.Claim(t.Context(), worker, storetest.Lease, budgets)
	if err != nil || claim.Session.ID != first.ID {
		t.Fatalf("claimed %s, %v; last month's money was counted", claim.Session.ID, err)
	}
	_, err = s.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m")
	must(t, err)
	storetest.Finish(t, s, claim, "ok")

	// In the first moment of this month: it counts, for every session of the person and nobody else's.
	storetest.Exec(t, s, `UPDATE messages SET started_at = `+month+` AT TIME ZONE 'UTC' WHERE id = $1`, before.Message.ID)
	second := storetest.Session(t, s, person)
	somebody := storetest.Session(t, s, storetest.User(t, s).ID)
	claim, err = s.Claim(t.Context(), worker, storetest.Lease, budgets)
	if err != nil || claim.Session.ID != somebody.ID {
		t.Errorf("claimed %s, %v; want the other person's session", claim.Session.ID, err)
	}
	tl, err := s.Timeline(t.Context(), second.ID, 0, 0)
	must(t, err)
	if m := tl.Messages[0]; m.State != core.Failed || m.FailureCode != core.CodeMonthBudget {
		t.Errorf("message: %+v", m)
	}
	if _, err := s.Claim(t.Context(), worker, storetest.Lease, budgets); !errors.Is(err, core.ErrNoWork) {
		t.Errorf("claim afterwards: %v, want no work", err)
	}
}

// Of two sessions of one person that spend in the same moment, one at least sees what both have spent; else
// both would go on past the month's cap.
func TestAddUsage_NoTwoSessionsMissEachOther(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s).ID
	var claims []core.Claim
	for range 2 {
		storetest.Session(t, s, owner)
		claim := storetest.Claim(t, s)
		_, err := s.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m")
		must(t, err)
		claims = append(claims, claim)
	}
	const rounds = 100
	for round := 1; round <= rounds; round++ {
		var seen [2]float64
		var both sync.WaitGroup
		begin := make(chan struct{})
		for i, c := range claims {
			both.Go(func() {
				<-begin
				spent, err := s.AddUsage(t.Context(), c.Lease, c.Message.ID, core.Usage{CostUSD: usd(1), CostSource: core.CostByPrice})
				if err != nil {
					t.Error(err)
				}
				seen[i] = spent.MonthUSD
			})
		}
		close(begin)
		both.Wait()
		if want := float64(2 * round); max(seen[0], seen[1]) != want {
			t.Fatalf("round %d: the sessions see %v, want one to see %v", round, seen, want)
		}
	}
}

func TestAddUsage_SurvivesTheWorkerAndTheEnd(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	add := func(c core.Claim, u core.Usage) error {
		_, err := s.AddUsage(t.Context(), c.Lease, c.Message.ID, u)
		return err
	}
	counted := core.Usage{PromptTokens: 150, CachedTokens: 40, CompletionTokens: 7, CostUSD: usd(0.75), CostSource: core.CostByPrice}

	lost := storetest.Working(t, s)
	must(t, add(lost, core.Usage{PromptTokens: 100, CachedTokens: 40, CompletionTokens: 5, CostUSD: usd(0.5), CostSource: core.CostByProvider}))
	must(t, add(lost, core.Usage{PromptTokens: 50, CompletionTokens: 2, CostUSD: usd(0.25), CostSource: core.CostByPrice}))
	storetest.Expire(t, s, lost.Session.ID)
	if err := add(lost, counted); !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("after the lease: %v, want ErrLeaseLost", err)
	}
	if _, err := s.Reap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := message(t, s, *lost.Message); m.FailureCode != "worker_lost" || !cmp.Equal(m.Usage, counted) {
		t.Errorf("after the worker was lost: %s %+v, want %+v", m.FailureCode, m.Usage, counted)
	}

	ended := storetest.Working(t, s)
	must(t, add(ended, counted))
	result := core.TurnResult{Usage: core.Usage{PromptTokens: 10, CostUSD: usd(0.5), CostSource: core.CostUnknown}, Limits: core.TurnLimits{Steps: 60, Minutes: 30}}
	must(t, s.FinishMessage(t.Context(), ended.Lease, core.Finish{MessageID: ended.Message.ID, State: core.Completed, Result: result}))
	want := counted
	want.CostSource = core.CostUnknown
	if m := message(t, s, *ended.Message); !cmp.Equal(m.Usage, want) || m.Limits != result.Limits {
		t.Errorf("a result that knows less: %+v under %+v, want %+v under %+v", m.Usage, m.Limits, want, result.Limits)
	}
}

func TestAddUsage_TheSourceIsThatOfTheWorstPart(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, test := range []struct{ parts, want []core.CostSource }{
		{[]core.CostSource{""}, []core.CostSource{""}},
		{[]core.CostSource{core.CostByProvider, ""}, []core.CostSource{core.CostByProvider, core.CostByProvider}},
		{[]core.CostSource{core.CostByPrice, core.CostByProvider}, []core.CostSource{core.CostByPrice, core.CostByPrice}},
		{[]core.CostSource{core.CostUnknown, core.CostByPrice, core.CostByProvider, ""}, []core.CostSource{core.CostUnknown, core.CostUnknown, core.CostUnknown, core.CostUnknown}},
	} {
		c := storetest.Working(t, s)
		var sum core.Usage
		for i, source := range test.parts {
			u := core.Usage{CostSource: source}
			sum = sum.Add(u)
			_, err := s.AddUsage(t.Context(), c.Lease, c.Message.ID, u)
			must(t, err)
			if m := message(t, s, *c.Message); m.Usage.CostSource != test.want[i] || sum.CostSource != test.want[i] {
				t.Errorf("%v: stored %q, summed %q, want %q", test.parts[:i+1], m.Usage.CostSource, sum.CostSource, test.want[i])
			}
		}
	}
}

func TestPostMessage_KeepsTheLimitsItWasGiven(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	limits := core.TurnLimits{Steps: 120, Minutes: 60}
	m, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: session.ID, OwnerID: session.OwnerID, Text: "x", Limits: limits})
	must(t, err)
	plain := follow(t, s, session, "y")
	if m.Limits != limits || plain.Limits != (core.TurnLimits{}) {
		t.Errorf("limits %+v and %+v, want %+v and none", m.Limits, plain.Limits, limits)
	}
}
