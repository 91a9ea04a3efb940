package sandbox

import (
	"context"
	"fmt"
	"math"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

const (
	// memoryReserve is what the host must have left for one more sandbox to start, in bytes. Its own
	// limit ends it long after the host has begun to suffer.
	memoryReserve = 256 << 20
	// keptEighths of the reserve of disk let a kept workspace go on, and below endEighths of it a command
	// that writes is ended: sooner, so that no session can take from the others what they start with.
	keptEighths = 2
	endEighths  = 3
	// heardFor is how long what a sandbox said of its host's disk is believed.
	heardFor = 10 * time.Minute
)

// heard is what a sandbox said of its host.
type heard struct {
	disk int64
	at   time.Time
}

// hear asks a container that was just started what disk its host has left, for a host that cannot be
// seen from here. Nothing of a repository has run in it since, so that it has no reason to lie.
func (s *Service) hear(ctx context.Context, ws *toolbox.Client) {
	if disk, err := ws.Space(ctx); err == nil {
		s.heard.Store(&heard{disk: disk, at: time.Now()})
	}
}

// space is what the host has left, as far as anybody knows.
func (s *Service) space(ctx context.Context) (Space, error) {
	seen, err := s.runtime.Space(ctx)
	if err != nil || seen.Known {
		return seen, err
	}
	if last := s.heard.Load(); last != nil && time.Since(last.at) < heardFor {
		return Space{Known: true, Disk: last.disk, Memory: math.MaxInt64}, nil
	}
	return Space{}, nil
}

// admit refuses a sandbox that would take the host's last disk space; fresh says that it needs a new
// volume. A kept volume is let in for longer: its session can still clean up, and loses nothing.
func (s *Service) admit(ctx context.Context, fresh bool) error {
	if s.reserve <= 0 {
		return nil
	}
	space, err := s.space(ctx)
	if err != nil {
		return err
	}
	least := s.reserve
	if !fresh {
		least = s.reserve / 8 * keptEighths
	}
	if !space.Known || space.Disk >= least {
		return nil
	}
	return core.Fail(core.Unavailable, "disk_low", fmt.Sprintf(
		"The sandbox host has only %d MiB of disk left, and this needs %d. Nothing was started; send the message again when an operator has freed space.",
		space.Disk>>20, least>>20))
}

// tight says that one more sandbox could take the host's last memory.
func (s *Service) tight(ctx context.Context) (bool, error) {
	space, err := s.space(ctx)
	return space.Known && space.Memory < memoryReserve, err
}
