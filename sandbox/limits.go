package sandbox

import (
	"context"
	"fmt"
	"time"

	"agent-sandboxing/core"
)

// roomPoll is how often a session that waits for room looks again.
const roomPoll = 500 * time.Millisecond

// room waits until one more sandbox may run on this host, by number and by memory; it makes room itself
// by stopping the one that was unused for longest. started gives the place up to the container that then runs in it.
// Error: capacity, when nothing became free for as long as the service waits, or the cause of ctx.
func (s *Service) room(ctx context.Context) (started func(), err error) {
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
				"The host has had no room for one more sandbox for %v. Send the message again in some minutes, when another turn has ended.", s.roomWait))
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-look.C:
		}
	}
}

// makeRoom reserves a place when there is one, or when an unused sandbox could be stopped for it.
func (s *Service) makeRoom(ctx context.Context) (bool, error) {
	running, err := s.running(ctx)
	if err != nil {
		return false, err
	}
	tight, err := s.tight(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	over := 0
	if s.maxRunning > 0 {
		over = running + s.starting + 1 - s.maxRunning
	}
	s.starting++
	s.mu.Unlock()
	if over <= 0 && tight {
		over = 1
	}
	if over <= 0 {
		return true, nil
	}
	freed, err := s.stopOldest(ctx, over)
	if err != nil || freed < over {
		s.startedOne()
		return false, err
	}
	return true, nil
}

// startedOne gives up a place that makeRoom reserved.
func (s *Service) startedOne() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting--
}

func (s *Service) running(ctx context.Context) (int, error) {
	list, err := s.runtime.List(ctx)
	count := 0
	for _, box := range list {
		if box.Running && box.Purpose != PurposeHelper {
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
	for _, box := range rows { // the longest unused first
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
