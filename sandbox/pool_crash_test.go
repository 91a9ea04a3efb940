package sandbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
)

var errDead = errors.New("this worker is dead")

// life is how many more steps a worker does before it is killed. From then on nothing that it calls
// has any effect.
type life struct {
	mu   sync.Mutex
	left int
	died bool
}

func (l *life) step() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		l.died = true
		return errDead
	}
	l.left--
	return nil
}

// mortalRuntime and mortalRows count each call that changes something.
type mortalRuntime struct {
	sandbox.Runtime
	*life
}

func (m mortalRuntime) Create(ctx context.Context, spec sandbox.Spec) (string, error) {
	if err := m.step(); err != nil {
		return "", err
	}
	return m.Runtime.Create(ctx, spec)
}

func (m mortalRuntime) Attach(ctx context.Context, ref string) (sandbox.Stream, error) {
	if err := m.step(); err != nil {
		return nil, err
	}
	return m.Runtime.Attach(ctx, ref)
}

func (m mortalRuntime) Start(ctx context.Context, ref string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.Runtime.Start(ctx, ref)
}

func (m mortalRuntime) Stop(ctx context.Context, ref string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.Runtime.Stop(ctx, ref)
}

func (m mortalRuntime) Remove(ctx context.Context, ref string, volume bool) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.Runtime.Remove(ctx, ref, volume)
}

type mortalRows struct {
	*rows
	*life
}

func (m mortalRows) BeginFill(ctx context.Context, member core.PoolMember, size int, within time.Duration) (bool, error) {
	if err := m.step(); err != nil {
		return false, err
	}
	return m.rows.BeginFill(ctx, member, size, within)
}

func (m mortalRows) EndFill(ctx context.Context, member core.PoolMember) (bool, error) {
	if err := m.step(); err != nil {
		return false, err
	}
	return m.rows.EndFill(ctx, member)
}

func (m mortalRows) ClaimMember(ctx context.Context, lease core.Lease, spec string, box core.Sandbox, events func(core.Sandbox) []core.Payload) (*core.Sandbox, error) {
	if err := m.step(); err != nil {
		return nil, err
	}
	return m.rows.ClaimMember(ctx, lease, spec, box, events)
}

func (m mortalRows) DiscardMember(ctx context.Context, id core.SandboxID) (bool, error) {
	if err := m.step(); err != nil {
		return false, err
	}
	return m.rows.DiscardMember(ctx, id)
}

func (m mortalRows) ForgetMember(ctx context.Context, id core.SandboxID) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.rows.ForgetMember(ctx, id)
}

func (m mortalRows) SaveSandbox(ctx context.Context, lease core.Lease, box core.Sandbox, events ...core.Payload) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.rows.SaveSandbox(ctx, lease, box, events...)
}

// mortal is a worker on f's host and database that dies after so many steps.
func (f *fixture) mortal(t *testing.T, warm, steps int) (*sandbox.Service, *life) {
	l := &life{left: steps}
	return sandbox.New(sandbox.Options{
		Runtime: mortalRuntime{f.runtime, l}, Store: mortalRows{f.store, l}, Source: f.source, Log: f.log(t),
		Limits: sandbox.Limits{MemoryBytes: 512 << 20, CPUs: 1, PIDs: 256}, Warm: warm,
	}), l
}

// Killed after every step of filling and of draining, the next worker on the host finds the pool
// usable, and its end leaves nothing.
func TestPool_AKillWhileItIsFilledLeavesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for steps := 0; ; steps++ {
		worker, l := f.mortal(t, 1, steps)
		_ = worker.TendPool(t.Context())
		_ = worker.DrainPool(t.Context())
		if !l.died {
			if steps < 7 {
				t.Errorf("filling and draining took only %d steps", steps)
			}
			break
		}
		f.store.editPool(func(m *core.PoolMember) { m.Overdue = m.State == core.PoolFilling }) // its time passes
		next, _ := f.mortal(t, 1, -1)
		if err := errors.Join(next.TendPool(t.Context()), next.Reconcile(t.Context())); err != nil {
			t.Fatalf("killed after %d steps: %v", steps, err)
		}
		if got := len(f.ready(t)); got != 1 || len(f.members(t)) != 1 {
			t.Errorf("killed after %d steps: the pool holds %+v", steps, f.members(t))
		}
		if err := next.DrainPool(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.nothingLeft(t)
	}
	f.nothingLeft(t)
}

// Killed after every step of a session's start from the pool, the session starts under its next
// lease, and no member is lost or used twice.
func TestPool_AKillWhileItIsClaimedLeavesTheSessionUsable(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for steps := 0; ; steps++ {
		healthy, _ := f.mortal(t, 1, -1)
		if err := healthy.TendPool(t.Context()); err != nil {
			t.Fatal(err)
		}
		claim := f.newClaim()
		worker, l := f.mortal(t, 1, steps)
		ws, err := worker.Acquire(t.Context(), claim)
		if !l.died {
			if err != nil {
				t.Fatal(err)
			}
			healthy.Release(t.Context(), claim, ws)
			if steps < 3 {
				t.Errorf("a claim took only %d steps", steps)
			}
			return
		}
		if err == nil {
			t.Fatalf("killed after %d steps and did not notice", steps)
		}
		f.store.own(claim.Session.ID, "") // the lease runs out
		if err := healthy.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Service, claim = healthy, f.reclaim(claim)
		if out := f.turn(t, claim, "cat README.md"); out != "hello" {
			t.Errorf("killed after %d steps: printed %q", steps, out)
		}
		f.store.own(claim.Session.ID, "")
		if err := errors.Join(healthy.TendPool(t.Context()), healthy.Reconcile(t.Context())); err != nil {
			t.Fatal(err)
		}
		box, list := f.store.box(t, claim.Session.ID), f.ready(t)
		if len(list) != 1 || list[box.RuntimeRef].ID != "" {
			t.Errorf("killed after %d steps: the pool holds %+v", steps, list)
		}
		f.store.drop(claim.Session.ID)
		if err := f.runtime.Remove(t.Context(), box.RuntimeRef, true); err != nil {
			t.Fatal(err)
		}
		if got, err := f.runtime.List(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("killed after %d steps: containers %+v, %v", steps, got, err)
		}
		if got, err := f.runtime.Volumes(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("killed after %d steps: volumes %+v, %v", steps, got, err)
		}
	}
}

// What Docker had made when the worker died in the middle of one of its requests is found too.
func TestPool_FindsWhatNoRowNames(t *testing.T) {
	t.Parallel()
	f := withPool(t, 1)
	orphan := sandbox.Spec{
		Sandbox: core.NewID[core.SandboxID](), Generation: 1, Purpose: sandbox.PurposePool,
		Limits: sandbox.Limits{MemoryBytes: 256 << 20, CPUs: 1, PIDs: 128},
	}
	if _, err := f.runtime.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	if err := f.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := f.runtime.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Sandbox == orphan.Sandbox {
		t.Errorf("containers %+v, %v", list, err)
	}
	if volumes, err := f.runtime.Volumes(t.Context()); err != nil || len(volumes) != 1 {
		t.Errorf("volumes %+v, %v", volumes, err)
	}
	if got := len(f.ready(t)); got != 1 {
		t.Errorf("the pool's own member was taken away: %d", got)
	}
}
