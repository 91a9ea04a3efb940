package sandbox

import (
	"context"
	"fmt"
	"slices"

	"agent-sandboxing/core"
)

// room makes sure that one more sandbox may run on this host, by stopping the one that was unused for
// longest. started gives the place up to the container that then runs in it. Error: capacity.
func (s *Service) room(ctx context.Context) (started func(), err error) {
	if s.maxRunning <= 0 {
		return func() {}, nil
	}
	running, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	over := running + s.starting + 1 - s.maxRunning
	s.starting++
	s.mu.Unlock()
	started = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.starting--
	}
	if over > 0 {
		freed, err := s.stopOldest(ctx, over)
		if err != nil || freed < over {
			started()
			return nil, core.Fail(core.Unavailable, "capacity", fmt.Sprintf(
				"All %d sandboxes of this host are in use. Send the message again when another turn has ended.", s.maxRunning)).Because(err)
		}
	}
	return started, nil
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
