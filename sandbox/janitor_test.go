package sandbox_test

import (
	"context"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker/dockertest"
)

func TestSweep_StopsOnRequestOnlyWhenNobodyOwnsTheSession(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "true")
	f.store.change(f.claim.Session.ID, func(box *core.Sandbox) { box.StopRequestedAt = time.Now() })
	f.store.types(f.claim.Session.ID)
	if err := f.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if box := f.store.box(t, f.claim.Session.ID); box.State != core.SandboxReady {
		t.Fatalf("an owned sandbox became %s", box.State)
	}
	f.store.own(f.claim.Session.ID, "")
	if err := f.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	box := f.store.box(t, f.claim.Session.ID)
	there, err := f.runtime.Inspect(t.Context(), box.RuntimeRef)
	if box.State != core.SandboxStopped || !box.StopRequestedAt.IsZero() || err != nil || there.Running {
		t.Errorf("row %+v, container %+v, %v", box, there, err)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "checkpoint_saved", "sandbox_stopping stop_requested", "sandbox_stopped")
}

func TestSweep_FinishesAStopThatWasBegun(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "true")
	f.store.own(f.claim.Session.ID, "")
	f.store.change(f.claim.Session.ID, func(box *core.Sandbox) { box.State = core.SandboxStopping })
	f.store.types(f.claim.Session.ID)
	if err := f.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_stopped")
}

func TestAcquire_MakesRoomByStoppingTheLongestUnused(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.MaxRunning, o.RoomWait = 2, time.Millisecond })
	var claims []core.Claim
	for range 3 {
		claim := f.newClaim()
		f.turn(t, claim, "true")
		f.store.own(claim.Session.ID, "")
		claims = append(claims, claim)
	}
	for i, want := range []core.SandboxState{core.SandboxStopped, core.SandboxReady, core.SandboxReady} {
		if box := f.store.box(t, claims[i].Session.ID); box.State != want {
			t.Errorf("sandbox %d is %s, want %s", i, box.State, want)
		}
	}
	f.reclaim(claims[1])
	f.reclaim(claims[2])
	_, err := f.Acquire(t.Context(), f.newClaim())
	wantCode(t, err, "capacity")
	if box := f.store.box(t, claims[1].Session.ID); box.State != core.SandboxReady {
		t.Errorf("a sandbox in use became %s", box.State)
	}
}

func TestAcquire_WaitsForRoomUntilATurnEnds(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.MaxRunning = 1 })
	first := f.newClaim()
	ws := f.acquire(t, first)
	second := f.newClaim()
	got := make(chan error, 1)
	go func() {
		next, err := f.Acquire(t.Context(), second)
		if err == nil {
			f.Release(t.Context(), second, next)
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("the second sandbox did not wait: %v", err)
	case <-time.After(2 * time.Second):
	}
	f.Release(t.Context(), first, ws)
	f.store.own(first.Session.ID, "")
	if err := <-got; err != nil {
		t.Fatalf("after the first turn: %v", err)
	}
	if box := f.store.box(t, first.Session.ID); box.State != core.SandboxStopped {
		t.Errorf("the unused sandbox is %s", box.State)
	}
}

func TestReconcile_RowsAndContainersBothWays(t *testing.T) {
	t.Parallel()
	f := setup(t)
	standing := func() core.Claim { // a sandbox between two turns
		claim := f.newClaim()
		f.turn(t, claim, "true")
		f.store.own(claim.Session.ID, "")
		f.store.types(claim.Session.ID)
		return claim
	}
	fine, orphan, stale, failed, killed, wrongly, half := standing(), standing(), standing(), standing(), standing(), standing(), standing()
	ref := func(c core.Claim) string { return f.store.box(t, c.Session.ID).RuntimeRef }
	orphanRef, staleRef, failedRef := ref(orphan), ref(stale), ref(failed)

	f.store.mu.Lock()
	delete(f.store.boxes, orphan.Session.ID)
	f.store.mu.Unlock()
	f.store.change(stale.Session.ID, func(box *core.Sandbox) { box.Generation = 2 })
	f.store.change(failed.Session.ID, func(box *core.Sandbox) { box.State = core.SandboxFailed })
	dockertest.Docker(t, "kill", ref(killed))
	f.store.change(wrongly.Session.ID, func(box *core.Sandbox) { box.State = core.SandboxStopped })
	f.store.change(half.Session.ID, func(box *core.Sandbox) { box.State = core.SandboxCreating })
	foreign := dockertest.New(t)
	foreignRef, err := foreign.Create(t.Context(), sandbox.Spec{Session: "foreign", Sandbox: core.NewID[core.SandboxID](), Generation: 1})
	if err != nil {
		t.Fatal(err)
	}

	if err := f.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, gone := range map[string]string{"without a row": orphanRef, "of an old generation": staleRef, "of a failed row": failedRef} {
		if _, err := f.runtime.Inspect(t.Context(), gone); core.CodeOf(err) != "sandbox_lost" {
			t.Errorf("container %s is still there: %v", name, err)
		}
	}
	if _, err := foreign.Inspect(t.Context(), foreignRef); err != nil {
		t.Errorf("another installation's container: %v", err)
	}
	wantTypes(t, f.store.types(fine.Session.ID))
	wantTypes(t, f.store.types(killed.Session.ID), "sandbox_stopped")
	wantTypes(t, f.store.types(half.Session.ID), "sandbox_failed preparation_interrupted")
	there, err := f.runtime.Inspect(t.Context(), ref(wrongly))
	if err != nil || there.Running {
		t.Errorf("a container whose row is stopped: %+v, %v", there, err)
	}
	if there, err := f.runtime.Inspect(t.Context(), ref(fine)); err != nil || !there.Running {
		t.Errorf("a sandbox between two turns: %+v, %v", there, err)
	}
}

func TestReconcile_LeavesATurnAlone(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	if err := f.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, ws, "true")
}

func TestRemoveAll_KeepsTheWork(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "echo work > new.txt")
	f.store.own(f.claim.Session.ID, "")
	if err := f.RemoveAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := f.runtime.List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left %+v, %v", left, err)
	}
	if box := f.store.box(t, f.claim.Session.ID); box.State != core.SandboxStopped {
		t.Errorf("row is %s", box.State)
	}
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("after a restart: %q", got)
	}
}

func TestRun_ReconcilesAtOnceAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "true")
	f.store.own(f.claim.Session.ID, "")
	dockertest.Docker(t, "kill", f.store.box(t, f.claim.Session.ID).RuntimeRef)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(ended)
	}()
	eventually(t, "the row says stopped", func() bool { return f.store.box(t, f.claim.Session.ID).State == core.SandboxStopped })
	cancel()
	<-ended
}

func TestStatus_SaysWhatWorkersShow(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.acquire(t, f.claim)
	want := core.WorkerStatus{Docker: "ok", Runtime: dockertest.Runtime(), Image: dockertest.Image(t), RunningBoxes: 1}
	if got := f.Status(t.Context()); got != want {
		t.Errorf("status %+v, want %+v", got, want)
	}
}
