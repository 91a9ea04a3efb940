package sandbox_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
)

var rounds = flag.Int("rounds", 200, "random interleavings of TestStates_StayConsistentUnderRaces")

// pause waits for a random moment, so that what runs beside it comes in another order each time.
func pause(r *rand.Rand, most time.Duration) { <-time.After(time.Duration(r.Int64N(int64(most)))) }

// Two workers take turns with one session while it is stopped, reconciled, killed and cancelled, and
// die, at random moments. Whatever the order: never two containers of the session at once, never two attaches
// of one, and in the end the row says what is.
func TestStates_StayConsistentUnderRaces(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	base := newSource(t)
	for round := range *rounds {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			race(t, base, uint64(round))
		})
	}
	all.Wait()
}

func race(t *testing.T, base *source, seed uint64) {
	runtime, store := newShelf(t), newRows()
	runtime.slow = func() { // the order is random, seed or not: the processor has its say too
		if rand.IntN(3) == 0 {
			<-time.After(time.Duration(rand.Int64N(int64(8 * time.Millisecond))))
		}
	}
	log := slog.New(slog.DiscardHandler)
	workers := make([]*sandbox.Service, 2)
	for i := range workers {
		workers[i] = sandbox.New(sandbox.Options{Runtime: runtime, Store: store, Source: base, Log: log, Idle: 20 * time.Millisecond})
	}
	id := core.NewID[core.SessionID]()
	session := core.ChatSession{ID: id, Branch: core.BranchFor(id), BaseBranch: "main", BaseSHA: base.head}

	turn := func(ctx context.Context, r *rand.Rand, s *sandbox.Service) {
		lease, err := store.HoldSession(ctx, id, time.Minute) // as a claim
		if err != nil {
			return
		}
		claim := core.Claim{Session: session, Lease: lease}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if r.IntN(3) == 0 {
			timer := time.AfterFunc(time.Duration(r.Int64N(int64(40*time.Millisecond))), func() { cancel(core.ErrCancelledByUser) })
			defer timer.Stop()
		}
		if ws, err := s.Acquire(ctx, claim); err == nil {
			pause(r, 10*time.Millisecond)
			if r.IntN(4) == 0 { // this worker dies, and the reaper takes its session away
				_ = ws.(io.Closer).Close()
				store.change(id, func(box *core.Sandbox) { box.State, box.FailureCode = core.SandboxFailed, "worker_lost" })
			} else {
				s.Release(ctx, claim, ws)
			}
		}
		_ = store.Release(context.WithoutCancel(ctx), lease) // it is ours, or the next check says so
	}
	var acting sync.WaitGroup
	for i, act := range []func(context.Context, *rand.Rand, *sandbox.Service){
		turn, turn,
		func(ctx context.Context, _ *rand.Rand, s *sandbox.Service) { _ = s.Sweep(ctx) },
		func(ctx context.Context, _ *rand.Rand, s *sandbox.Service) { _ = s.Reconcile(ctx) },
		func(ctx context.Context, _ *rand.Rand, s *sandbox.Service) {
			store.change(id, func(box *core.Sandbox) {
				if box.State == core.SandboxReady || box.State == core.SandboxCreating {
					box.StopRequestedAt = time.Now()
				}
			})
			_ = s.Sweep(ctx)
		},
		func(ctx context.Context, r *rand.Rand, _ *sandbox.Service) {
			for _, c := range runtime.list() {
				if r.IntN(2) == 0 {
					_ = runtime.Stop(ctx, c.Ref)
				} else {
					_ = runtime.Remove(ctx, c.Ref, false)
				}
			}
		},
	} {
		acting.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 4 {
				pause(r, 30*time.Millisecond)
				act(t.Context(), r, workers[r.IntN(len(workers))])
			}
		})
	}
	acting.Wait()

	fail := func(format string, args ...any) { t.Errorf("round %d: "+format, append([]any{seed}, args...)...) }
	for range 2 { // what one look leaves, the next ends
		for _, s := range workers {
			if err := s.Reconcile(t.Context()); err != nil {
				fail("reconcile: %v", err)
			}
		}
	}
	box, _ := store.LiveSandbox(t.Context(), id)
	if box == nil {
		return // every turn was cancelled before it began
	}
	for _, c := range runtime.list() {
		if c.Generation != box.Generation {
			fail("left a container of generation %d, the row has %d", c.Generation, box.Generation)
		}
	}
	running := slices.DeleteFunc(runtime.list(), func(c sandbox.Status) bool { return !c.Running })
	switch box.State {
	case core.SandboxReady:
		if len(running) != 1 || running[0].Ref != box.RuntimeRef || running[0].Generation != box.Generation {
			fail("ready as %+v, running %+v", box, running)
		}
	case core.SandboxStopped, core.SandboxFailed:
		if len(running) != 0 {
			fail("%s, running %+v", box.State, running)
		}
	default:
		fail("left %s", box.State)
	}
	if runtime.most[id] > 1 || runtime.mixed > 0 {
		fail("%d containers ran at once, %d attaches were mixed", runtime.most[id], runtime.mixed)
	}
	// And it works.
	claim := core.Claim{Session: session, Lease: core.Lease{SessionID: id, Owner: fmt.Sprint(seed)}}
	store.own(id, claim.Lease.Owner)
	ws, err := workers[0].Acquire(t.Context(), claim)
	if err != nil {
		fail("the next turn: %v", err)
		return
	}
	if data, err := ws.Read(t.Context(), "README.md", 0, 0); err != nil || string(data.Data) != "hello\n" {
		fail("the next turn reads %q, %v", data.Data, err)
	}
	workers[0].Release(t.Context(), claim, ws)
}
