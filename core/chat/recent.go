package chat

import (
	"maps"
	"sync"
	"time"
)

// recent remembers answers for a fixed time. It holds no more than maxRecent of them, so that many
// people cannot fill the memory.
type recent[K comparable, V any] struct {
	ttl     time.Duration
	mu      sync.Mutex
	entries map[K]kept[V]
}

type kept[V any] struct {
	value V
	until time.Time
}

const maxRecent = 4096

func newRecent[K comparable, V any](ttl time.Duration) *recent[K, V] {
	return &recent[K, V]{ttl: ttl, entries: make(map[K]kept[V])}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[key]
	if !ok || time.Now().After(e.until) {
		var none V
		return none, false
	}
	return e.value, true
}

func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if len(r.entries) >= maxRecent {
		maps.DeleteFunc(r.entries, func(_ K, e kept[V]) bool { return now.After(e.until) })
	}
	if len(r.entries) >= maxRecent {
		clear(r.entries)
	}
	r.entries[key] = kept[V]{value: value, until: now.Add(r.ttl)}
}

// forget drops every entry whose key matches.
func (r *recent[K, V]) forget(match func(K) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.entries, func(k K, _ kept[V]) bool { return match(k) })
}
