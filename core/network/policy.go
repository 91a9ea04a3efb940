package network

import (
	"context"
	"maps"
	"sync"
	"time"

	"agent-sandboxing/core"
)

// policyTTL is how long a session's policy may be used again: a host that somebody allows holds for
// the running turn after at most that time, and a build of thousands of connections asks rarely.
const policyTTL = time.Second

// lookWithin bounds one look into the database, which does not end with the connection that began it.
const lookWithin = 5 * time.Second

// policies are the sessions' as of at most policyTTL ago.
type policies struct {
	mu    sync.Mutex
	known map[core.SessionID]knownPolicy
}

type knownPolicy struct {
	policy core.EgressPolicy
	until  time.Time
}

func newPolicies() policies { return policies{known: make(map[core.SessionID]knownPolicy)} }

// EgressPolicy is what a session's sandbox may reach now: the mode that it began with or the
// operator's stricter one, and the hosts of the operator and of the repository.
func (s *Service) EgressPolicy(ctx context.Context, session core.SessionID) (core.EgressPolicy, error) {
	if p, ok := s.policies.get(session); ok {
		return p, nil
	}
	// All connections that ask meanwhile wait for the same answer, each for as long as it likes.
	flight := s.looking.DoChan(string(session), func() (any, error) {
		if p, ok := s.policies.get(session); ok {
			return p, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
		defer cancel()
		p, err := s.store.SessionEgress(ctx, session)
		if err != nil {
			return core.EgressPolicy{}, err
		}
		p = p.Under(s.ceiling, s.hosts)
		s.policies.put(session, p)
		return p, nil
	})
	select {
	case got := <-flight:
		return got.Val.(core.EgressPolicy), got.Err
	case <-ctx.Done():
		return core.EgressPolicy{}, context.Cause(ctx)
	}
}

func (p *policies) get(session core.SessionID) (core.EgressPolicy, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.known[session]
	return k.policy, ok && time.Now().Before(k.until)
}

// put also drops what is too old, so that the map holds the sessions at work and no others.
func (p *policies) put(session core.SessionID, policy core.EgressPolicy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.known, func(_ core.SessionID, k knownPolicy) bool { return now.After(k.until) })
	p.known[session] = knownPolicy{policy, now.Add(policyTTL)}
}
