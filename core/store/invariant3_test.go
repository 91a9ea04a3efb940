package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

// change is one use of the store that writes state and events. prepare makes what it needs through
// a healthy connection; run is cut.
type change struct {
	name    string
	prepare func(t *testing.T, s *store.Store) core.Claim
	run     func(ctx context.Context, s *store.Store, c core.Claim) error
}

func queuedSession(t *testing.T, s *store.Store) core.Claim {
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	tl, err := s.Timeline(t.Context(), session.ID, 0, 0)
	must(t, err)
	return core.Claim{Session: session, Message: &tl.Messages[0]}
}

func claimed(t *testing.T, s *store.Store) core.Claim {
	storetest.Session(t, s, storetest.User(t, s).ID)
	return storetest.Claim(t, s)
}

func withSandbox(t *testing.T, s *store.Store) core.Claim {
	c := working(t, s)
	must(t, s.SaveSandbox(t.Context(), c.Lease, sandboxOf(c, core.SandboxReady), core.SandboxChanged{State: core.SandboxReady}))
	must(t, s.SetPartial(t.Context(), c.Lease, c.Message.ID, "So far"))
	return c
}

func working(t *testing.T, s *store.Store) core.Claim { return storetest.Working(t, s) }

func finished(t *testing.T, s *store.Store) core.Claim {
	c := working(t, s)
	must(t, s.SaveSandbox(t.Context(), c.Lease, sandboxOf(c, core.SandboxReady), core.SandboxChanged{State: core.SandboxReady}))
	storetest.Finish(t, s, c, "ok")
	return c
}

func withoutMoney(t *testing.T, s *store.Store) core.Claim {
	c := queuedSession(t, s)
	spend(t, s, 0.2)
	follow(t, s, c.Session, "Too late")
	return c
}

func requested(t *testing.T, s *store.Store) core.Claim {
	c := finished(t, s)
	p, err := s.RequestPublish(t.Context(), core.Publication{SessionID: c.Session.ID, RequestedBy: c.Owner.ID, Title: "T"}, core.PathChoices{"a.bin": true})
	must(t, err)
	c.Publication = &p
	return c
}

func published(t *testing.T, s *store.Store) core.Claim {
	requested(t, s)
	return storetest.Claim(t, s)
}

func expired(prepare func(*testing.T, *store.Store) core.Claim) func(*testing.T, *store.Store) core.Claim {
	return func(t *testing.T, s *store.Store) core.Claim {
		c := prepare(t, s)
		storetest.Expire(t, s, c.Session.ID)
		return c
	}
}

func sandboxOf(c core.Claim, state core.SandboxState) core.Sandbox {
	return core.Sandbox{ID: core.SandboxID(c.Session.ID), SessionID: c.Session.ID, State: state, Host: "host-1", Generation: 1}
}

