package live_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"agent-sandboxing/core"
	"agent-sandboxing/core/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryLog is a log whose commits are told only when the test wants it.
type memoryLog struct {
	mu      sync.Mutex
	events  map[core.SessionID][]core.Event
	reads   int
	polls   int
	largest int
	broken  error
}

func (l *memoryLog) commit(id core.SessionID, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events == nil {
		l.events = map[core.SessionID][]core.Event{}
	}
	for range n {
		l.events[id] = append(l.events[id], core.Event{SessionID: id, Sequence: int64(len(l.events[id])) + 1})
	}
}

// counts are how often the log was read and polled, and the largest read.
func (l *memoryLog) counts() (reads, polls, largest int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads, l.polls, l.largest
}

func (l *memoryLog) EventsSince(_ context.Context, id core.SessionID, after int64, limit int) ([]core.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	l.largest = max(l.largest, limit)
	all := l.events[id]
	all = all[min(int(after), len(all)):]
	return slices.Clone(all[:min(limit, len(all))]), l.broken
}

func (l *memoryLog) LastSequences(_ context.Context, ids []core.SessionID) (map[core.SessionID]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polls++
	last := map[core.SessionID]int64{}
	for _, id := range ids {
		last[id] = int64(len(l.events[id]))
	}
	return last, l.broken
}

// follower collects what Follow hands on, in the background.
type follower struct {
	mu       sync.Mutex
	seen     []int64
	partials []core.MessageID
	batches  []int
	end      error
	cancel   context.CancelFunc
	done     chan struct{}
}

func follow(t *testing.T, hub *live.Hub, id core.SessionID, after int64) *follower {
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.end = hub.Follow(ctx, id, after, func(b live.Batch) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.batches = append(f.batches, len(b.Events))
			for _, e := range b.Events {
				f.seen = append(f.seen, e.Sequence)
			}
			f.partials = append(f.partials, b.Partials...)
			return nil
		})
	}()
	return f
}

func (f *follower) stop() {
	f.cancel()
	<-f.done
}

func (f *follower) sequences() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

func (f *follower) sizes() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.batches)
}

func upTo(from, to int64) []int64 {
	var s []int64
	for n := from; n <= to; n++ {
		s = append(s, n)
	}
	return s
}

func TestFollow_ReplaysThenGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		hub := live.NewHub(log)
		log.commit("s", 250)
		f := follow(t, hub, "s", 20)
		defer f.stop()
		synctest.Wait()
		if diff := cmp.Diff(upTo(21, 250), f.sequences()); diff != "" {
			t.Errorf("replay (-want +got):\n%s", diff)
		}
		if _, _, largest := log.counts(); largest > 100 || slices.Max(f.sizes()) > 100 {
			t.Errorf("batches of %v, reads of %d, want at most 100", f.sizes(), largest)
		}
		log.commit("s", 3)
		hub.Wake("s")
		synctest.Wait() // no time passes: it is the wake-up that is heard
		if diff := cmp.Diff(upTo(21, 253), f.sequences()); diff != "" {
			t.Errorf("live (-want +got):\n%s", diff)
		}
		f.stop()
		if !errors.Is(f.end, context.Canceled) {
			t.Errorf("Follow = %v, want its context's end", f.end)
		}
	})
}

func TestFollow_DoubledLateAndForeignWakesAreHarmless(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		hub := live.NewHub(log)
		f := follow(t, hub, "s", 0)
		defer f.stop()
		for range 5 {
			hub.Wake("s")
			hub.Wake("other")
		}
		log.commit("s", 2)
		log.commit("other", 9)
		hub.Wake("s")
		hub.Wake("s")
		synctest.Wait()
		hub.Wake("s")
		synctest.Wait()
		if diff := cmp.Diff(upTo(1, 2), f.sequences()); diff != "" {
			t.Errorf("seen (-want +got):\n%s", diff)
		}
	})
}

