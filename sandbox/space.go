package sandbox

import (
	"context"
	"fmt"

	"agent-sandboxing/core"
)

// memoryReserve is what the host must have left for one more sandbox to start, in bytes. Its own limit
// ends it long after the host has begun to suffer.
const memoryReserve = 256 << 20

// admit refuses a sandbox that would take the host's last disk space; fresh says that it needs a new
// volume. A kept volume is let in for longer: its session can still clean up, and loses nothing.
func (s *Service) admit(ctx context.Context, fresh bool) error {
	if s.reserve <= 0 {
		return nil
	}
	space, err := s.runtime.Space(ctx)
	if err != nil {
		return err
	}
	least := s.reserve
	if !fresh {
		least /= 4
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
	space, err := s.runtime.Space(ctx)
	return space.Known && space.Memory < memoryReserve, err
}
