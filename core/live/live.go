// Package live tells the processes of a session's changes as they commit: followers of a session's
// log, and workers that wait for something to do. A notification carries ids only and may be lost,
// doubled or late, so the log stays the truth: each follower reads it from where it stands.
package live

import (
	"context"
	"sync"
	"time"

	"agent-sandboxing/core"
)

const (
	maxBatch     = 100         // events of one read, and of one Batch
	pollInterval = time.Second // what a lost notification costs
)

// Log is the durable record that followers read.
type Log interface {
	// EventsSince returns up to limit events with a sequence above after, in order.
	EventsSince(ctx context.Context, id core.SessionID, after int64, limit int) ([]core.Event, error)
	// LastSequences returns the newest sequence of each session that exists.
	LastSequences(ctx context.Context, ids []core.SessionID) (map[core.SessionID]int64, error)
}

// Batch is what a follower hands on at once: events in sequence, then the messages whose growing
// answer has grown. One of the two may be empty.
type Batch struct {
	Events   []core.Event
	Partials []core.MessageID
}

// Hub wakes those who wait for a session or for work. It holds flags, never events, so a slow
// reader costs nobody else anything. It is safe for concurrent use and starts no goroutine.
type Hub struct {
	log  Log
	work chan struct{} // holds one

	mu      sync.Mutex
	waiting map[core.SessionID]map[*waiter]struct{}
	polled  time.Time
}

// waiter is one who wants to know of one session. Its fields but wake are the hub's, under its lock.
type waiter struct {
	wake     chan struct{} // holds one
	seen     int64         // the last sequence that it was given
	partials map[core.MessageID]struct{}
}

// NewHub returns a hub over log.
func NewHub(log Log) *Hub {
	return &Hub{log: log, work: make(chan struct{}, 1), waiting: map[core.SessionID]map[*waiter]struct{}{}}
}

// Wake says that the session has new events.
func (h *Hub) Wake(id core.SessionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.waiting[id] {
		signal(w.wake)
	}
}

// WakePartial says that the growing answer of a message has grown.
func (h *Hub) WakePartial(id core.SessionID, message core.MessageID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.waiting[id] {
		if w.partials == nil {
			w.partials = map[core.MessageID]struct{}{}
		}
		w.partials[message] = struct{}{}
		signal(w.wake)
	}
}

// WakeWork says that a claim may succeed.
func (h *Hub) WakeWork() { signal(h.work) }

// Work fires when a session may have become claimable.
func (h *Hub) Work() <-chan struct{} { return h.work }

// Changed fires when the session has new events or a grown answer, until stop is called.
func (h *Hub) Changed(id core.SessionID) (wake <-chan struct{}, stop func()) {
	w := h.subscribe(id)
	return w.wake, func() { h.unsubscribe(id, w) }
}

func (h *Hub) subscribe(id core.SessionID) *waiter {
	w := &waiter{wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting[id] == nil {
		h.waiting[id] = map[*waiter]struct{}{}
	}
	h.waiting[id][w] = struct{}{}
	return w
}

func (h *Hub) unsubscribe(id core.SessionID, w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting[id], w)
	if len(h.waiting[id]) == 0 {
		delete(h.waiting, id)
	}
}

// saw records how far a follower has come.
func (h *Hub) saw(w *waiter, sequence int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.seen = sequence
}

// takePartials returns and forgets which answers have grown.
func (h *Hub) takePartials(w *waiter) []core.MessageID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []core.MessageID
	for id := range w.partials {
		ids = append(ids, id)
	}
	clear(w.partials)
	return ids
}

func signal(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}
