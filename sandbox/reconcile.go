package sandbox

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core"
)

// orphanPatience is how long a volume, or a helper's container, must have belonged to nobody before it
// is removed. It is longer than any step between the making of a thing and the row that names it.
const orphanPatience = 2 * time.Minute

// Reconcile compares this host's containers and volumes with the rows, both ways: a container that no
// row speaks for is removed (its volume stays), one that nobody needs runs no longer, a row whose
// container is gone or stands still says so, and a volume that no row names is removed once that has
// lasted. Whatever a turn is working with is left alone; so are the members of the pool
// and everything of other installations, which it never sees.
//
// No stream of the daemon's events is followed. A container that dies under a turn ends the turn's
// attach at once, and one that dies between two turns is looked at before it is used again.
func (s *Service) Reconcile(ctx context.Context) error {
	here, err := s.here(ctx)
	if err != nil {
		return err
	}
	// Containers and volumes first: a row is always written before what it names is made.
	list, err := s.runtime.List(ctx)
	if err != nil {
		return err
	}
	volumes, err := s.runtime.Volumes(ctx)
	if err != nil {
		return err
	}
	rows, err := s.rowsOf(ctx, list, volumes)
	if err != nil {
		return err
	}
	failures := []error{s.removeOrphans(ctx, list, volumes, rows)}
	found := map[core.SandboxID]Status{}
	for _, there := range list {
		row, named := rows[there.Sandbox]
		switch {
		case there.Purpose == PurposeHelper:
			continue
		case there.Purpose == PurposePool && !named:
			failures = append(failures, s.reconcileMember(ctx, there))
			continue
		case named && row.Generation == there.Generation && row.Host == here.host && row.State != core.SandboxFailed:
			found[row.ID] = there
			if row.State == core.SandboxStopped {
				failures = append(failures, s.rest(ctx, row, there))
			}
			continue
		}
		// No claim goes back to it: one that begins now makes a new generation.
		s.log.InfoContext(ctx, "remove stale container", "session_id", there.Session, "sandbox_id", there.Sandbox, "generation", there.Generation)
		failures = append(failures, s.runtime.Remove(ctx, there.Ref, false))
	}
	running, err := s.store.SandboxesOn(ctx, here.host)
	if err != nil {
		return err
	}
	for _, box := range running {
		failures = append(failures, s.compare(ctx, box, found[box.ID]))
	}
	return errors.Join(append(failures, s.dispense(ctx, here.host))...)
}

