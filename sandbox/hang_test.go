package sandbox_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// A container that cannot be stopped holds up nobody else, and its session goes on in another one.
func TestSweep_AStopThatFailsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	runtime := newShelf(t)
	f := setup(t, func(o *sandbox.Options) { o.Runtime, o.Idle = runtime, time.Nanosecond })
	stuck, other := f.claim, f.newClaim()
	for _, claim := range []core.Claim{stuck, other} {
		f.Release(t.Context(), claim, f.acquire(t, claim))
		f.store.own(claim.Session.ID, "")
	}
	before := f.store.box(t, stuck.Session.ID)
	runtime.setRefuse(func(verb, ref string) error {
		if verb == "stop" && ref == before.RuntimeRef {
			return errors.New("it hangs in the kernel")
		}
		return nil
	})
	for range 3 {
		_ = f.Sweep(t.Context()) // which fails
	}
	if box := f.store.box(t, stuck.Session.ID); box.State != core.SandboxStopping {
		t.Errorf("the stuck one is %s", box.State)
	}
	if box := f.store.box(t, other.Session.ID); box.State != core.SandboxStopped {
		t.Errorf("the other is %s", box.State)
	}
	claim := f.reclaim(stuck)
	ws := f.acquire(t, claim)
	if data, err := ws.Read(t.Context(), "README.md", 0, 0); err != nil || string(data.Data) != "hello\n" {
		t.Errorf("its session reads %q, %v", data.Data, err)
	}
	f.Release(t.Context(), claim, ws)
	if now := f.store.box(t, stuck.Session.ID); now.State != core.SandboxReady || now.Generation != 2 || now.Volume != before.Volume {
		t.Errorf("its session goes on as %+v", now)
	}
	runtime.setRefuse(nil)
}

// Who waits for room gets it from the next one when the first does not stop.
func TestAcquire_AStopThatFailsCostsNobodyTheirTurn(t *testing.T) {
	t.Parallel()
	runtime := newShelf(t)
	f := setup(t, func(o *sandbox.Options) { o.Runtime, o.MaxRunning = runtime, 2 })
	stuck, other := f.claim, f.newClaim()
	for _, claim := range []core.Claim{stuck, other} {
		f.Release(t.Context(), claim, f.acquire(t, claim))
		f.store.own(claim.Session.ID, "")
	}
	ref := f.store.box(t, stuck.Session.ID).RuntimeRef
	runtime.setRefuse(func(verb, of string) error {
		if verb == "stop" && of == ref {
			return errors.New("it hangs in the kernel")
		}
		return nil
	})
	third := f.newClaim()
	f.Release(t.Context(), third, f.acquire(t, third))
	if box := f.store.box(t, other.Session.ID); box.State != core.SandboxStopped {
		t.Errorf("the one that can be stopped is %s", box.State)
	}
	runtime.setRefuse(nil)
}

// What a host has left is first heard from a sandbox on it. The pool's first one must not be the one
// that takes it.
func TestPool_KeepsTheReserveOfAHostThatNobodyHasSeen(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.Runtime, o.Warm, o.DiskReserve = newShelf(t), 3, 1<<60 })
	if err := f.TendPool(t.Context()); core.CodeOf(err) != "disk_low" {
		t.Errorf("the first look says %v", err)
	}
	for range 2 {
		if err := f.TendPool(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if left := f.members(t); len(left) != 0 {
		t.Errorf("the pool has %+v", left)
	}
}

func TestRetries_AreSpreadOut(t *testing.T) {
	t.Parallel()
	r := sandbox.NewRetries()
	at, id := time.Now(), core.NewID[core.SandboxID]()
	var waits []time.Duration
	for range 10 {
		r.Note(id, at, errors.New("no"))
		wait := time.Duration(0)
		for !r.Due(id, at.Add(wait)) {
			wait += time.Second
		}
		waits = append(waits, wait)
		if !r.Due(core.NewID[core.SandboxID](), at) {
			t.Error("another one waits too")
		}
	}
	if waits[0] != 2*time.Second || waits[1] != 4*time.Second || waits[9] != 5*time.Minute || !slices.IsSorted(waits) {
		t.Errorf("waits %v", waits)
	}
	r.Note(id, at, nil)
	if !r.Due(id, at) {
		t.Error("it waits after a success")
	}
}

// A sandbox that hangs at the very end of a turn is given up: its processes end, and the row says so.
func TestRelease_GivesUpASandboxThatHangs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	before := f.store.box(t, f.claim.Session.ID)
	dockertest.Docker(t, "pause", before.RuntimeRef)
	f.store.types(f.claim.Session.ID)
	f.Release(t.Context(), f.claim, ws)
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_failed sandbox_lost")
	there, err := f.runtime.Inspect(t.Context(), before.RuntimeRef)
	if now := f.store.box(t, f.claim.Session.ID); err != nil || there.Running || now.State != core.SandboxFailed {
		t.Errorf("row %s, container %+v, %v", now.State, there, err)
	}
	if got := f.turn(t, f.reclaim(f.claim), "cat README.md"); got != "hello" {
		t.Errorf("the next turn reads %q", got)
	}
}

// Between two turns a session may be claimed at any moment, but not while its container is stopped.
func TestReconcile_HoldsASessionWhileItStopsItsContainer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		maxAge time.Duration
		meet   func(*shelf, *rows, core.Sandbox)
	}{
		"stopped, and it runs": {meet: func(_ *shelf, r *rows, box core.Sandbox) {
			r.change(box.SessionID, func(box *core.Sandbox) { box.State = core.SandboxStopped })
		}},
		"stopped, and too old": {maxAge: time.Nanosecond, meet: func(_ *shelf, r *rows, box core.Sandbox) {
			r.change(box.SessionID, func(box *core.Sandbox) { box.State = core.SandboxStopped })
		}},
		"ready, and frozen": {meet: func(s *shelf, _ *rows, box core.Sandbox) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.containers[box.RuntimeRef].status.Paused = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runtime := newShelf(t)
			f := setup(t, func(o *sandbox.Options) { o.Runtime, o.MaxAge = runtime, c.maxAge })
			f.Release(t.Context(), f.claim, f.acquire(t, f.claim))
			id := f.claim.Session.ID
			f.store.own(id, "")
			c.meet(runtime, f.store, f.store.box(t, id))
			stops := 0
			runtime.setRefuse(func(verb, _ string) error {
				if verb != "stop" {
					return nil
				}
				stops++
				if lease, err := f.store.HoldSession(t.Context(), id, time.Minute); !errors.Is(err, core.ErrNoWork) {
					t.Errorf("it was claimed meanwhile: %+v, %v", lease, err)
				}
				return nil
			})
			if err := f.Reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
			runtime.setRefuse(nil)
			if _, err := f.store.HoldSession(t.Context(), id, time.Minute); stops != 1 || err != nil {
				t.Errorf("%d stops; the session is given back: %v", stops, err)
			}
		})
	}
}