func changes() []change {
	return []change{
		{"CreateSession", queuedSession, func(ctx context.Context, s *store.Store, c core.Claim) error {
			_, err := s.CreateSession(ctx, newSession(c.Session.OwnerID, "T", "key"))
			return err
		}},
		{"PostMessage", queuedSession, func(ctx context.Context, s *store.Store, c core.Claim) error {
			_, err := s.PostMessage(ctx, core.NewMessage{SessionID: c.Session.ID, OwnerID: c.Session.OwnerID, Text: "x", ClientKey: "k", MaxActive: 9})
			return err
		}},
		{"EditMessage", queuedSession, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.EditMessage(ctx, c.Session.ID, c.Message.ID, "edited")
		}},
		{"RemoveMessage", queuedSession, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.RemoveMessage(ctx, c.Session.ID, c.Message.ID, "octo-dev")
		}},
		{"RequestCancel", working, func(ctx context.Context, s *store.Store, c core.Claim) error {
			_, err := s.RequestCancel(ctx, c.Session.ID, "octo-dev")
			return err
		}},
		{"RenameSession", queuedSession, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.RenameSession(ctx, c.Session.ID, "Renamed")
		}},
		{"ArchiveSession", finished, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.ArchiveSession(ctx, c.Session.ID, true)
		}},
		{"Claim", queuedSession, func(ctx context.Context, s *store.Store, _ core.Claim) error {
			_, err := s.Claim(ctx, core.Worker{ID: core.NewID[core.WorkerID](), Host: "host-1"}, storetest.Lease, core.Budgets{})
			return err
		}},
		{"Claim without money", withoutMoney, func(ctx context.Context, s *store.Store, _ core.Claim) error {
			_, err := s.Claim(ctx, core.Worker{ID: core.NewID[core.WorkerID](), Host: "host-1"}, storetest.Lease, core.Budgets{SessionUSD: 0.1})
			if errors.Is(err, core.ErrNoWork) {
				return nil
			}
			return err
		}},
		{"StartMessage", claimed, func(ctx context.Context, s *store.Store, c core.Claim) error {
			_, err := s.StartMessage(ctx, c.Lease, c.Message.ID, "m")
			return err
		}},
		{"FailQueued", claimed, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.FailQueued(ctx, c.Lease, c.Message.ID, "image_missing", "x")
		}},
		{"Append", working, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.Append(ctx, c.Lease, core.ByAgent, c.Message.ID, core.CommandStarted{Name: "a"}, core.CommandFinished{Name: "a"})
		}},
		{"SaveArtifact", working, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.SaveArtifact(ctx, c.Lease, core.Artifact{ID: core.NewID[core.ArtifactID](), Kind: core.ArtifactOutput}, core.AgentToolResult{})
		}},
		{"SaveDiff", working, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.SaveDiff(ctx, c.Lease, core.Artifact{ID: core.NewID[core.ArtifactID]()}, nil)
		}},
		{"SaveCheckpoint", working, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.SaveCheckpoint(ctx, c.Lease, core.Checkpoint{ID: core.NewID[core.CheckpointID](), Info: core.CheckpointInfo{BaseSHA: storetest.BaseSHA}})
		}},
		{"SaveSummary", working, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.SaveSummary(ctx, c.Lease, c.Message.ID, core.Compaction{Summary: "They did it"})
		}},
		{"SaveSandbox", working, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.SaveSandbox(ctx, c.Lease, sandboxOf(c, core.SandboxCreating), core.SandboxChanged{State: core.SandboxCreating})
		}},
		{"MarkSandbox", finished, func(ctx context.Context, s *store.Store, c core.Claim) error {
			_, err := s.MarkSandbox(ctx, sandboxOf(c, core.SandboxStopped), core.SandboxChanged{State: core.SandboxStopped})
			return err
		}},
		{"FinishMessage", withSandbox, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.FinishMessage(ctx, c.Lease, core.Finish{MessageID: c.Message.ID, State: core.Completed, Answer: "ok"})
		}},
		{"RequestPublish", finished, func(ctx context.Context, s *store.Store, c core.Claim) error {
			_, err := s.RequestPublish(ctx, core.Publication{SessionID: c.Session.ID, Title: "T", ClientKey: "k"}, nil)
			return err
		}},
		{"CancelPublication", requested, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.CancelPublication(ctx, c.Session.ID, c.Publication.ID)
		}},
		{"CancelPublication of a worker's", published, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.CancelPublication(ctx, c.Session.ID, c.Publication.ID)
		}},
		{"SavePullRequest", published, func(ctx context.Context, s *store.Store, c core.Claim) error {
			return s.SavePullRequest(ctx, c.Lease, core.PullRequest{Number: 1, State: core.PullClosed}, core.PullRequestMoved{State: core.PullClosed, Number: 1})
		}},
		{"SavePublication", published, func(ctx context.Context, s *store.Store, c core.Claim) error {
			p := *c.Publication
			p.Step = core.PublishCommitted
			return s.SavePublication(ctx, c.Lease, p, core.PublicationChanged{Type: core.EventPublicationCommitted})
		}},
		{"FinishPublication", published, func(ctx context.Context, s *store.Store, c core.Claim) error {
			p := *c.Publication
			p.Step, p.Outcome = core.PublishDone, core.PublishOpened
			return s.FinishPublication(ctx, c.Lease, p, core.PullRequest{Number: 1, State: "open"}, core.PullRequestChanged{Opened: true})
		}},
		{"Reap of a working message", expired(withSandbox), func(ctx context.Context, s *store.Store, _ core.Claim) error {
			_, err := s.Reap(ctx)
			return err
		}},
		{"Reap of a preparation", expired(claimed), func(ctx context.Context, s *store.Store, _ core.Claim) error {
			_, err := s.Reap(ctx)
			return err
		}},
	}
}

