package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// eventWithin is how long the daemon may take to tell of what the kernel did.
const eventWithin = 500 * time.Millisecond

// OutOfMemory asks for the daemon's word where the sandbox's own kernel counts nothing, which is gVisor's.
// The daemon's clock counts, because it may be on another machine.
func (r *Runtime) OutOfMemory(ctx context.Context, ref string, within time.Duration) (bool, error) {
	if r.config.Runtime != gvisor {
		return false, nil
	}
	info, err := r.info(ctx)
	if err != nil {
		return false, err
	}
	now, err := time.Parse(time.RFC3339Nano, info.SystemTime)
	if err != nil {
		return false, translate("read the daemon's clock", err)
	}
	told := false
	err = r.ask(ctx, "ask why a command was killed", func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		happened, ended := r.api.Events(ctx, events.ListOptions{
			Since: stamp(now.Add(-within)), Until: stamp(now.Add(eventWithin)),
			Filters: filters.NewArgs(filters.Arg("type", string(events.ContainerEventType)), filters.Arg("container", ref), filters.Arg("event", string(events.ActionOOM))),
		})
		select {
		case <-happened:
			told = true
			return nil
		case err := <-ended:
			if errors.Is(err, io.EOF) { // nothing until then
				return nil
			}
			return err
		}
	})
	return told, err
}

// stamp is a moment as the events API takes it.
func stamp(at time.Time) string { return fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond()) }
