package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

// Writers of one session race; a reader that always reads from where it stands misses nothing.
func TestAppend_CommitOrderIsSequenceOrder(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 40
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	start := int64(len(types(t, s, id)))
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				var err error
				if i%2 == 0 {
					err = s.Append(t.Context(), claim.Lease, core.ByAgent, claim.Message.ID, core.CommandStarted{Name: fmt.Sprint(w, i)})
				} else {
					err = s.InTx(t.Context(), func(tx *store.Tx) error {
						return tx.Append(t.Context(), id, core.ByPlatform, "", core.CommandStarted{Name: fmt.Sprint(w, i)})
					})
				}
				if err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	after := start
	seen := map[string]bool{}
	for len(seen) < writers*each && !t.Failed() {
		events, err := s.EventsSince(t.Context(), id, after, 7)
		must(t, err)
		for _, e := range events {
			if e.Sequence != after+1 {
				t.Fatalf("read %d after %d", e.Sequence, after)
			}
			after = e.Sequence
			seen[string(e.Payload)] = true
		}
	}
	all.Wait()
	last, err := s.LastSequences(t.Context(), []core.SessionID{id, core.NewID[core.SessionID]()})
	if diff := cmp.Diff(map[core.SessionID]int64{id: start + writers*each}, last); err != nil || diff != "" {
		t.Errorf("LastSequences: %v (-want +got):\n%s", err, diff)
	}
}

func TestAppend_SeveralEventsAreOneStepInOrder(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	must(t, s.Append(t.Context(), claim.Lease, core.ByAgent, claim.Message.ID,
		core.AgentToolCall{CallID: "1", Tool: "bash"}, core.PolicyRefused{CallID: "1", Rule: "git_push"}, core.AgentToolResult{CallID: "1", Outcome: "refused"}))
	must(t, s.Append(t.Context(), claim.Lease, core.ByAgent, claim.Message.ID)) // nothing to add is fine
	wantTypes(t, s, claim.Session.ID, "message_working", "agent_tool_call", "policy_refused", "agent_tool_result")
	events, err := s.EventsSince(t.Context(), claim.Session.ID, 4, 1)
	if err != nil || len(events) != 1 || events[0].Sequence != 5 || events[0].Producer != core.ByAgent || events[0].MessageID != claim.Message.ID {
		t.Errorf("EventsSince(4, limit 1) = %+v, %v", events, err)
	}
	foreign := storetest.Session(t, s, storetest.User(t, s).ID)
	if err := s.Append(t.Context(), claim.Lease, core.ByAgent, core.NewID[core.MessageID](), core.CommandStarted{}); err == nil {
		t.Error("an event of a message that does not exist was taken")
	}
	err = s.InTx(t.Context(), func(tx *store.Tx) error {
		return tx.Append(t.Context(), foreign.ID, core.ByAgent, claim.Message.ID, core.CommandStarted{})
	})
	if err == nil {
		t.Error("an event of another session's message was taken")
	}
}

// What models and tools say is stored, whatever bytes it holds.
func TestAppend_TakesTextThatPostgresDoesNot(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	must(t, s.Append(t.Context(), claim.Lease, core.ByAgent, claim.Message.ID,
		core.AgentToolCall{Tool: "bash", Object: "nul \x00 invalid \xff escaped \\u0000 back\\\x00slash", Snippet: "\u2028 ok"}))
	events, err := s.EventsSince(t.Context(), claim.Session.ID, 4, 0)
	must(t, err)
	var got core.AgentToolCall
	must(t, json.Unmarshal(events[0].Payload, &got))
	if want := "nul \uFFFD invalid \uFFFD escaped \\u0000 back\\\uFFFDslash"; got.Object != want {
		t.Errorf("object = %q, want %q", got.Object, want)
	}
	if got.Snippet != "\u2028 ok" {
		t.Errorf("snippet = %q", got.Snippet)
	}
}

func TestEvents_TheLogIsAppendOnlyUntilItsSessionGoes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	must(t, s.SaveDiff(t.Context(), claim.Lease, core.Artifact{ID: core.NewID[core.ArtifactID](), MessageID: claim.Message.ID}, nil))
	for _, sql := range []string{
		`UPDATE events SET type = 'x'`,
		`DELETE FROM events`,
		`TRUNCATE events`,
		`TRUNCATE chat_sessions CASCADE`,
	} {
		if err := inTxExec(t, s, sql); err == nil {
			t.Errorf("%s was allowed", sql)
		}
	}
	if got := types(t, s, claim.Session.ID); len(got) != 6 {
		t.Errorf("log = %v", got)
	}
	must(t, inTxExec(t, s, `DELETE FROM chat_sessions WHERE id = $1`, claim.Session.ID))
	for _, table := range []string{"events", "messages", "artifacts"} {
		var left int
		must(t, s.InTx(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&left)
		}))
		if left != 0 {
			t.Errorf("%d rows of %s outlive their session", left, table)
		}
	}
}

func TestActivity_IsTheLastToolCallsOldestFirst(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	for _, e := range []core.AgentToolResult{
		{Tool: "ls", Object: ".", Outcome: "ok"},
		{Tool: "edit", Object: "src/a.ts", Outcome: "ok", Detail: "+3 −1"},
		{Tool: "bash", Object: "make", Outcome: "error", Detail: "exit 2"},
	} {
		must(t, s.Append(t.Context(), claim.Lease, core.ByAgent, claim.Message.ID, core.AgentToolCall{Tool: e.Tool}, e))
	}
	got, err := s.Activity(t.Context(), claim.Session.ID, 2)
	want := []core.ToolActivity{{Tool: "edit", Object: "src/a.ts", Outcome: "ok +3 −1"}, {Tool: "bash", Object: "make", Outcome: "error exit 2"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Activity: %v (-want +got):\n%s", err, diff)
	}
}

func TestInTx_AnErrorUndoesEverything(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	before := types(t, s, claim.Session.ID)
	broken := errors.New("broken")
	err := s.InTx(t.Context(), func(tx *store.Tx) error {
		if err := tx.Append(t.Context(), claim.Session.ID, core.ByPlatform, "", core.CommandStarted{Name: "x"}); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("InTx: %v, want the function's error", err)
	}
	if diff := cmp.Diff(before, types(t, s, claim.Session.ID)); diff != "" {
		t.Errorf("the log changed:\n%s", diff)
	}
}
