package sandbox

import (
	"context"
	"errors"

	"agent-sandboxing/core"
)

// Reconcile compares this host's containers with the rows, both ways: a container that no row speaks
// for is removed (its volume stays), a row whose container is gone or stands still says so. Whatever a
// turn is working with is left alone; so are containers of other installations, which it never sees.
func (s *Service) Reconcile(ctx context.Context) error {
	here, err := s.here(ctx)
	if err != nil {
		return err
	}
	// Containers first: a row is always written before its container is made.
	list, err := s.runtime.List(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, there := range list {
		row, err := s.rowOf(ctx, there)
		if err != nil {
			return err
		}
		if row == nil && there.Purpose == PurposePool {
			failures = append(failures, s.reconcileMember(ctx, there))
			continue
		}
		if row != nil && row.ID == there.Sandbox && row.Generation == there.Generation && row.Host == here.host && row.State != core.SandboxFailed {
			continue
		}
		// No claim goes back to it: one that begins now makes a new generation.
		s.log.InfoContext(ctx, "remove stale container", "session_id", there.Session, "sandbox_id", there.Sandbox, "generation", there.Generation)
		failures = append(failures, s.runtime.Remove(ctx, there.Ref, false))
	}
	rows, err := s.store.SandboxesOn(ctx, here.host)
	if err != nil {
		return err
	}
	for _, box := range rows {
		failures = append(failures, s.compare(ctx, box))
	}
	return errors.Join(failures...)
}

// compare brings one row to what its container is like.
func (s *Service) compare(ctx context.Context, box core.Sandbox) error {
	unlock, _ := s.sessions.take(box.SessionID)
	if unlock == nil {
		return nil
	}
	defer unlock()
	there, err := s.runtime.Inspect(ctx, box.RuntimeRef)
	if err != nil && core.CodeOf(err) != "sandbox_lost" {
		return err
	}
	switch box.State {
	case core.SandboxCreating: // its maker could not even write that it failed
		box.State = core.SandboxFailed
		box.FailureCode, box.FailureText = "preparation_interrupted", "The preparation was interrupted. The next message starts it again."
	case core.SandboxReady:
		if there.Running {
			return nil
		}
		box.State = core.SandboxStopped
	case core.SandboxStopped:
		if !there.Running {
			return nil
		}
		if free, err := s.mark(ctx, box); err != nil || !free {
			return err
		}
		return s.runtime.Stop(ctx, box.RuntimeRef)
	case core.SandboxStopping, core.SandboxFailed: // Sweep finishes the one, the next message the other
		return nil
	}
	_, err = s.mark(ctx, box, changed(box))
	return err
}

// rowOf is the row of the sandbox that a container was made for, or nil.
func (s *Service) rowOf(ctx context.Context, there Status) (*core.Sandbox, error) {
	rows, err := s.store.SandboxesByID(ctx, []core.SandboxID{there.Sandbox})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// RemoveAll removes every container of this installation on this host and keeps the volumes, for a
// server that leaves nothing running behind. The next message makes a new container on the volume.
func (s *Service) RemoveAll(ctx context.Context) error {
	list, err := s.runtime.List(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, there := range list {
		if err := s.runtime.Remove(ctx, there.Ref, false); err != nil {
			failures = append(failures, err)
			continue
		}
		row, err := s.rowOf(ctx, there)
		if err == nil && row != nil && row.Generation == there.Generation && (row.State == core.SandboxReady || row.State == core.SandboxStopping) {
			row.State = core.SandboxStopped
			_, err = s.mark(ctx, *row, changed(*row))
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
