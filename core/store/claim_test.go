package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

// noWork fails the test unless there is nothing to claim.
func noWork(t *testing.T, s *store.Store, why string) {
	t.Helper()
	claim, err := s.Claim(t.Context(), storetest.Worker(t, s, "host-1"), storetest.Lease, core.Budgets{})
	if !errors.Is(err, core.ErrNoWork) {
		t.Fatalf("Claim %s: session %s, err = %v, want ErrNoWork", why, claim.Session.ID, err)
	}
}

func post(t *testing.T, s *store.Store, session core.ChatSession, text string) core.Message {
	t.Helper()
	m, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: session.ID, OwnerID: session.OwnerID, Text: text})
	if err != nil {
		t.Fatalf("post: %v", err)
	}
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func message(t *testing.T, s *store.Store, m core.Message) core.Message {
	t.Helper()
	got, err := s.Message(t.Context(), m.SessionID, m.ID)
	must(t, err)
	return got
}

// types are the session's event types in order.
func types(t *testing.T, s *store.Store, id core.SessionID) []core.EventType {
	t.Helper()
	events, err := s.EventsSince(t.Context(), id, 0, 0)
	must(t, err)
	var list []core.EventType
	for i, e := range events {
		if e.Sequence != int64(i)+1 {
			t.Fatalf("event %d has sequence %d", i+1, e.Sequence)
		}
		list = append(list, e.Type)
	}
	return list
}

// lastTypes is the end of the session's log.
func lastTypes(t *testing.T, s *store.Store, id core.SessionID, n int) []core.EventType {
	t.Helper()
	all := types(t, s, id)
	return all[max(0, len(all)-n):]
}

func wantTypes(t *testing.T, s *store.Store, id core.SessionID, want ...core.EventType) {
	t.Helper()
	if diff := cmp.Diff(want, lastTypes(t, s, id, len(want))); diff != "" {
		t.Errorf("end of the log (-want +got):\n%s", diff)
	}
}

