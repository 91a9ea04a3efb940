package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
)

func TestSaveSandbox_KeepsTheRowAndTellsTheSteps(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	if box, err := s.LiveSandbox(t.Context(), id); box != nil || err != nil {
		t.Fatalf("LiveSandbox before any = %+v, %v", box, err)
	}
	box := core.Sandbox{
		ID: core.NewID[core.SandboxID](), SessionID: id, State: core.SandboxReady, Host: "host-1", Generation: 2, RuntimeRef: "c0ffee",
		Volume: "vol-1", Image: "sha256:1", Runtime: "runc", CheckedOut: true, Unsaved: true,
		FailureCode: "f", FailureText: "text",
	}
	if done, err := s.CheckedOut(t.Context(), id); done || err != nil {
		t.Errorf("CheckedOut before any = %v, %v", done, err)
	}
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box, core.SandboxChanged{State: core.SandboxReady, SandboxID: box.ID}, core.CheckoutCompleted{Branch: "b"}))
	if done, err := s.CheckedOut(t.Context(), id); !done || err != nil {
		t.Errorf("CheckedOut after it = %v, %v", done, err)
	}
	got, err := s.LiveSandbox(t.Context(), id)
	must(t, err)
	if diff := cmp.Diff(&box, got, cmpopts.IgnoreFields(core.Sandbox{}, "LastUsedAt", "CreatedAt", "Unused", "Age")); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	wantTypes(t, s, id, "sandbox_ready", "repo_checkout_completed")

	second := box
	second.ID = core.NewID[core.SandboxID]()
	if err := s.SaveSandbox(t.Context(), claim.Lease, second); core.CodeOf(err) != "sandbox_exists" {
		t.Errorf("a second live sandbox: %v, want sandbox_exists", err)
	}
	box.State = core.SandboxFailed
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	second.State, second.Generation = core.SandboxCreating, 3
	must(t, s.SaveSandbox(t.Context(), claim.Lease, second))
	if got, err := s.LiveSandbox(t.Context(), id); err != nil || got.ID != second.ID {
		t.Errorf("LiveSandbox = %+v, %v, want the newest", got, err)
	}
	second.Generation = 2
	if err := s.SaveSandbox(t.Context(), claim.Lease, second); core.CodeOf(err) != "sandbox_superseded" {
		t.Errorf("a copy of an older generation: %v, want sandbox_superseded", err)
	}
}

func TestMarkSandbox_OnlyWhileNobodyOwnsTheSession(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	box := core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: claim.Session.ID, State: core.SandboxReady, Host: "host-1", Generation: 1}
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	box.State = core.SandboxStopping
	if free, err := s.MarkSandbox(t.Context(), box, core.SandboxChanged{State: box.State}); free || err != nil {
		t.Errorf("MarkSandbox under a lease = %v, %v, want false", free, err)
	}
	if got, err := s.LiveSandbox(t.Context(), claim.Session.ID); err != nil || got.State != core.SandboxReady {
		t.Errorf("state = %s, %v", got.State, err)
	}
	storetest.Finish(t, s, claim, "ok")
	if free, err := s.MarkSandbox(t.Context(), box, core.SandboxChanged{State: box.State}); !free || err != nil {
		t.Errorf("MarkSandbox of a free session = %v, %v", free, err)
	}
	wantTypes(t, s, claim.Session.ID, "message_completed", "sandbox_stopping")
	box.State = "melted"
	if free, err := s.MarkSandbox(t.Context(), box); free || err == nil {
		t.Errorf("MarkSandbox to an unknown state = %v, %v", free, err)
	}
}

func TestRequestStop_LastsUntilTheStop(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	if err := s.RequestStop(t.Context(), id); core.CodeOf(err) != "nothing_to_stop" {
		t.Errorf("without a sandbox: %v, want nothing_to_stop", err)
	}
	box := core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: id, State: core.SandboxReady, Host: "host-1", Generation: 1}
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	must(t, s.RequestStop(t.Context(), id))
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box)) // the worker's copy knows nothing of the request
	boxes, err := s.SandboxesOn(t.Context(), "host-1")
	if err != nil || len(boxes) != 1 || boxes[0].StopRequestedAt.IsZero() {
		t.Fatalf("SandboxesOn = %+v, %v, want the request kept", boxes, err)
	}
	for _, state := range []core.SandboxState{core.SandboxStopping, core.SandboxStopped} {
		box.State = state
		must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	}
	if got, err := s.LiveSandbox(t.Context(), id); err != nil || !got.StopRequestedAt.IsZero() {
		t.Errorf("after the stop: %+v, %v", got, err)
	}
	if err := s.RequestStop(t.Context(), id); core.CodeOf(err) != "nothing_to_stop" {
		t.Errorf("of a stopped one: %v, want nothing_to_stop", err)
	}
	if boxes, err := s.SandboxesOn(t.Context(), "host-2"); err != nil || len(boxes) != 0 {
		t.Errorf("another host's = %v, %v", boxes, err)
	}
	box.State = core.SandboxFailed
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	if boxes, err := s.SandboxesOn(t.Context(), "host-1"); err != nil || len(boxes) != 0 {
		t.Errorf("a failed one is listed: %v, %v", boxes, err)
	}
}

// The worker's clock counts for nothing: one that is an hour off changes no time of a row.
func TestSandbox_TimesAreTheDatabases(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		box := core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: id, State: core.SandboxReady, Host: "host-1", Generation: 1}
		box.LastUsedAt, box.CreatedAt = time.Now().Add(off), time.Now().Add(off)
		box.Unused, box.Age = off, off
		must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
		got, err := s.LiveSandbox(t.Context(), id)
		must(t, err)
		for name, since := range map[string]time.Duration{"Unused": got.Unused, "Age": got.Age} {
			if since < 0 || since > time.Minute {
				t.Errorf("with a clock %v off %s is %v", off, name, since)
			}
		}
		box.State = core.SandboxFailed
		must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	}
}

