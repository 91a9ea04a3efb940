package store_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
)

func TestPostMessage_DoubleSubmitIsOneMessage(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	n := core.NewMessage{SessionID: session.ID, OwnerID: session.OwnerID, Text: "Once", ClientKey: "key-1"}
	ids := make([]core.MessageID, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			m, err := s.PostMessage(t.Context(), n)
			if err != nil {
				t.Errorf("PostMessage: %v", err)
			}
			ids[i] = m.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("ids = %v, want one", ids)
		}
	}
	if got := types(t, s, session.ID); len(got) != 3 {
		t.Errorf("log = %v, want one message_queued more", got)
	}
	other := storetest.Session(t, s, session.OwnerID)
	n.SessionID = other.ID
	if m, err := s.PostMessage(t.Context(), n); err != nil || m.ID == ids[0] {
		t.Errorf("the same key in another session: %s, %v, want a message of its own", m.ID, err)
	}
}

func TestPostMessage_Refusals(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	storetest.Finish(t, s, claim, "ok")
	n := core.NewMessage{SessionID: claim.Session.ID, OwnerID: claim.Session.OwnerID}

	n.Text = strings.Repeat("é", core.MaxMessageBytes/2) + "x"
	if _, err := s.PostMessage(t.Context(), n); core.CodeOf(err) != "message_too_large" || core.KindOf(err) != core.TooLarge {
		t.Errorf("one byte above 48 KiB: %v, want TooLarge message_too_large", err)
	}
	n.Text = strings.Repeat("é", core.MaxMessageBytes/2)
	if _, err := s.PostMessage(t.Context(), n); err != nil {
		t.Errorf("48 KiB: %v", err)
	}
	if _, err := s.RequestCancel(t.Context(), claim.Session.ID, "octo-dev"); err != nil {
		t.Fatal(err)
	}
	must(t, s.ArchiveSession(t.Context(), claim.Session.ID, true))
	n.Text = "Late"
	if _, err := s.PostMessage(t.Context(), n); core.CodeOf(err) != "session_archived" || core.KindOf(err) != core.Conflict {
		t.Errorf("to an archived session: %v, want Conflict session_archived", err)
	}
	n.SessionID = core.NewID[core.SessionID]()
	if _, err := s.PostMessage(t.Context(), n); core.KindOf(err) != core.NotFound {
		t.Errorf("to no session: %v, want NotFound", err)
	}
}

// The cap holds for one person over all sessions, also when everything is submitted at once.
func TestPostMessage_CapsUnfinishedMessagesOfOnePerson(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s)
	sessions := []core.ChatSession{storetest.Session(t, s, owner.ID), storetest.Session(t, s, owner.ID)}
	storetest.Session(t, s, storetest.User(t, s).ID) // somebody else's does not count
	const most = 5
	var mu sync.Mutex
	var posted, refused int
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			_, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: sessions[i%2].ID, OwnerID: owner.ID, Text: "x", MaxActive: most})
			mu.Lock()
			defer mu.Unlock()
			switch core.CodeOf(err) {
			case "too_many_active":
				refused++
			default:
				if err != nil {
					t.Errorf("PostMessage: %v", err)
				}
				posted++
			}
		})
	}
	all.Wait()
	if posted != most-2 || refused != 10-posted {
		t.Errorf("posted %d and refused %d, want %d (two were queued already)", posted, refused, most-2)
	}
	_, err := s.CreateSession(t.Context(), core.NewSession{Session: sessions[0], Text: "x", MaxActive: most})
	if core.CodeOf(err) != "too_many_active" {
		t.Errorf("CreateSession above the cap: %v", err)
	}
}

func TestEditAndRemove_TouchQueuedMessagesOnly(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	queued := post(t, s, claim.Session, "Frist")
	must(t, s.EditMessage(t.Context(), id, queued.ID, "First"))
	if m := message(t, s, queued); m.Text != "First" {
		t.Errorf("text = %q", m.Text)
	}
	wantTypes(t, s, id, "message_queued", "message_edited")
	must(t, s.RemoveMessage(t.Context(), id, queued.ID, "octo-dev"))
	m := message(t, s, queued)
	if m.State != core.Cancelled || m.FinishedAt.IsZero() || !m.StartedAt.IsZero() {
		t.Errorf("removed message = %+v", m)
	}
	wantTypes(t, s, id, "message_cancel_requested", "message_cancelled")

	for name, err := range map[string]error{
		"edit working":   s.EditMessage(t.Context(), id, claim.Message.ID, "x"),
		"remove working": s.RemoveMessage(t.Context(), id, claim.Message.ID, "octo-dev"),
		"edit removed":   s.EditMessage(t.Context(), id, queued.ID, "x"),
		"remove removed": s.RemoveMessage(t.Context(), id, queued.ID, "octo-dev"),
	} {
		if core.CodeOf(err) != "not_queued" || core.KindOf(err) != core.Conflict {
			t.Errorf("%s: %v, want Conflict not_queued", name, err)
		}
	}
	foreign := storetest.Session(t, s, storetest.User(t, s).ID)
	waiting := post(t, s, claim.Session, "Waiting")
	for name, err := range map[string]error{
		"edit":   s.EditMessage(t.Context(), foreign.ID, waiting.ID, "x"),
		"remove": s.RemoveMessage(t.Context(), foreign.ID, waiting.ID, "x"),
	} {
		if core.KindOf(err) != core.NotFound {
			t.Errorf("%s through another session: %v, want NotFound", name, err)
		}
	}
	if err := s.EditMessage(t.Context(), id, waiting.ID, strings.Repeat("x", core.MaxMessageBytes+1)); core.CodeOf(err) != "message_too_large" {
		t.Errorf("edit to more than 48 KiB: %v", err)
	}
}