// A lost notification costs at most about a second, and one query serves every follower.
func TestFollow_PollsForLostNotifications(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		hub := live.NewHub(log)
		var all []*follower
		for _, id := range []core.SessionID{"a", "a", "b", "c", "d", "e"} {
			f := follow(t, hub, id, 0)
			defer f.stop()
			all = append(all, f)
			<-time.After(70 * time.Millisecond) // the followers' clocks tick apart
		}
		synctest.Wait()
		log.commit("a", 4)
		readsBefore, pollsBefore, _ := log.counts()
		<-time.After(1100 * time.Millisecond)
		synctest.Wait()
		for i, f := range all[:2] {
			if diff := cmp.Diff(upTo(1, 4), f.sequences()); diff != "" {
				t.Errorf("follower %d without a notification (-want +got):\n%s", i, diff)
			}
		}
		reads, polls, _ := log.counts()
		if n := polls - pollsBefore; n > 3 {
			t.Errorf("%d polls in 1.1 s for 6 followers, want one a second or so", n)
		}
		if n := reads - readsBefore; n > 3 {
			t.Errorf("%d reads, want none of the sessions in which nothing happened", n)
		}
	})
}

func TestFollow_ASlowReaderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		hub := live.NewHub(log)
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var slow []int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = hub.Follow(ctx, "s", 0, func(b live.Batch) error {
				<-release
				for _, e := range b.Events {
					slow = append(slow, e.Sequence)
				}
				return nil
			})
		}()
		f := follow(t, hub, "s", 0)
		defer f.stop()
		for range 500 {
			log.commit("s", 1)
			hub.Wake("s") // returns though nobody takes
			hub.WakePartial("s", "m")
		}
		synctest.Wait()
		if diff := cmp.Diff(upTo(1, 500), f.sequences()); diff != "" {
			t.Errorf("the other follower (-want +got):\n%s", diff)
		}
		close(release)
		synctest.Wait()
		cancel()
		<-done
		if diff := cmp.Diff(upTo(1, 500), slow); diff != "" {
			t.Errorf("the slow reader, once it reads (-want +got):\n%s", diff)
		}
	})
}

func TestFollow_TellsOfGrowingAnswersAfterTheirEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		hub := live.NewHub(log)
		f := follow(t, hub, "s", 0)
		defer f.stop()
		synctest.Wait()
		log.commit("s", 1)
		for range 3 { // several growths before the follower looks are one
			hub.WakePartial("s", "m1")
		}
		hub.WakePartial("other", "m2")
		synctest.Wait()
		f.stop()
		if diff := cmp.Diff([]core.MessageID{"m1"}, f.partials); diff != "" {
			t.Errorf("partials (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{1, 0}, f.batches); diff != "" {
			t.Errorf("batches, events first (-want +got):\n%s", diff)
		}
	})
}

func TestFollow_EndsWithYieldOrTheLog(t *testing.T) {
	t.Parallel()
	log := &memoryLog{}
	hub := live.NewHub(log)
	log.commit("s", 1)
	gone := errors.New("client gone")
	if err := hub.Follow(t.Context(), "s", 0, func(live.Batch) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("Follow = %v, want yield's error", err)
	}
	log.broken = errors.New("database gone")
	if err := hub.Follow(t.Context(), "s", 0, func(live.Batch) error { return nil }); !errors.Is(err, log.broken) {
		t.Errorf("Follow = %v, want the log's error", err)
	}
	log.broken = nil
	log.events["s"] = append(log.events["s"], core.Event{Sequence: 3})
	if err := hub.Follow(t.Context(), "s", 0, func(live.Batch) error { return nil }); err == nil {
		t.Error("a hole in the log was handed on")
	}
}

func TestChangedAndWork_AreFlags(t *testing.T) {
	t.Parallel()
	hub := live.NewHub(&memoryLog{})
	wake, stop := hub.Changed("s")
	for range 3 {
		hub.Wake("s")
		hub.WakeWork()
	}
	for name, flag := range map[string]<-chan struct{}{"Changed": wake, "Work": hub.Work()} {
		select {
		case <-flag:
		default:
			t.Errorf("%s did not fire", name)
		}
		select {
		case <-flag:
			t.Errorf("%s fired twice", name)
		default:
		}
	}
	stop()
	hub.Wake("s")
	select {
	case <-wake:
		t.Error("Changed fired after stop")
	default:
	}
}