func TestSandbox_UseMovesUnusedAndAGenerationMovesAge(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	box := core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: id, State: core.SandboxReady, Host: "host-1", Generation: 1}
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	read := func() core.Sandbox {
		t.Helper()
		got, err := s.LiveSandbox(t.Context(), id)
		must(t, err)
		return *got
	}
	past := func() {
		t.Helper()
		storetest.Exec(t, s, `UPDATE sandboxes SET last_used_at = last_used_at - interval '1 day', made_at = made_at - interval '1 day'`)
	}
	old := func(d time.Duration) bool { return d > 23*time.Hour }
	past()
	if got := read(); !old(got.Unused) || !old(got.Age) {
		t.Fatalf("after a day: unused %v, age %v", got.Unused, got.Age)
	}
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	if got := read(); old(got.Unused) || !old(got.Age) {
		t.Errorf("after a use: unused %v, age %v", got.Unused, got.Age)
	}
	past()
	box.State = core.SandboxStopped
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	if got := read(); !old(got.Unused) {
		t.Errorf("a stop counts as use: unused %v", got.Unused)
	}
	box.Generation++
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	if got := read(); old(got.Age) {
		t.Errorf("age of a new generation: %v", got.Age)
	}
}

func TestHoldSession_OnlyWhenNobodyOwnsItAndItKeepsClaimsAway(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	if _, err := s.HoldSession(t.Context(), id, time.Minute); !errors.Is(err, core.ErrNoWork) {
		t.Errorf("of a session with an owner: %v", err)
	}
	storetest.Finish(t, s, claim, "ok")
	lease, err := s.HoldSession(t.Context(), id, time.Minute)
	must(t, err)
	if _, err := s.HoldSession(t.Context(), id, time.Minute); !errors.Is(err, core.ErrNoWork) {
		t.Errorf("held twice: %v", err)
	}
	post(t, s, claim.Session, "again")
	if _, err := s.Claim(t.Context(), storetest.Worker(t, s, "host-1"), storetest.Lease, core.Budgets{}); !errors.Is(err, core.ErrNoWork) {
		t.Errorf("claimed while held: %v", err)
	}
	box := core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: id, State: core.SandboxReady, Host: "host-1", Generation: 1, Unsaved: true}
	must(t, s.SaveSandbox(t.Context(), lease, box))
	must(t, s.SaveCheckpoint(t.Context(), lease, core.Checkpoint{ID: core.NewID[core.CheckpointID](), Info: core.CheckpointInfo{BaseSHA: storetest.BaseSHA}}))
	if got, err := s.LiveSandbox(t.Context(), id); err != nil || got.Unsaved {
		t.Errorf("after a checkpoint: %+v, %v", got, err)
	}
	must(t, s.Release(t.Context(), lease))
	if _, err := s.Claim(t.Context(), storetest.Worker(t, s, "host-1"), storetest.Lease, core.Budgets{}); err != nil {
		t.Errorf("claim after the hold: %v", err)
	}
}

func TestSandboxesByID_OfAnyState(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	box := core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: claim.Session.ID, State: core.SandboxFailed, Host: "host-1", Generation: 1}
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	got, err := s.SandboxesByID(t.Context(), []core.SandboxID{box.ID, core.NewID[core.SandboxID]()})
	if err != nil || len(got) != 1 || got[0].ID != box.ID {
		t.Errorf("found %+v, %v", got, err)
	}
	if got, err := s.SandboxesByID(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of no ids: %+v, %v", got, err)
	}
}

func TestDispensableVolumes_OnlyOfArchivedSessionsThatAreSavedWhole(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	box := core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: id, State: core.SandboxStopped, Host: "host-1", Generation: 1, Volume: "v", Unsaved: true}
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	partial := core.Checkpoint{ID: core.NewID[core.CheckpointID](), Info: core.CheckpointInfo{BaseSHA: storetest.BaseSHA, Missing: []string{"big"}}}
	must(t, s.SaveCheckpoint(t.Context(), claim.Lease, partial))
	listed := func(why string, want int) {
		t.Helper()
		if got, err := s.DispensableVolumes(t.Context(), "host-1"); err != nil || len(got) != want {
			t.Errorf("%s: %+v, %v", why, got, err)
		}
	}
	storetest.Finish(t, s, claim, "ok")
	must(t, s.ArchiveSession(t.Context(), id, true))
	storetest.Exec(t, s, `UPDATE sandboxes SET last_used_at = last_used_at - interval '8 days'`)
	listed("the checkpoint lacks something", 0)
	lease, err := s.HoldSession(t.Context(), id, time.Minute)
	must(t, err)
	must(t, s.SaveCheckpoint(t.Context(), lease, core.Checkpoint{ID: core.NewID[core.CheckpointID](), Info: core.CheckpointInfo{BaseSHA: storetest.BaseSHA}}))
	listed("somebody has the session", 0)
	must(t, s.Release(t.Context(), lease))
	listed("archived and saved", 1)
	storetest.Exec(t, s, `UPDATE sandboxes SET unsaved = true`)
	listed("unsaved", 0)
	storetest.Exec(t, s, `UPDATE sandboxes SET unsaved = false, last_used_at = clock_timestamp()`)
	listed("used today", 0)
	storetest.Exec(t, s, `UPDATE sandboxes SET last_used_at = last_used_at - interval '8 days'`)
	must(t, s.ArchiveSession(t.Context(), id, false))
	listed("not archived any more", 0)
}
