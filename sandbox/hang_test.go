package sandbox_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
)

// A container that cannot be stopped is tried again, at growing intervals, holds up nobody else, and its
// session goes on in another one.
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
	tries := 0
	runtime.setRefuse(func(verb, ref string) error {
		if verb == "stop" && ref == before.RuntimeRef {
			tries++
			return errors.New("it hangs in the kernel")
		}
		return nil
	})
	for range 3 {
		_ = f.Sweep(t.Context()) // which fails
	}
	if box := f.store.box(t, stuck.Session.ID); box.State != core.SandboxStopping || tries != 1 {
		t.Errorf("the stuck one is %s after %d tries", box.State, tries)
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