// Each use of the store is killed at each of its statements, once before Postgres gets it and once
// before we get the answer. Afterwards what the tables say and what the log tells are the same.
func TestInvariant3_StateAndEventCommitTogether(t *testing.T) {
	t.Parallel()
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, keys := storetest.NewURL(t), storetest.Keys(t)
			healthy := storetest.Open(t, url, keys)
			proxy, through := newFaultProxy(t, url)

			run := func(at int, mode cutMode) (statements int) {
				claim := c.prepare(t, healthy)
				faulty := storetest.Open(t, through, keys)
				defer faulty.Close()
				proxy.arm(at, mode)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				err := c.run(ctx, faulty, claim)
				if at == 0 && err != nil {
					t.Fatalf("uncut: %v", err)
				}
				if ctx.Err() != nil {
					t.Fatalf("cut %s %d: it hung", mode, at)
				}
				if err != nil && core.CodeOf(err) != "database_unavailable" {
					t.Errorf("cut %s %d: %v, want database_unavailable", mode, at, err)
				}
				statements = proxy.arm(0, mode)
				if d := disagreement(t, healthy); d != "" {
					t.Fatalf("cut %s %d (answer: %v):\n%s", mode, at, err, d)
				}
				storetest.Exec(t, healthy, `DELETE FROM chat_sessions`) // the next claim must find its own
				return statements
			}
			statements := run(0, cutBefore)
			if statements == 0 {
				t.Fatal("the proxy saw no statement")
			}
			for at := 1; at <= statements; at++ {
				for _, mode := range []cutMode{cutBefore, cutAfter} {
					run(at, mode)
				}
			}
		})
	}
}

// The check itself must see when the two part.
func TestInvariant3_TheCheckSeesADisagreement(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"a state without its event": `UPDATE messages SET state = 'working', started_at = now() WHERE state = 'queued'`,
		"an event without its state": `WITH s AS (UPDATE chat_sessions SET last_sequence = last_sequence + 1 RETURNING id, last_sequence)
			INSERT INTO events (session_id, sequence, type, producer, payload) SELECT id, last_sequence, 'sandbox_ready', 'platform', '{}' FROM s`,
		"a number without its event": `UPDATE chat_sessions SET last_sequence = last_sequence + 1`,
		"a title without its event":  `UPDATE chat_sessions SET title = 'Renamed'`,
	} {
		s := storetest.New(t)
		queuedSession(t, s)
		if d := disagreement(t, s); d != "" {
			t.Fatalf("before %s: %s", name, d)
		}
		storetest.Exec(t, s, sql)
		if disagreement(t, s) == "" {
			t.Errorf("%s went unseen", name)
		}
	}
}

// told is what a session's log says its records are.
type told struct {
	Messages    map[core.MessageID]core.MessageState
	Cancels     map[core.MessageID]bool
	Answers     int
	Losses      int
	Sandbox     core.SandboxState
	Publication core.PublishStep
	PullRequest bool
	Cancelled   bool // somebody asked for the publication's end
	Artifacts   int
	Checkpoints int
	Title       string
	Archived    bool
	Summary     int
	Edited      bool
	Last        int64
}

// disagreement compares every session's log with its records; "" when they are the same.
func disagreement(t *testing.T, s *store.Store) string {
	t.Helper()
	var problems strings.Builder
	rows, err := s.Sessions(t.Context(), core.SessionFilter{Limit: 1000})
	must(t, err)
	archived, err := s.Sessions(t.Context(), core.SessionFilter{Limit: 1000, Archived: true})
	must(t, err)
	for _, row := range append(rows, archived...) {
		tl, err := s.Timeline(t.Context(), row.Session.ID, 0, 0)
		must(t, err)
		if diff := cmp.Diff(fromLog(t, tl.Events), fromRecords(t, s, tl)); diff != "" {
			fmt.Fprintf(&problems, "session %s (-log +records):\n%s", row.Session.ID, diff)
		}
	}
	return problems.String()
}

