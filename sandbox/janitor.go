package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"agent-sandboxing/core"
)

// How often the janitor serves stop requests and idle sandboxes, and compares rows with containers.
const (
	sweepEvery     = 2 * time.Second
	reconcileEvery = 5 * time.Second
)

// Run keeps house until ctx ends, and the pool, which it drains then: it compares rows with containers at once and then every 5 s, and
// stops what was asked to stop, what is idle and what is too much. Failures are logged and tried again.
func (s *Service) Run(ctx context.Context) {
	sweep, reconcile := time.NewTicker(sweepEvery), time.NewTicker(reconcileEvery)
	defer sweep.Stop()
	defer reconcile.Stop()
	s.try(ctx, "reconcile sandboxes", s.Reconcile)
	var pool sync.WaitGroup
	pool.Go(func() { s.keepPool(ctx) })
	defer pool.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reconcile.C:
			s.try(ctx, "reconcile sandboxes", s.Reconcile)
		case <-sweep.C:
			if s.away.Load() {
				s.try(ctx, "ask the runtime", func(ctx context.Context) error { _, err := s.ask(ctx); return err })
				continue
			}
			s.try(ctx, "sweep sandboxes", s.Sweep)
		}
	}
}

func (s *Service) try(ctx context.Context, what string, do func(context.Context) error) {
	if err := do(ctx); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "sandbox housekeeping", "step", what, "error", err)
	}
}

// Sweep stops the sandboxes of this host that were asked to stop, that are idle, and, the longest
// unused first, those above the bound. A sandbox whose session has an owner is left alone.
func (s *Service) Sweep(ctx context.Context) error {
	here, err := s.here(ctx)
	if err != nil {
		return err
	}
	rows, err := s.store.SandboxesOn(ctx, here.host)
	if err != nil {
		return err
	}
	var failures []error
	for _, box := range rows {
		var err error
		switch {
		case box.State == core.SandboxStopping:
			_, err = s.stop(ctx, box, "", "")
		case box.State != core.SandboxReady:
		case !box.StopRequestedAt.IsZero():
			_, err = s.stop(ctx, box, "stop_requested", "A person asked for it. The next message starts it again.")
		case box.Unused > s.idle:
			_, err = s.stop(ctx, box, "idle", "It was not used for a while. The next message starts it again.")
		}
		failures = append(failures, err)
	}
	if s.maxRunning > 0 {
		running, err := s.running(ctx)
		if err == nil && running > s.maxRunning {
			_, err = s.stopSome(ctx, running-s.maxRunning)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
