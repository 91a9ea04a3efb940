package store_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
)

func TestFinishMessage_WritesTheWholeEnd(t *testing.T) {
	t.Parallel()
	cost := 0.0125
	result := core.TurnResult{
		Model: "vendor/model-1", PromptHash: "abc", Steps: 7,
		Usage:   core.Usage{PromptTokens: 1000, CachedTokens: 400, CompletionTokens: 50, CostUSD: &cost},
		Context: core.ContextUse{Tokens: 1000, Window: 128_000},
	}
	changed := []core.ChangedFile{{Path: "a.go", Status: "modified", Additions: 3, Deletions: 1}, {Path: "b.go", Status: "added", Additions: 4}}
	for _, c := range []struct {
		name       string
		finish     core.Finish
		wantEvent  core.EventType
		wantAnswer bool
		wantCode   string
	}{
		{"completed", core.Finish{State: core.Completed, Answer: "Done.", Result: result, Changed: changed}, "message_completed", true, ""},
		{"completed without words", core.Finish{State: core.Completed, Result: result, Changed: changed}, "message_completed", true, ""},
		{"failed", core.Finish{State: core.Failed, FailureCode: "model_timeout", FailureText: "Slow.", Result: result}, "message_failed", false, "model_timeout"},
		{"failed midway", core.Finish{State: core.Failed, Answer: "I had", FailureCode: "model_timeout", Result: result}, "message_failed", true, "model_timeout"},
		{"failed without a code", core.Finish{State: core.Failed, Result: result}, "message_failed", false, "internal"},
		{"cancelled", core.Finish{State: core.Cancelled, Answer: "I had", FailureCode: "ignored", Result: result}, "message_cancelled", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			claim := storetest.Working(t, s)
			must(t, s.SetPartial(t.Context(), claim.Lease, claim.Message.ID, "growing"))
			c.finish.MessageID = claim.Message.ID
			must(t, s.FinishMessage(t.Context(), claim.Lease, c.finish))

			m := message(t, s, *claim.Message)
			if m.State != c.finish.State || m.FailureCode != c.wantCode || m.PartialText != "" || m.FinishedAt.IsZero() ||
				m.Model != result.Model || m.PromptHash != result.PromptHash || m.Steps != result.Steps {
				t.Errorf("message = %+v", m)
			}
			if diff := cmp.Diff(result.Usage, m.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
			tl, err := s.Timeline(t.Context(), claim.Session.ID, 0, 1)
			must(t, err)
			last := tl.Events[0]
			if last.Type != c.wantEvent || last.MessageID != m.ID || last.Producer != core.ByPlatform {
				t.Errorf("last event = %+v, want %s", last, c.wantEvent)
			}
			var payload struct {
				AnswerID                    core.MessageID `json:"answer_id"`
				Files, Additions, Deletions int
				Context                     core.ContextUse
			}
			must(t, json.Unmarshal(last.Payload, &payload))
			if c.wantAnswer != (len(tl.Messages) == 2) || c.wantAnswer && (tl.Messages[1].ID != payload.AnswerID || tl.Messages[1].Text != c.finish.Answer || tl.Messages[1].ReplyTo != m.ID) {
				t.Errorf("messages = %+v, event %s", tl.Messages, last.Payload)
			}
			if c.finish.State == core.Completed && (payload.Files != 2 || payload.Additions != 7 || payload.Deletions != 1) {
				t.Errorf("event %s, want the totals of the changed files", last.Payload)
			}
			if payload.Context != result.Context {
				t.Errorf("event %s, want %+v as the context", last.Payload, result.Context)
			}
			if err := s.FinishMessage(t.Context(), claim.Lease, c.finish); !errors.Is(err, core.ErrLeaseLost) {
				t.Errorf("finishing twice: %v, want ErrLeaseLost", err)
			}
		})
	}
}

func TestFinishMessage_RefusesAStateThatIsNoEnd(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	for _, state := range []core.MessageState{core.Queued, core.Working, "done"} {
		if err := s.FinishMessage(t.Context(), claim.Lease, core.Finish{MessageID: claim.Message.ID, State: state}); err == nil {
			t.Errorf("FinishMessage to %q succeeded", state)
		}
	}
	if m := message(t, s, *claim.Message); m.State != core.Working {
		t.Errorf("state = %s", m.State)
	}
}

func TestMessages_ATerminalStateStays(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	storetest.Finish(t, s, claim, "ok")
	err := inTxExec(t, s, `UPDATE messages SET state = 'queued', finished_at = NULL WHERE id = $1`, claim.Message.ID)
	if core.CodeOf(err) != "message_finished" {
		t.Errorf("leaving a terminal state by hand: %v, want message_finished", err)
	}
}

func TestFailQueued_EndsWhatCouldNotBeginOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	claim := storetest.Claim(t, s)
	must(t, s.FailQueued(t.Context(), claim.Lease, claim.Message.ID, "image_missing", "No image."))
	if m := message(t, s, *claim.Message); m.State != core.Failed || m.FailureCode != "image_missing" || m.FailureText != "No image." || m.FinishedAt.IsZero() {
		t.Errorf("message = %+v", m)
	}
	wantTypes(t, s, session.ID, "message_failed")
	if err := s.FailQueued(t.Context(), claim.Lease, claim.Message.ID, "x", "y"); core.CodeOf(err) != "not_queued" {
		t.Errorf("ending it twice: %v, want not_queued", err)
	}
}

func TestSetPartial_IsNoEventAndEndsWithTheMessage(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	before := types(t, s, claim.Session.ID)
	must(t, s.SetPartial(t.Context(), claim.Lease, claim.Message.ID, "a\x00b\xff"))
	if m := message(t, s, *claim.Message); m.PartialText != "a\uFFFDb\uFFFD" {
		t.Errorf("partial text = %q, want what Postgres can hold", m.PartialText)
	}
	if diff := cmp.Diff(before, types(t, s, claim.Session.ID)); diff != "" {
		t.Errorf("SetPartial changed the log:\n%s", diff)
	}
	must(t, s.FinishMessage(t.Context(), claim.Lease, core.Finish{MessageID: claim.Message.ID, State: core.Completed, Answer: "x"}))
	if err := s.SetPartial(t.Context(), claim.Lease, claim.Message.ID, "late"); !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("SetPartial after the end: %v, want ErrLeaseLost", err)
	}
}
