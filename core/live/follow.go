package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"agent-sandboxing/core"
)

// Follow hands the session's events after sequence after to yield, each once and in order: first
// those of the log, then new ones as they commit. yield may be slow; the follower then reads more
// at once. Follow returns the cause of ctx's end, yield's error, or the log's.
func (h *Hub) Follow(ctx context.Context, id core.SessionID, after int64, yield func(Batch) error) error {
	// Subscribe before the first read: an event that commits between the two must not be missed.
	w := h.subscribe(id)
	defer h.unsubscribe(id, w)
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		var err error
		if after, err = h.replay(ctx, id, after, yield); err != nil {
			return err
		}
		h.saw(w, after)
		if ids := h.takePartials(w); len(ids) > 0 {
			if err := yield(Batch{Partials: ids}); err != nil {
				return err
			}
		}
		if err := h.await(ctx, w, poll.C); err != nil {
			return err
		}
	}
}

// await returns when the waiter is woken or ctx ends.
func (h *Hub) await(ctx context.Context, w *waiter, tick <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.wake:
			return nil
		case <-tick:
			h.poll(ctx)
		}
	}
}

// poll looks for lost notifications: one query for all followed sessions, made by whichever
// follower's clock comes first. When it fails the next one tries again.
func (h *Hub) poll(ctx context.Context) {
	ids := h.duePoll()
	if len(ids) == 0 {
		return
	}
	last, err := h.log.LastSequences(ctx, ids)
	if err != nil {
		return // a follower that reads the log reports what is wrong with it
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, sequence := range last {
		for w := range h.waiting[id] {
			if w.seen < sequence {
				signal(w.wake)
			}
		}
	}
}

// duePoll returns the followed sessions, or nil when somebody has polled a moment ago.
func (h *Hub) duePoll() []core.SessionID {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Half the interval: clocks of the followers tick at any phase and not exactly.
	if time.Since(h.polled) < pollInterval/2 {
		return nil
	}
	h.polled = time.Now()
	return slices.Collect(maps.Keys(h.waiting))
}

// replay hands on all that the log has after after and returns the last sequence.
func (h *Hub) replay(ctx context.Context, id core.SessionID, after int64, yield func(Batch) error) (int64, error) {
	for {
		if ctx.Err() != nil {
			return after, context.Cause(ctx)
		}
		events, err := h.log.EventsSince(ctx, id, after, maxBatch)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return after, err
		}
		for i, e := range events {
			if want := after + 1 + int64(i); e.Sequence != want {
				return after, fmt.Errorf("log of session %s: event %d follows %d", id, e.Sequence, want-1)
			}
		}
		if len(events) == 0 {
			return after, nil
		}
		if err := yield(Batch{Events: events}); err != nil {
			return after, err
		}
		after = events[len(events)-1].Sequence
		if len(events) < maxBatch {
			return after, nil
		}
	}
}
