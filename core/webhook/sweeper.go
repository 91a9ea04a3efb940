package webhook

import (
	"context"
	"log/slog"
	"time"

	"agent-sandboxing/core"
)

// Hooks is what the App can ask about its deliveries.
type Hooks interface {
	// HookDeliveries lists attempts since a time, the newest first.
	HookDeliveries(ctx context.Context, since time.Time) ([]core.DeliveryAttempt, error)
	Redeliver(ctx context.Context, id int64) error
}

// Received knows what has been here.
type Received interface {
	// Due says that it is time for a chore and that the caller is the one to do it.
	Due(ctx context.Context, chore string, every time.Duration) (bool, error)
	Deliveries(ctx context.Context, guids []string) (map[string]bool, error)
	PruneDeliveries(ctx context.Context) (int64, error)
}

const (
	sweepEvery = time.Hour
	// sweepBack is how long GitHub can send a delivery again, less an hour.
	sweepBack = 71 * time.Hour
	// maxRedeliver bounds what one sweep asks for.
	maxRedeliver = 100
)

// Sweeper asks GitHub to send again what did not get here. GitHub does not do that by itself.
type Sweeper struct {
	Hooks    Hooks
	Received Received
	Now      func() time.Time
	Log      *slog.Logger
}

// Run sweeps hourly, in one of all workers at a time, until ctx ends.
func (s Sweeper) Run(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		due, err := s.Received.Due(ctx, "webhook_sweep", sweepEvery)
		if err == nil && due {
			err = s.sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.Log.LogAttrs(ctx, slog.LevelWarn, "webhook_sweep_failed", slog.String("code", core.CodeOf(err)), slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s Sweeper) sweep(ctx context.Context) error {
	asked, err := s.Sweep(ctx)
	if err == nil && asked > 0 {
		s.Log.LogAttrs(ctx, slog.LevelInfo, "webhook_redelivery", slog.Int("asked", asked))
	}
	if err == nil {
		_, err = s.Received.PruneDeliveries(ctx)
	}
	return err
}

// Sweep asks once for each delivery of which no attempt came through, and says for how many. When none
// at all came through, the webhook is off or leads elsewhere, and asking would not help.
func (s Sweeper) Sweep(ctx context.Context) (asked int, err error) {
	attempts, err := s.Hooks.HookDeliveries(ctx, s.Now().Add(-sweepBack))
	if err != nil {
		return 0, err
	}
	works := false
	newest := map[string]core.DeliveryAttempt{}
	done := map[string]bool{}
	var guids []string
	for _, a := range attempts {
		if _, seen := newest[a.GUID]; !seen {
			newest[a.GUID] = a
			guids = append(guids, a.GUID)
		}
		done[a.GUID] = done[a.GUID] || a.OK
		works = works || a.OK
	}
	if !works {
		return 0, nil
	}
	here, err := s.Received.Deliveries(ctx, guids)
	if err != nil {
		return 0, err
	}
	for _, guid := range guids {
		if done[guid] || here[guid] || asked >= maxRedeliver {
			continue
		}
		if err := s.Hooks.Redeliver(ctx, newest[guid].ID); err != nil {
			return asked, err
		}
		asked++
	}
	return asked, nil
}
