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
	reconcileEvery = time.Minute
)

// Run keeps house until ctx ends, and the pool, which it drains then: it compares rows with containers at once and then every minute, and
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
		case time.Since(box.LastUsedAt) > s.idle:
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

// stop takes one sandbox from ready over stopping to stopped; false when somebody uses it. It can be
// repeated: a stop that was begun and not finished is taken up where the row says.
func (s *Service) stop(ctx context.Context, box core.Sandbox, code, message string) (bool, error) {
	unlock, _ := s.sessions.take(box.SessionID)
	if unlock == nil {
		return false, nil
	}
	defer unlock()
	var events []core.Payload
	if box.State != core.SandboxStopping {
		box.State = core.SandboxStopping
		event := changed(box)
		event.Code, event.Message = code, message
		events = append(events, event)
	}
	free, err := s.mark(ctx, box, events...)
	if err != nil || !free {
		return false, err
	}
	if err := s.runtime.Stop(ctx, box.RuntimeRef); err != nil && core.CodeOf(err) != "sandbox_lost" {
		return false, err
	}
	// Another worker may have claimed the session meanwhile and gone on with a new generation.
	now, err := s.store.LiveSandbox(ctx, box.SessionID)
	if err != nil || now == nil || now.State != core.SandboxStopping || now.Generation != box.Generation {
		return false, err
	}
	box.State = core.SandboxStopped
	return s.mark(ctx, box, changed(box))
}

// mark changes a row that no turn uses; false when one does, or when a newer generation is there.
func (s *Service) mark(ctx context.Context, box core.Sandbox, events ...core.Payload) (bool, error) {
	free, err := s.store.MarkSandbox(ctx, box, events...)
	if core.CodeOf(err) == "sandbox_superseded" {
		return false, nil
	}
	return free, err
}
