package sandbox

import (
	"sync"
	"time"

	"agent-sandboxing/core"
)

// suspects remembers since when things belong to nobody, by this process's own clock: what is only
// about to be claimed must not be removed.
type suspects struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// lasting takes all that belongs to nobody now and returns what has been so at every look for at least
// as long as patience.
func (s *suspects) lasting(now time.Time, patience time.Duration, nobodys []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := make(map[string]time.Time, len(nobodys))
	var due []string
	for _, name := range nobodys {
		first, known := s.since[name]
		if !known {
			first = now
		}
		since[name] = first
		if known && now.Sub(first) >= patience {
			due = append(due, name)
		}
	}
	s.since = since
	return due
}

// Waits between two tries of a stop that fails: a container that cannot be killed must not hold up
// the others.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
)

// retries spreads out the tries of what fails again and again.
type retries struct {
	mu     sync.Mutex
	failed map[core.SandboxID]retry
}

type retry struct {
	wait time.Duration
	at   time.Time
}

// due says whether it may be tried now.
func (r *retries) due(id core.SandboxID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !now.Before(r.failed[id].at)
}

// note takes how a try ended; each failure doubles the wait.
func (r *retries) note(id core.SandboxID, now time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.failed, id)
		return
	}
	wait := min(max(firstRetry, 2*r.failed[id].wait), lastRetry)
	r.failed[id] = retry{wait: wait, at: now.Add(wait)}
}
