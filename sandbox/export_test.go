package sandbox

import (
	"time"

	"agent-sandboxing/core"
)

// LosePatience lets the second look that finds something orphaned remove it.
func (s *Service) LosePatience() { s.patience = 0 }

// Quoted is what messages quote of a container that did not start.
func Quoted(said []byte) string { return quoted(said) }

// Suspects and Retries, for their own tests.
type (
	Suspects = suspects
	Retries  = retries
)

func (s *suspects) Lasting(now time.Time, patience time.Duration, nobodys []string) []string {
	return s.lasting(now, patience, nobodys)
}

func NewRetries() *Retries { return &retries{failed: map[core.SandboxID]retry{}} }

func (r *retries) Due(id core.SandboxID, now time.Time) bool { return r.due(id, now) }

func (r *retries) Note(id core.SandboxID, now time.Time, err error) { r.note(id, now, err) }