func TestRequestCancel(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	queued := post(t, s, claim.Session, "Waits")
	for range 2 { // asking twice is one request
		m, err := s.RequestCancel(t.Context(), id, "octo-dev")
		if err != nil || m.ID != claim.Message.ID || m.State != core.Working || m.CancelRequestedAt.IsZero() {
			t.Fatalf("RequestCancel = %+v, %v, want the working message with a request", m, err)
		}
	}
	wantTypes(t, s, id, "message_queued", "message_cancel_requested")
	must(t, s.FinishMessage(t.Context(), claim.Lease, core.Finish{MessageID: claim.Message.ID, State: core.Cancelled, Answer: "So far"}))
	wantTypes(t, s, id, "message_cancelled")

	m, err := s.RequestCancel(t.Context(), id, "octo-dev")
	if err != nil || m.ID != queued.ID || m.State != core.Cancelled {
		t.Errorf("RequestCancel = %+v, %v, want the queued message, ended", m, err)
	}
	if _, err := s.RequestCancel(t.Context(), id, "octo-dev"); core.CodeOf(err) != "nothing_to_cancel" {
		t.Errorf("with nothing active: %v, want nothing_to_cancel", err)
	}
	if _, err := s.RequestCancel(t.Context(), core.NewID[core.SessionID](), "x"); core.KindOf(err) != core.NotFound {
		t.Errorf("of no session: %v", err)
	}
}

// Answers follow their questions though other questions were queued in between; what was taken
// back before it began never reaches the model.
func TestConversation_IsInTurns(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	first := storetest.Working(t, s)
	id := first.Session.ID
	second, removed, third := post(t, s, first.Session, "Two"), post(t, s, first.Session, "Removed"), post(t, s, first.Session, "Three")
	must(t, s.RemoveMessage(t.Context(), id, removed.ID, "octo-dev"))
	storetest.Finish(t, s, first, "Answer one")
	claim := storetest.Claim(t, s)
	must(t, s.FailQueued(t.Context(), claim.Lease, second.ID, "sandbox_lost", "Gone."))
	must(t, s.Release(t.Context(), claim.Lease))

	got, err := s.Conversation(t.Context(), id, third.ID, 10)
	must(t, err)
	want := []core.TurnText{{Role: core.RoleUser, Text: "Add a health check"}, {Role: core.RoleAssistant, Text: "Answer one"}, {Role: core.RoleUser, Text: "Two"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Conversation (-want +got):\n%s", diff)
	}
	if got, err = s.Conversation(t.Context(), id, third.ID, 2); err != nil || cmp.Diff(want[1:], got) != "" {
		t.Errorf("the last two = %v, %v", got, err)
	}
	if got, err = s.Conversation(t.Context(), id, first.Message.ID, 10); err != nil || len(got) != 0 {
		t.Errorf("before the first message = %v, %v, want nothing", got, err)
	}
}

func TestMessage_OfAnotherSessionIsNotFound(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	other := storetest.Session(t, s, storetest.User(t, s).ID)
	for _, id := range []core.MessageID{claim.Message.ID, core.NewID[core.MessageID](), "", "no-uuid"} {
		if _, err := s.Message(t.Context(), other.ID, id); core.KindOf(err) != core.NotFound {
			t.Errorf("Message(%q): %v, want NotFound", id, err)
		}
	}
}

// A turn whose worker was gone before it wrote the summary is told until one is written; a message that
// never started is no turn.
func TestUnsummarised_IsWhatEndedWithoutASummary(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	want := func(ended ...core.EndedTurn) {
		t.Helper()
		got, err := s.Unsummarised(t.Context(), id)
		if diff := cmp.Diff(ended, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	want() // it works
	must(t, s.SetPartial(t.Context(), claim.Lease, claim.Message.ID, "I had begun"))
	storetest.Expire(t, s, id)
	if n, err := s.Reap(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	queued, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: id, OwnerID: claim.Session.OwnerID, Text: "never mind", ClientKey: "k"})
	must(t, err)
	must(t, s.RemoveMessage(t.Context(), id, queued.ID, "octo"))
	want(core.EndedTurn{Request: claim.Message.Text, Finish: core.Finish{
		MessageID: claim.Message.ID, State: core.Failed, FailureCode: "worker_lost", Answer: "I had begun",
	}})
	_, err = s.PostMessage(t.Context(), core.NewMessage{SessionID: id, OwnerID: claim.Session.OwnerID, Text: "go on", ClientKey: "k2"})
	must(t, err)
	next, err := s.Claim(t.Context(), storetest.Worker(t, s, "host-1"), storetest.Lease, core.Budgets{})
	must(t, err)
	must(t, s.SaveSummary(t.Context(), next.Lease, claim.Message.ID, core.Compaction{Summary: "- It was lost."}))
	want()
}