func fromLog(t *testing.T, events []core.Event) told {
	t.Helper()
	w := told{Messages: map[core.MessageID]core.MessageState{}, Cancels: map[core.MessageID]bool{}, Title: "Add a health check"}
	for i, e := range events {
		if e.Sequence != int64(i)+1 {
			t.Fatalf("event %d follows %d", e.Sequence, i)
		}
		w.Last = e.Sequence
		var p struct {
			AnswerID core.MessageID `json:"answer_id"`
			Title    string         `json:"title"`
			Bytes    int            `json:"bytes"`
		}
		must(t, json.Unmarshal(e.Payload, &p))
		if p.AnswerID != "" {
			w.Answers++
		}
		if state, ok := strings.CutPrefix(string(e.Type), "sandbox_"); ok {
			w.Sandbox = core.SandboxState(state)
		}
		switch e.Type {
		case "message_queued":
			w.Messages[e.MessageID] = core.Queued
		case "message_working":
			w.Messages[e.MessageID] = core.Working
		case "message_completed":
			w.Messages[e.MessageID] = core.Completed
		case "message_failed":
			w.Messages[e.MessageID] = core.Failed
		case "message_cancelled":
			w.Messages[e.MessageID] = core.Cancelled
		case "message_cancel_requested":
			w.Cancels[e.MessageID] = true
		case "message_requeued":
			w.Losses++
		case "message_edited":
			w.Edited = true
		case "session_renamed":
			w.Title = p.Title
		case "session_archived":
			w.Archived = true
		case "summary_updated":
			w.Summary = p.Bytes
		case "artifact_created":
			w.Artifacts++
		case "checkpoint_saved":
			w.Checkpoints++
		case core.EventPublicationRequested:
			w.Publication = core.PublishRequested
		case core.EventPublicationCommitted:
			w.Publication = core.PublishCommitted
		case core.EventPublicationFailed:
			w.Publication = core.PublishFailed
		case core.EventPublicationCancel:
			w.Cancelled = true
		case "pull_request_closed":
			w.PullRequest = true
		case "pull_request_opened":
			w.Publication, w.PullRequest = core.PublishDone, true
		default: // tells of no state
		}
	}
	return w
}

func fromRecords(t *testing.T, s *store.Store, tl core.Timeline) told {
	t.Helper()
	id := tl.Session.ID
	w := told{
		Messages: map[core.MessageID]core.MessageState{}, Cancels: map[core.MessageID]bool{}, PullRequest: tl.PullRequest != nil,
		Title: tl.Session.Title, Archived: tl.Session.Archived, Summary: len(tl.Session.Summary), Last: tl.Session.LastSequence,
		Artifacts:   count(t, s, `SELECT count(*) FROM artifacts WHERE session_id = $1`, id),
		Checkpoints: count(t, s, `SELECT count(*) FROM checkpoints WHERE session_id = $1`, id),
	}
	if w.Title == "T" { // made by CreateSession itself
		w.Title = "Add a health check"
	}
	for _, m := range tl.Messages {
		if m.Role == core.RoleAssistant {
			w.Answers++
			continue
		}
		w.Messages[m.ID] = m.State
		w.Losses += m.Preparations
		w.Edited = w.Edited || m.Text == "edited"
		if !m.CancelRequestedAt.IsZero() {
			w.Cancels[m.ID] = true
		}
	}
	if tl.Sandbox != nil {
		w.Sandbox = tl.Sandbox.State
	}
	if tl.Publication != nil {
		w.Publication, w.Cancelled = tl.Publication.Step, !tl.Publication.CancelRequestedAt.IsZero()
	}
	return w
}

// A commit whose answer was lost is an error for the caller, who may ask again under the same key.
func TestInvariant3_ALostAnswerIsMadeGoodByTheSameKey(t *testing.T) {
	t.Parallel()
	url, keys := storetest.NewURL(t), storetest.Keys(t)
	healthy := storetest.Open(t, url, keys)
	proxy, through := newFaultProxy(t, url)
	session := storetest.Session(t, healthy, storetest.User(t, healthy).ID)
	n := core.NewMessage{SessionID: session.ID, OwnerID: session.OwnerID, Text: "Once", ClientKey: "k"}

	faulty := storetest.Open(t, through, keys)
	for at := 1; ; at++ {
		proxy.arm(at, cutAfter)
		_, err := faulty.PostMessage(t.Context(), n)
		if err == nil {
			break
		}
		if errors.Is(err, context.DeadlineExceeded) || at > 100 {
			t.Fatalf("cut at %d: %v", at, err)
		}
	}
	if n := count(t, healthy, `SELECT count(*) FROM messages WHERE client_key = 'k'`); n != 1 {
		t.Errorf("%d messages after many tries under one key, want 1", n)
	}
}
