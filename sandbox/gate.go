package sandbox

import (
	"context"
	"sync"

	"agent-sandboxing/core"
)

// gate lets one goroutine of this process work on a session's sandbox at a time. Among processes the
// lease and the generation do that.
type gate struct {
	mu   sync.Mutex
	held map[core.SessionID]chan struct{} // closed at unlock
}

// lock waits for the session, or fails with the cause of ctx.
func (g *gate) lock(ctx context.Context, id core.SessionID) (unlock func(), err error) {
	for {
		unlock, busy := g.take(id)
		if unlock != nil {
			return unlock, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take locks the session when it is free, else returns what is closed when it may be free again.
func (g *gate) take(id core.SessionID) (unlock func(), busy <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if done, ok := g.held[id]; ok {
		return nil, done
	}
	done := make(chan struct{})
	g.held[id] = done
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.held, id)
		close(done)
	}, nil
}
