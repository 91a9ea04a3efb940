package sandbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agent-sandboxing/core"
)

// roomPoll is how often a session that waits for room looks again.
const roomPoll = 500 * time.Millisecond

// room waits until one more sandbox may run on this host; it makes room itself by stopping the one
// that was unused for longest. started gives the place up to the container that then runs in it.
// Error: capacity, when nothing became free for as long as the service waits, or the cause of ctx.
func (s *Service) room(ctx context.Context) (started func(), err error) {
	if s.maxRunning <= 0 {
		return func() {}, nil
	}
	look := time.NewTicker(roomPoll)
	defer look.Stop()
	for deadline := time.Now().Add(s.roomWait); ; {
		free, err := s.makeRoom(ctx)
		if err != nil {
			return nil, err
		}
		if free {
			return s.startedOne, nil
		}
		if time.Now().After(deadline) {
			return nil, core.Fail(core.Unavailable, "capacity", fmt.Sprintf(
				"All %d sandboxes of this host have been in use for a long time. Send the message again when another turn has ended.", s.maxRunning))
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-look.C:
		}
	}
}

// makeRoom reserves a place when there is one, or when a sandbox could be stopped for it that waits
// in the pool or that no turn uses.
func (s *Service) makeRoom(ctx context.Context) (bool, error) {
	over, err := s.reserve(ctx)
	freed := 0
	if err == nil && over > 0 {
		freed, err = s.stopSome(ctx, over)
	}
	if err != nil || freed < over {
		s.startedOne()
		return false, err
	}
	return true, nil
}

// stopSome stops up to n sandboxes, those that nobody has first, and says how many.
func (s *Service) stopSome(ctx context.Context, n int) (stopped int, err error) {
	if stopped, err = s.shrinkPool(ctx, n); err != nil || stopped == n {
		return stopped, err
	}
	more, err := s.stopOldest(ctx, n-stopped)
	return stopped + more, err
}

// reserve takes a place, by an error too, until startedOne, and says by how many sandboxes the host
// would then be over its bound.
func (s *Service) reserve(ctx context.Context) (over int, err error) {
	s.mu.Lock()
	s.starting++
	starting := s.starting
	s.mu.Unlock()
	if s.maxRunning <= 0 {
		return 0, nil
	}
	running, err := s.running(ctx)
	return max(0, running+starting-s.maxRunning), err
}

// startedOne gives up a place that reserve took.
func (s *Service) startedOne() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting--
}

func (s *Service) running(ctx context.Context) (int, error) {
	list, err := s.runtime.List(ctx)
	count := 0
	for _, box := range list {
		if box.Running {
			count++
		}
	}
	return count, err
}

// stopOldest stops up to n sandboxes that no turn uses, the longest unused first, and says how many.
func (s *Service) stopOldest(ctx context.Context, n int) (stopped int, err error) {
	here, err := s.here(ctx)
	if err != nil {
		return 0, err
	}
	rows, err := s.store.SandboxesOn(ctx, here.host)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(rows, func(a, b core.Sandbox) int { return a.LastUsedAt.Compare(b.LastUsedAt) })
	for _, box := range rows {
		if stopped == n {
			break
		}
		if box.State != core.SandboxReady {
			continue
		}
		done, err := s.stop(ctx, box, "host_full", "Another session needed the room. The next message starts it again.")
		if err != nil {
			return stopped, err
		}
		if done {
			stopped++
		}
	}
	return stopped, nil
}