// dispense takes containers and volumes from archived sessions whose checkpoint is whole. Should one be
// taken up again, it is rebuilt from there. The volume is nobody's then and goes as such.
func (s *Service) dispense(ctx context.Context, host string) error {
	rows, err := s.store.DispensableVolumes(ctx, host)
	failures := []error{err}
	for _, box := range rows {
		ref := box.RuntimeRef
		box.RuntimeRef, box.Volume, box.CheckedOut = "", "", false
		free, err := s.mark(ctx, box)
		if err == nil && free && ref != "" {
			err = s.runtime.Remove(ctx, ref, false)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func (s *Service) rowsOf(ctx context.Context, list []Status, volumes []Volume) (map[core.SandboxID]core.Sandbox, error) {
	var ids []core.SandboxID
	for _, there := range list {
		if there.Sandbox != "" {
			ids = append(ids, there.Sandbox)
		}
	}
	for _, v := range volumes {
		ids = append(ids, v.Sandbox)
	}
	boxes, err := s.store.SandboxesByID(ctx, ids)
	rows := make(map[core.SandboxID]core.Sandbox, len(boxes))
	for _, box := range boxes {
		rows[box.ID] = box
	}
	return rows, err
}

// removeOrphans removes volumes of sessions that are gone or go on in another one, and what a crash
// left of a helper.
func (s *Service) removeOrphans(ctx context.Context, list []Status, volumes []Volume, rows map[core.SandboxID]core.Sandbox) error {
	used := map[string]bool{}
	var nobodys []string
	for _, there := range list {
		used[there.Volume] = true
		if there.Purpose == PurposeHelper {
			nobodys = append(nobodys, there.Ref)
		}
	}
	isVolume := map[string]bool{}
	for _, v := range volumes {
		row, named := rows[v.Sandbox]
		if !used[v.Name] && (!named || row.Volume != v.Name && row.State != core.SandboxCreating) {
			isVolume[v.Name] = true
			nobodys = append(nobodys, v.Name)
		}
	}
	var failures []error
	for _, name := range s.orphans.lasting(time.Now(), s.patience, nobodys) {
		s.log.InfoContext(ctx, "remove what belongs to no session", "name", name)
		if isVolume[name] {
			failures = append(failures, s.runtime.RemoveVolume(ctx, name))
		} else {
			failures = append(failures, s.runtime.Remove(ctx, name, false))
		}
	}
	return errors.Join(failures...)
}

// rest makes sure that a stopped sandbox does not run, and keeps no container that would be too old to
// be started again.
func (s *Service) rest(ctx context.Context, box core.Sandbox, there Status) error {
	if !there.Running && box.Age <= s.maxAge {
		return nil
	}
	_, err := s.held(ctx, box, func(core.Lease) error {
		if box.Age > s.maxAge {
			return s.runtime.Remove(ctx, there.Ref, false)
		}
		return s.end(ctx, there.Ref)
	})
	return err
}

// compare brings the row of a sandbox that should run to what its container is like. there is what the
// list said before the row was read.
func (s *Service) compare(ctx context.Context, box core.Sandbox, there Status) error {
	if box.State == core.SandboxStopping || box.State == core.SandboxReady && there.Running && !there.Paused {
		return nil // Sweep finishes the one, the other is as it should be
	}
	_, err := s.held(ctx, box, func(lease core.Lease) error {
		if box.State == core.SandboxCreating { // its maker could not even write that it failed
			box.State = core.SandboxFailed
			box.FailureCode, box.FailureText = "preparation_interrupted", "The preparation was interrupted. The next message starts it again."
			return s.store.SaveSandbox(ctx, lease, box, changed(box))
		}
		there, err := s.runtime.Inspect(ctx, box.RuntimeRef)
		if err != nil && core.CodeOf(err) != "sandbox_lost" {
			return err
		}
		if there.Running && !there.Paused {
			return nil
		}
		box.State = core.SandboxStopped
		if err := s.store.SaveSandbox(ctx, lease, box, changed(box)); err != nil || !there.Paused {
			return err
		}
		return s.end(ctx, there.Ref) // nothing in it would answer; the next message starts it
	})
	return err
}

// still says that a row is as it was when it was read, and that nobody has used it since.
func (s *Service) still(ctx context.Context, box core.Sandbox) (bool, error) {
	now, err := s.store.LiveSandbox(ctx, box.SessionID)
	return now != nil && now.ID == box.ID && now.Generation == box.Generation && now.State == box.State && now.Unused >= box.Unused, err
}

// mark changes a row that no turn uses; false when one does, or when a newer generation is there.
func (s *Service) mark(ctx context.Context, box core.Sandbox, events ...core.Payload) (bool, error) {
	free, err := s.store.MarkSandbox(ctx, box, events...)
	if core.CodeOf(err) == "sandbox_superseded" {
		return false, nil
	}
	return free, err
}

// removeAtOnce bounds how many containers are removed side by side.
const removeAtOnce = 4

// RemoveAll removes every container of this installation on this host, its work saved, and keeps the
// volumes, for a server that leaves nothing running behind. The next message makes a new container on
// the volume. What another worker uses, fills its pool with or is helped by is left to it.
func (s *Service) RemoveAll(ctx context.Context) error {
	list, err := s.runtime.List(ctx)
	if err != nil {
		return err
	}
	rows, err := s.rowsOf(ctx, list, nil)
	if err != nil {
		return err
	}
	failures := make([]error, len(list))
	var group errgroup.Group
	group.SetLimit(removeAtOnce)
	for i, there := range list {
		group.Go(func() error {
			row, named := rows[there.Sandbox]
			switch {
			case named:
				_, failures[i] = s.held(ctx, row, func(lease core.Lease) error { return s.removeHeld(ctx, lease, row, there) })
			case there.Purpose == PurposePool:
				failures[i] = s.reconcileMember(ctx, there)
			case there.Purpose == PurposeSession:
				failures[i] = s.runtime.Remove(ctx, there.Ref, false)
			}
			return nil
		})
	}
	_ = group.Wait() // each failure is in its place
	return errors.Join(failures...)
}

func (s *Service) removeHeld(ctx context.Context, lease core.Lease, row core.Sandbox, there Status) error {
	var err error
	if row.Generation == there.Generation && (row.State == core.SandboxReady || row.State == core.SandboxStopping) {
		err = s.stopHeld(ctx, lease, row, "server_stopped", "The server was stopped. The next message starts it again.")
	}
	return errors.Join(err, s.runtime.Remove(ctx, there.Ref, false))
}
