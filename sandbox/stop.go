package sandbox

import (
	"bytes"
	"context"
	"errors"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// What a stop may take: the checkpoint before it, the stop itself, and for all of it the session is
// held against other workers.
const (
	saveWithin = 30 * time.Second
	stopWithin = 15 * time.Second
	holdFor    = saveWithin + stopWithin + settleWithin
)

// stop takes one sandbox from ready over stopping to stopped, its work saved; false when somebody uses
// it. It can be repeated: a stop that was begun and not finished is taken up where the row says.
func (s *Service) stop(ctx context.Context, box core.Sandbox, code, message string) (bool, error) {
	if !s.stops.due(box.ID, time.Now()) {
		return false, nil
	}
	return s.held(ctx, box, func(lease core.Lease) (err error) {
		defer func() { s.stops.note(box.ID, time.Now(), err) }()
		return s.stopHeld(ctx, lease, box, code, message)
	})
}

// held does something with a sandbox while nobody can claim its session; false when somebody uses it, or
// has gone on since box was read.
func (s *Service) held(ctx context.Context, box core.Sandbox, do func(core.Lease) error) (bool, error) {
	unlock, _ := s.sessions.take(box.SessionID)
	if unlock == nil {
		return false, nil
	}
	defer unlock()
	lease, err := s.store.HoldSession(ctx, box.SessionID, holdFor)
	if errors.Is(err, core.ErrNoWork) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.giveBack(ctx, lease)
	if same, err := s.still(ctx, box); err != nil || !same {
		return false, err
	}
	err = do(lease)
	return err == nil, err
}

func (s *Service) stopHeld(ctx context.Context, lease core.Lease, box core.Sandbox, code, message string) error {
	if box.State == core.SandboxReady {
		s.save(ctx, lease, &box)
		box.State = core.SandboxStopping
		event := changed(box)
		event.Code, event.Message = code, message
		if err := s.store.SaveSandbox(ctx, lease, box, event); err != nil {
			return err
		}
	}
	if err := s.end(ctx, box.RuntimeRef); err != nil {
		return err
	}
	box.State = core.SandboxStopped
	return s.store.SaveSandbox(ctx, lease, box, changed(box))
}

// end stops a container; one that is gone has ended.
func (s *Service) end(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if err := s.runtime.Stop(ctx, ref); err != nil && core.CodeOf(err) != "sandbox_lost" {
		return err
	}
	return nil
}

// save makes a checkpoint of a work tree that may hold what none has, because its turn could not. A
// failure is recorded and keeps nobody from stopping: the volume stays.
func (s *Service) save(ctx context.Context, lease core.Lease, box *core.Sandbox) {
	if !box.Unsaved {
		return
	}
	err := s.checkpoint(ctx, lease, *box)
	if err == nil {
		box.Unsaved = false
		return
	}
	s.log.WarnContext(ctx, "checkpoint before a stop", "error", err, "session_id", box.SessionID, "sandbox_id", box.ID)
	failed := core.CaptureFailed{What: "checkpoint", Code: core.CodeOf(err), Message: core.MessageOf(err)}
	if err := s.store.SaveSandbox(ctx, lease, *box, failed); err != nil {
		s.log.WarnContext(ctx, "record a failed checkpoint", "error", err, "sandbox_id", box.ID)
	}
}

func (s *Service) checkpoint(ctx context.Context, lease core.Lease, box core.Sandbox) error {
	ctx, cancel := context.WithTimeout(ctx, saveWithin)
	defer cancel()
	ws, err := Attach(ctx, s.runtime, box.RuntimeRef, toolbox.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = ws.Close() }()
	var archive bytes.Buffer
	info, err := ws.Checkpoint(ctx, &archive, core.MaxCheckpoint)
	if err != nil {
		return err
	}
	return s.store.SaveCheckpoint(ctx, lease, core.Checkpoint{
		ID: core.NewID[core.CheckpointID](), SessionID: box.SessionID, Info: info, Archive: archive.Bytes(),
	})
}

func (s *Service) giveBack(ctx context.Context, lease core.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	if err := s.store.Release(ctx, lease); err != nil && !errors.Is(err, core.ErrLeaseLost) {
		s.log.WarnContext(ctx, "give back a held session", "error", err, "session_id", lease.SessionID)
	}
}
