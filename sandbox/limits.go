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
// by stopping the one that was unused for longest. started gives the place up to the container that then
// runs in it. Error: capacity, when nothing became free for as long as the service waits, or the cause of ctx.
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

// makeRoom reserves a place when there is one, or when a sandbox could be stopped for it that waits
// in the pool or that no turn uses.
func (s *Service) makeRoom(ctx context.Context) (bool, error) {
	over, err := s.takePlace(ctx)
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

// takePlace reserves a place, with an error too, and says by how many sandboxes the host is then over
// its bounds. startedOne gives the place up.
func (s *Service) takePlace(ctx context.Context) (over int, err error) {
	s.mu.Lock()
	s.starting++
	starting := s.starting
	s.mu.Unlock()
	running, err := s.running(ctx)
	if err != nil {
		return 0, err
	}
	tight, err := s.tight(ctx)
	if s.maxRunning > 0 {
		over = running + starting - s.maxRunning
	}
	if over <= 0 && tight {
		over = 1
	}
	return max(0, over), err
}

// stopSome stops up to n sandboxes, those that nobody has first, and says how many.
func (s *Service) stopSome(ctx context.Context, n int) (stopped int, err error) {
	if stopped, err = s.shrinkPool(ctx, n); err != nil || stopped == n {
		return stopped, err
	}
	more, err := s.stopOldest(ctx, n-stopped)
	return stopped + more, err
}

// startedOne gives up a place that takePlace reserved.
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
		if err != nil { // it must not cost the one that waits its turn; another one may obey
			s.log.WarnContext(ctx, "stop for room", "error", err, "session_id", box.SessionID, "sandbox_id", box.ID)
		}
		if done {
			stopped++
		}
	}
	return stopped, nil
}
