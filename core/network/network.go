// Package network is the control plane's memory of what sandboxes may reach and what they did reach:
// the policy of each session, and the record of its connections.
package network

import (
	"context"
	"log/slog"

	"golang.org/x/sync/singleflight"

	"agent-sandboxing/core"
)

// Store keeps what outlives the process.
type Store interface {
	// SessionEgress is the mode that a session began with, the hosts that its repository lists now, and
	// what its sandbox has moved.
	SessionEgress(ctx context.Context, id core.SessionID) (core.EgressPolicy, error)
	// RecordEgress adds to what a session's sandbox has reached. NotFound when the session is gone.
	RecordEgress(ctx context.Context, session core.SessionID, rows []core.EgressRow) error
}

// Options is what a Service is made of.
type Options struct {
	Store Store
	// Ceiling is the operator's mode: no session gets a looser one, whatever it began with.
	Ceiling core.EgressMode
	// Hosts are the operator's, for every repository.
	Hosts []string
	Log   *slog.Logger
}

// Service answers what a session may reach and records what it reached. It is safe for concurrent use.
type Service struct {
	store   Store
	ceiling core.EgressMode
	hosts   []string
	log     *slog.Logger

	policies policies
	looking  singleflight.Group
	pending  pending
	writing  chan struct{} // holds one element while rows are written
}

// New makes a Service; Run starts it.
func New(o Options) *Service {
	return &Service{
		store: o.Store, ceiling: o.Ceiling, hosts: o.Hosts, log: o.Log,
		policies: newPolicies(), pending: newPending(), writing: make(chan struct{}, 1),
	}
}
