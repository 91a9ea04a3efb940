package turn_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/core/turn"
)

// isEnd says which event ends a message.
func isEnd(t core.EventType) bool {
	return t == (core.MessageCompleted{}).EventType() || t == (core.MessageFailed{}).EventType() || t == (core.MessageCancelled{}).EventType()
}

// A cancel may come at any moment of a turn: while it waits, prepares, works, ends or has ended. Of 500
// each message has one end, which its row tells too, and none fails.
func TestInvariant7_ACancelAtAnyMomentGivesOneEnd(t *testing.T) {
	t.Parallel()
	const sessions, turns = 10, 50
	s := storetest.New(t)
	owner := storetest.User(t, s).ID
	st := run(t, s, func(ctx context.Context, _ core.TurnRecorder) (core.TurnResult, error) {
		select {
		case <-ctx.Done():
			return core.TurnResult{}, context.Cause(ctx)
		case <-time.After(time.Duration(rand.IntN(10)) * time.Millisecond):
			return core.TurnResult{Answer: "Done."}, nil
		}
	}, &boxes{})
	var running sync.WaitGroup
	tally := &tally{states: map[core.MessageState]int{}}
	for range sessions {
		running.Go(func() {
			id := storetest.Session(t, s, owner).ID
			for n := range turns {
				st.cancelOnce(t, id, owner, n)
			}
			tally.ended(t, st, id, turns)
		})
	}
	running.Wait()
	if tally.states[core.Cancelled] == 0 || tally.states[core.Completed] == 0 {
		t.Errorf("the moments were all alike: %v", tally.states)
	}
}

// tally counts how messages ended.
type tally struct {
	mu     sync.Mutex
	states map[core.MessageState]int
}

// cancelOnce posts a message, unless it is the session's first, and cancels it at some moment.
func (s stage) cancelOnce(t *testing.T, id core.SessionID, owner core.UserID, n int) {
	if n > 0 {
		if _, err := s.store.PostMessage(t.Context(), core.NewMessage{SessionID: id, OwnerID: owner, Text: "again", ClientKey: fmt.Sprint(n)}); err != nil {
			t.Error(err)
		}
	}
	<-time.After(time.Duration(rand.IntN(60)) * time.Millisecond) // the moment is the point
	if _, err := s.store.RequestCancel(t.Context(), id, "octo-dev"); err != nil && core.CodeOf(err) != "nothing_to_cancel" {
		t.Error(err)
	}
	ends := 0
	s.eventsUntil(t, id, "end", func(e core.Event) bool {
		if isEnd(e.Type) {
			ends++
		}
		return ends > n
	})
}

// ended compares a session's rows with its log.
func (y *tally) ended(t *testing.T, s stage, id core.SessionID, turns int) {
	tl, err := s.store.Timeline(t.Context(), id, 0, 0)
	if err != nil {
		t.Error(err)
		return
	}
	ends := map[core.MessageID][]core.EventType{}
	for _, e := range tl.Events {
		if isEnd(e.Type) {
			ends[e.MessageID] = append(ends[e.MessageID], e.Type)
		}
	}
	asked := 0
	for _, m := range tl.Messages {
		if m.Role != core.RoleUser {
			continue
		}
		asked++
		y.mu.Lock()
		y.states[m.State]++
		y.mu.Unlock()
		if got := ends[m.ID]; len(got) != 1 || string(got[0]) != "message_"+string(m.State) || m.State == core.Failed {
			t.Errorf("a message is %s (%s) and its log tells %v", m.State, m.FailureCode, got)
		}
	}
	if asked != turns {
		t.Errorf("%d messages, want %d", asked, turns)
	}
}

// halfStarted is a store whose start commits in the moment in which the turn's context ends.
type halfStarted struct {
	*store.Store
	cancel func()
}

func (h halfStarted) StartMessage(ctx context.Context, lease core.Lease, id core.MessageID, model string) (core.Message, error) {
	m, err := h.Store.StartMessage(ctx, lease, id, model)
	if err != nil {
		return m, err
	}
	h.cancel()
	select {
	case <-ctx.Done():
		return core.Message{}, ctx.Err()
	case <-time.After(3 * time.Second): // the cancel is found within one poll; it did not end the start
		return m, nil
	}
}

func TestTurn_ACancelInTheMomentOfTheStartEndsIt(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	cancel := func() {
		if _, err := s.RequestCancel(t.Context(), session.ID, "octo-dev"); err != nil {
			t.Error(err)
		}
	}
	st := run(t, s, func(ctx context.Context, _ core.TurnRecorder) (core.TurnResult, error) {
		<-ctx.Done()
		return core.TurnResult{}, context.Cause(ctx)
	}, &boxes{}, func(o *turn.Options) { o.Store = halfStarted{s, cancel} })
	st.eventsUntil(t, session.ID, "end", func(e core.Event) bool { return isEnd(e.Type) })
	if m := st.message(t, session.ID); m.State != core.Cancelled {
		t.Errorf("the message is %s (%s)", m.State, m.FailureCode)
	}
}