// Fifty workers race for sessions with several messages each, from claim to release, over and over.
func TestInvariant5_OneWorkingMessageUnder50Workers(t *testing.T) {
	t.Parallel()
	const workers, sessions, each = 50, 4, 6
	url := storetest.NewURL(t)
	s := storetest.Open(t, url+" pool_max_conns=60", storetest.Keys(t))
	owner := storetest.User(t, s)
	for range sessions {
		session := storetest.Session(t, s, owner.ID)
		for range each - 1 {
			post(t, s, session, "And another one")
		}
	}
	var mu sync.Mutex
	working := map[core.SessionID]core.MessageID{}
	runs := map[core.MessageID]int{}
	enter := func(c core.Claim) {
		mu.Lock()
		defer mu.Unlock()
		if other, busy := working[c.Session.ID]; busy {
			t.Errorf("session %s works on %s and %s at once", c.Session.ID, other, c.Message.ID)
		}
		working[c.Session.ID] = c.Message.ID
		runs[c.Message.ID]++
	}
	leave := func(c core.Claim) {
		mu.Lock()
		defer mu.Unlock()
		delete(working, c.Session.ID)
	}
	left := func() int {
		mu.Lock()
		defer mu.Unlock()
		return sessions*each - len(runs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for range workers {
		worker := storetest.Worker(t, s, "host-1")
		all.Go(func() {
			for left() > 0 {
				claim, err := s.Claim(ctx, worker, storetest.Lease, core.Budgets{})
				if errors.Is(err, core.ErrNoWork) {
					continue
				}
				if err != nil {
					t.Errorf("Claim: %v", err)
					return
				}
				enter(claim)
				if _, err := s.StartMessage(ctx, claim.Lease, claim.Message.ID, "m"); err != nil {
					t.Errorf("StartMessage: %v", err)
				}
				if err := s.FinishMessage(ctx, claim.Lease, core.Finish{MessageID: claim.Message.ID, State: core.Completed, Answer: "ok"}); err != nil {
					t.Errorf("FinishMessage: %v", err)
				}
				leave(claim)
				if err := s.Release(ctx, claim.Lease); err != nil {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}
	all.Wait()
	for id, n := range runs {
		if n != 1 {
			t.Errorf("message %s was served %d times", id, n)
		}
	}
	if len(runs) != sessions*each {
		t.Errorf("%d messages were served, want %d", len(runs), sessions*each)
	}
	noWork(t, s, "after all is done")
}

// The index stands behind the code: no second working message even by hand.
func TestInvariant5_TheTableRefusesASecondWorkingMessage(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	second := post(t, s, claim.Session, "Second")
	_, err := s.StartMessage(t.Context(), claim.Lease, second.ID, "m")
	if core.CodeOf(err) != "session_busy" || core.KindOf(err) != core.Conflict {
		t.Errorf("StartMessage of a second one: %v, want Conflict session_busy", err)
	}
	if got := message(t, s, second); got.State != core.Queued {
		t.Errorf("the second is %s, want queued", got.State)
	}
}

func TestClaim_ServesTheOldestAndTellsEverything(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	noWork(t, s, "on an empty queue")
	owner := storetest.User(t, s)
	first, second := storetest.Session(t, s, owner.ID), storetest.Session(t, s, owner.ID)
	follow := post(t, s, first, "Follow-up")

	worker := storetest.Worker(t, s, "host-1")
	a, err := s.Claim(t.Context(), worker, storetest.Lease, core.Budgets{})
	must(t, err)
	if a.Session.ID != first.ID || a.Message == nil || a.Message.Text != "Add a health check" || a.Message.State != core.Queued || a.Publication != nil {
		t.Errorf("first claim: session %s message %+v, want the oldest session's oldest message, still queued", a.Session.ID, a.Message)
	}
	if diff := cmp.Diff(owner, a.Owner); diff != "" {
		t.Errorf("claim's owner (-want +got):\n%s", diff)
	}
	if a.Worker != worker.ID || a.Session.LeaseOwner != a.Lease.Owner || a.Session.Repository.FullName() != "octo-org/web-app" {
		t.Errorf("claim = %+v", a)
	}
	wantTypes(t, s, first.ID, "session_created", "message_queued", "message_queued", "message_preparing")
	b := storetest.Claim(t, s)
	if b.Session.ID != second.ID || b.Lease.Owner == a.Lease.Owner {
		t.Errorf("second claim: session %s owner %s", b.Session.ID, b.Lease.Owner)
	}
	noWork(t, s, "while both sessions are leased, though one has another message")

	_, err = s.StartMessage(t.Context(), a.Lease, a.Message.ID, "m")
	must(t, err)
	storetest.Finish(t, s, a, "ok")
	if c := storetest.Claim(t, s); c.Message.ID != follow.ID || c.Lease.Owner == a.Lease.Owner {
		t.Errorf("after the first turn: message %s by %s, want the follow-up under a fresh owner", c.Message.ID, c.Lease.Owner)
	}
}

func TestClaim_PublicationsComeFirstAndWaitForTheirTime(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s)
	storetest.Session(t, s, owner.ID) // an older message waits elsewhere
	session := storetest.Session(t, s, owner.ID)
	p, err := s.RequestPublish(t.Context(), core.Publication{SessionID: session.ID, RequestedBy: owner.ID, Title: "T"}, nil)
	must(t, err)

	claim := storetest.Claim(t, s)
	if claim.Publication == nil || claim.Publication.ID != p.ID || claim.Message != nil {
		t.Fatalf("claim = %+v, want the publication alone", claim)
	}
	wantTypes(t, s, session.ID, "publication_requested")
	p = *claim.Publication
	p.WaitingUntil, p.WaitingReason = time.Now().Add(time.Hour), "rate limit"
	must(t, s.SavePublication(t.Context(), claim.Lease, p))
	must(t, s.Release(t.Context(), claim.Lease))

	for range 2 { // the two messages; the publication waits
		if c := storetest.Claim(t, s); c.Publication != nil {
			t.Errorf("claimed a publication that waits until %s", c.Publication.WaitingUntil)
		}
	}
	storetest.Exec(t, s, `UPDATE publications SET waiting_until = clock_timestamp()`)
	noWork(t, s, "while the sessions are leased")
}

func TestClaim_LeavesASessionToTheHostOfItsSandbox(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	box := core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: claim.Session.ID, State: core.SandboxReady, Host: "host-2", Generation: 1}
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	there := storetest.Worker(t, s, "host-2")
	storetest.Finish(t, s, claim, "ok")
	post(t, s, claim.Session, "Again")

	noWork(t, s, "on host-1, while host-2 lives")
	again, err := s.Claim(t.Context(), there, storetest.Lease, core.Budgets{})
	must(t, err)
	must(t, s.Release(t.Context(), again.Lease))

	storetest.Exec(t, s, `UPDATE workers SET heartbeat_at = clock_timestamp() - interval '31 seconds' WHERE host = 'host-2'`)
	storetest.Claim(t, s) // host-2 is gone: anybody
}

func TestHeartbeat_ExtendsAndCarriesCancel(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	cancel, err := s.Heartbeat(t.Context(), claim.Lease, time.Hour)
	if cancel || err != nil {
		t.Fatalf("Heartbeat = %v, %v", cancel, err)
	}
	if got, err := s.Session(t.Context(), claim.Session.ID); err != nil || time.Until(got.LeaseUntil) < 50*time.Minute {
		t.Errorf("lease until %s, %v, want an hour from now", got.LeaseUntil, err)
	}
	_, err = s.RequestCancel(t.Context(), claim.Session.ID, "octo-dev")
	must(t, err)
	for name, ask := range map[string]func() (bool, error){
		"Heartbeat":       func() (bool, error) { return s.Heartbeat(t.Context(), claim.Lease, storetest.Lease) },
		"CancelRequested": func() (bool, error) { return s.CancelRequested(t.Context(), claim.Lease) },
	} {
		if cancel, err := ask(); !cancel || err != nil {
			t.Errorf("%s after a cancel = %v, %v, want true", name, cancel, err)
		}
	}
	must(t, s.FinishMessage(t.Context(), claim.Lease, core.Finish{MessageID: claim.Message.ID, State: core.Cancelled}))
	if cancel, err := s.Heartbeat(t.Context(), claim.Lease, storetest.Lease); cancel || err != nil {
		t.Errorf("Heartbeat while the summary is written = %v, %v, want no cancel", cancel, err)
	}
}

func TestHeartbeat_StopsThePreparationOfACancelledMessage(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	storetest.Session(t, s, storetest.User(t, s).ID)
	claim := storetest.Claim(t, s)
	next := post(t, s, claim.Session, "Next")
	must(t, s.RemoveMessage(t.Context(), claim.Session.ID, next.ID, "octo-dev")) // not the one that is prepared
	if cancel, err := s.Heartbeat(t.Context(), claim.Lease, storetest.Lease); cancel || err != nil {
		t.Fatalf("Heartbeat after another message was removed = %v, %v", cancel, err)
	}
	m, err := s.RequestCancel(t.Context(), claim.Session.ID, "octo-dev")
	if err != nil || m.ID != claim.Message.ID || m.State != core.Cancelled {
		t.Fatalf("RequestCancel = %+v, %v, want the prepared message, ended", m, err)
	}
	if cancel, err := s.Heartbeat(t.Context(), claim.Lease, storetest.Lease); !cancel || err != nil {
		t.Errorf("Heartbeat = %v, %v, want cancel", cancel, err)
	}
	if _, err := s.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m"); core.CodeOf(err) != "not_queued" {
		t.Errorf("StartMessage of a cancelled message: %v, want not_queued", err)
	}
}

func TestRelease_GivesBackOnceOnly(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	storetest.Session(t, s, storetest.User(t, s).ID)
	claim := storetest.Claim(t, s)
	must(t, s.Release(t.Context(), claim.Lease))
	if err := s.Release(t.Context(), claim.Lease); !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("second Release: %v, want ErrLeaseLost", err)
	}
	if got, err := s.Session(t.Context(), claim.Session.ID); err != nil || got.LeaseOwner != "" || !got.LeaseUntil.IsZero() {
		t.Errorf("session after Release: owner %q until %s, %v", got.LeaseOwner, got.LeaseUntil, err)
	}
}

// Every write of a turn needs the lease: neither a lease that ran out nor somebody else's will do.
func TestRelease_LeavesAWorkingMessageToTheReaper(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	next := post(t, s, claim.Session, "Next")
	if err := s.Release(t.Context(), claim.Lease); !errors.Is(err, core.ErrLeaseLost) {
		t.Fatalf("Release while the message works: %v, want ErrLeaseLost", err)
	}
	reap(t, s, claim.Session.ID)
	if m := message(t, s, *claim.Message); m.State != core.Failed {
		t.Errorf("message = %s, want failed", m.State)
	}
	if c := storetest.Claim(t, s); c.Message.ID != next.ID {
		t.Errorf("claimed %s, want the next message", c.Message.ID)
	}
}

func TestLeasedWrites_FailOnceTheLeaseIsLost(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	queued := post(t, s, claim.Session, "Next")
	writes := map[string]func(context.Context, core.Lease) error{
		"Heartbeat": func(ctx context.Context, l core.Lease) error {
			_, err := s.Heartbeat(ctx, l, storetest.Lease)
			return err
		},
		"CancelRequested": func(ctx context.Context, l core.Lease) error { _, err := s.CancelRequested(ctx, l); return err },
		"Release":         s.Release,
		"StartMessage": func(ctx context.Context, l core.Lease) error {
			_, err := s.StartMessage(ctx, l, queued.ID, "m")
			return err
		},
		"FailQueued": func(ctx context.Context, l core.Lease) error {
			return s.FailQueued(ctx, l, queued.ID, "sandbox_lost", "Gone.")
		},
		"SetPartial": func(ctx context.Context, l core.Lease) error { return s.SetPartial(ctx, l, claim.Message.ID, "So far") },
		"FinishMessage": func(ctx context.Context, l core.Lease) error {
			return s.FinishMessage(ctx, l, core.Finish{MessageID: claim.Message.ID, State: core.Completed, Answer: "ok"})
		},
		"Append": func(ctx context.Context, l core.Lease) error {
			return s.Append(ctx, l, core.ByAgent, claim.Message.ID, core.CommandStarted{Name: "x"})
		},
		"SaveArtifact": func(ctx context.Context, l core.Lease) error {
			return s.SaveArtifact(ctx, l, core.Artifact{ID: core.NewID[core.ArtifactID](), Kind: core.ArtifactOutput})
		},
		"SaveDiff": func(ctx context.Context, l core.Lease) error {
			return s.SaveDiff(ctx, l, core.Artifact{ID: core.NewID[core.ArtifactID]()}, nil)
		},
		"SaveCheckpoint": func(ctx context.Context, l core.Lease) error {
			return s.SaveCheckpoint(ctx, l, core.Checkpoint{ID: core.NewID[core.CheckpointID](), Info: core.CheckpointInfo{BaseSHA: storetest.BaseSHA}})
		},
		"SaveSummary": func(ctx context.Context, l core.Lease) error {
			return s.SaveSummary(ctx, l, core.NewID[core.MessageID](), core.Compaction{Summary: "Sum"})
		},
		"SaveSandbox": func(ctx context.Context, l core.Lease) error {
			return s.SaveSandbox(ctx, l, core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: l.SessionID, State: core.SandboxCreating, Host: "h"})
		},
		"SavePublication": func(ctx context.Context, l core.Lease) error {
			return s.SavePublication(ctx, l, core.Publication{ID: core.NewID[core.PublicationID](), Step: core.PublishRequested})
		},
		"FinishPublication": func(ctx context.Context, l core.Lease) error {
			return s.FinishPublication(ctx, l, core.Publication{ID: core.NewID[core.PublicationID](), Step: core.PublishDone, Outcome: core.PublishOpened},
				core.PullRequest{Number: 1, State: "open"})
		},
	}
	before := types(t, s, claim.Session.ID)
	storetest.Expire(t, s, claim.Session.ID)
	leases := map[string]core.Lease{
		"one that ran out":   claim.Lease,
		"somebody else's":    {SessionID: claim.Session.ID, Owner: "somebody-else"},
		"an empty one":       {SessionID: claim.Session.ID},
		"of no such session": {SessionID: core.NewID[core.SessionID](), Owner: claim.Lease.Owner},
	}
	for name, write := range writes {
		for which, lease := range leases {
			if err := write(t.Context(), lease); !errors.Is(err, core.ErrLeaseLost) {
				t.Errorf("%s with %s: %v, want ErrLeaseLost", name, which, err)
			}
		}
	}
	if diff := cmp.Diff(before, types(t, s, claim.Session.ID)); diff != "" {
		t.Errorf("refused writes changed the log (-before +after):\n%s", diff)
	}
}
