package live_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/live"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/core/turn"
)

var (
	_ live.Log     = (*store.Store)(nil)
	_ turn.Signals = (*live.Hub)(nil)
)

// Clients follow a session over the real log and real notifications while four writers race. Client
// k loses its connection after every k events and comes back with the last sequence that it saw.
func TestInvariant4_AClientCutAtEveryPointSeesEachEventOnceInOrder(t *testing.T) {
	t.Parallel()
	const total, writers = 80, 4
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	hub := live.NewHub(s)
	listening := make(chan struct{})
	ready := sync.OnceFunc(func() { close(listening) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	var background sync.WaitGroup
	background.Go(func() {
		_ = s.Listen(ctx, store.Handler{Session: hub.Wake, Partial: hub.WakePartial, Work: ready, Access: func(core.InstallationID) {}})
	})
	defer background.Wait()
	defer cancel()
	<-listening

	before, err := s.Session(ctx, claim.Session.ID)
	if err != nil {
		t.Fatal(err)
	}
	last := before.LastSequence + total
	errCut := errors.New("connection cut")
	var clients sync.WaitGroup
	for every := int64(1); every <= last; every++ {
		clients.Go(func() {
			var seen []int64
			var after int64
			for after < last {
				left := every
				err := hub.Follow(ctx, claim.Session.ID, after, func(b live.Batch) error {
					for _, e := range b.Events {
						seen = append(seen, e.Sequence)
						after = e.Sequence // what a browser sends as Last-Event-ID
						if left--; left == 0 || after == last {
							return errCut // in the middle of a batch as well
						}
					}
					return nil
				})
				if !errors.Is(err, errCut) {
					t.Errorf("client cut every %d events: %v", every, err)
					return
				}
			}
			if diff := cmp.Diff(upTo(1, last), seen); diff != "" {
				t.Errorf("client cut every %d events (-want +got):\n%s", every, diff)
			}
		})
	}
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for i := range total / writers {
				if err := s.Append(ctx, claim.Lease, core.ByAgent, claim.Message.ID, core.CommandStarted{Name: "x"}); err != nil {
					t.Errorf("Append: %v", err)
				}
				if i%5 == 0 {
					if err := s.SetPartial(ctx, claim.Lease, claim.Message.ID, "growing"); err != nil {
						t.Errorf("SetPartial: %v", err)
					}
				}
			}
		})
	}
	writing.Wait()
	clients.Wait()
}
