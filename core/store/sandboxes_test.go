package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		Volume: "vol-1", Image: "sha256:1", Runtime: "runc", CheckedOut: true, FailureCode: "f", FailureText: "text",
		LastUsedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), CreatedAt: time.Date(2026, 1, 2, 3, 4, 4, 0, time.UTC),
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
	if diff := cmp.Diff(&box, got); diff != "" {
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
