package sandbox

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

const (
	// tendEvery is how often the pool is looked at when nobody claims.
	tendEvery = 5 * time.Second
	// fillWithin bounds the making of one member: a host that takes longer has better things to do.
	// overdueAfter is a little more, so that no living worker's member is ever taken for a dead one's.
	fillWithin   = 20 * time.Second
	overdueAfter = 25 * time.Second
	// othersPatience is how long a member that runs is left alone although this worker would not have
	// made it: two of different versions or settings must not undo each other's work all the time.
	othersPatience = time.Minute
	// drainWithin bounds the end.
	drainWithin = 20 * time.Second
)

// PoolStore is the part of Store that keeps the sandboxes which were started ahead. A member is
// filling, then ready, and leaves by a claim or discarded; it never comes back.
type PoolStore interface {
	// BeginFill writes the row of a member before anything of it is made, when its host has fewer than
	// size. A row that is still filling after within counts as overdue.
	BeginFill(ctx context.Context, m core.PoolMember, size int, within time.Duration) (bool, error)
	// EndFill makes a filling member ready; false when it was discarded meanwhile.
	EndFill(ctx context.Context, m core.PoolMember) (bool, error)
	// ClaimMember gives one ready member of box's host and of that spec to the lease's session: its row
	// becomes box's, with its id, container, volume and image, in one transaction with the events. Nil
	// when there is none.
	ClaimMember(ctx context.Context, lease core.Lease, spec string, box core.Sandbox, events func(core.Sandbox) []core.Payload) (*core.Sandbox, error)
	// PoolMembers lists a host's members of every state, the oldest first.
	PoolMembers(ctx context.Context, host string) ([]core.PoolMember, error)
	// IsPoolMember says whether the pool has a row of that id, in any state.
	IsPoolMember(ctx context.Context, id core.SandboxID) (bool, error)
	// DiscardMember takes a member out of everybody's reach; false when it was claimed or is gone.
	DiscardMember(ctx context.Context, id core.SandboxID) (bool, error)
	// ForgetMember deletes the row of a discarded member of which nothing is left.
	ForgetMember(ctx context.Context, id core.SandboxID) error
}

// keepPool tends the pool until ctx ends and then drains it.
func (s *Service) keepPool(ctx context.Context) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		s.try(ctx, "tend the pool", s.TendPool)
		select {
		case <-tick.C:
		case <-s.claimed:
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWithin)
			defer cancel()
			s.try(end, "drain the pool", s.DrainPool)
			return
		}
	}
}

// TendPool removes the members of this host that nobody may claim: dead, stale, too many, or left
// half made by a worker that died. Then it fills the pool up, as far as nobody needs the room.
func (s *Service) TendPool(ctx context.Context) error {
	here, err := s.here(ctx)
	if err != nil {
		return err
	}
	members, err := s.store.PoolMembers(ctx, here.host)
	if err != nil || len(members) == 0 && s.warm == 0 {
		return err
	}
	spec, err := s.runtime.Fingerprint(ctx, s.poolSpec(""))
	if core.CodeOf(err) == "runtime_unavailable" {
		return err
	}
	failures := []error{err} // without an image, say, every member is stale
	s.current.Store(spec)
	// Containers after rows: a row is ready only while its container runs.
	list, err := s.runtime.List(ctx)
	if err != nil {
		return err
	}
	running := map[core.SandboxID]bool{}
	for _, there := range list {
		running[there.Sandbox] = there.Running && !there.Paused
	}
	kept := 0
	for _, m := range members {
		fits := kept < s.warm && (m.State == core.PoolFilling && !m.Overdue || m.State == core.PoolReady && m.Spec == spec && running[m.ID] && m.Age <= s.maxAge)
		switch {
		case fits:
			kept++
		case m.State == core.PoolFilling && !m.Overdue: // its maker removes it, or it is too many next time
		case m.State == core.PoolReady && running[m.ID] && m.Age < othersPatience:
		default:
			failures = append(failures, s.discardMember(ctx, m))
		}
	}
	for spec != "" && kept < s.warm && ctx.Err() == nil {
		filled, err := s.fill(ctx, here.host, spec)
		failures = append(failures, err)
		if err != nil || !filled {
			break
		}
		kept++
	}
	return errors.Join(failures...)
}

// poolSpec is what every member is made with; only sessions that need nothing else use them.
func (s *Service) poolSpec(id core.SandboxID) Spec {
	return Spec{Sandbox: id, Generation: 1, Limits: s.limits, Purpose: PurposePool}
}

// fill makes one member; false when now is not the time. Once begun it goes on when ctx ends: a
// daemon that is interrupted may finish the container later, when nobody looks any more.
func (s *Service) fill(ctx context.Context, host, spec string) (bool, error) {
	if s.cold.Load() > 0 { // somebody waits for the same daemon
		return false, nil
	}
	if err := s.admit(ctx, true); core.CodeOf(err) == "disk_low" {
		return false, nil
	} else if err != nil {
		return false, err
	}
	over, err := s.takePlace(ctx)
	defer s.startedOne()
	if err != nil || over > 0 {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fillWithin)
	defer cancel()
	m := core.PoolMember{ID: core.NewID[core.SandboxID](), Host: host, Spec: spec}
	begun, err := s.store.BeginFill(ctx, m, s.warm, overdueAfter)
	if err != nil || !begun {
		return false, err
	}
	err = s.warmUp(ctx, &m)
	if err == nil {
		ready, endErr := s.store.EndFill(ctx, m)
		if ready {
			return true, nil
		}
		err = endErr
	}
	_, discardErr := s.store.DiscardMember(context.WithoutCancel(ctx), m.ID) // the next round removes it
	return false, errors.Join(err, discardErr)
}

// warmUp starts a member and hears from its toolbox. Nothing is attached to it afterwards, so that
// nothing in it reaches a network, and whoever claims it is the one client.
func (s *Service) warmUp(ctx context.Context, m *core.PoolMember) error {
	var err error
	if m.RuntimeRef, err = s.runtime.Create(ctx, s.poolSpec(m.ID)); err != nil {
		return err
	}
	there, err := s.runtime.Inspect(ctx, m.RuntimeRef)
	if err != nil {
		return err
	}
	m.Volume, m.Image = there.Volume, there.ImageID
	client, err := Launch(ctx, s.runtime, m.RuntimeRef, toolbox.Options{})
	if err != nil {
		return err
	}
	s.hear(ctx, client)
	if err := errors.Join(client.Ping(ctx), client.Close()); err != nil {
		return err
	}
	return s.admit(ctx, true) // the first thing that is heard of a host may be that it is full
}

// discardMember removes a member and whatever was made of it. A worker that dies on the way leaves
// the row, by which the next one goes on.
func (s *Service) discardMember(ctx context.Context, m core.PoolMember) error {
	mine, err := s.store.DiscardMember(ctx, m.ID)
	if err != nil || !mine {
		return err
	}
	s.log.InfoContext(ctx, "remove pool member", "sandbox_id", m.ID, "state", m.State)
	if err := s.purge(ctx, m.ID); err != nil {
		return err
	}
	return s.store.ForgetMember(ctx, m.ID)
}

// purge removes every container and volume of a sandbox that no session has.
func (s *Service) purge(ctx context.Context, id core.SandboxID) error {
	list, err := s.runtime.List(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, there := range list {
		if there.Sandbox == id {
			failures = append(failures, s.runtime.Remove(ctx, there.Ref, true))
		}
	}
	volumes, err := s.runtime.Volumes(ctx) // a crash may have left one without its container
	for _, v := range volumes {
		if v.Sandbox == id {
			failures = append(failures, s.runtime.RemoveVolume(ctx, v.Name))
		}
	}
	return errors.Join(append(failures, err)...)
}

// shrinkPool makes room by ending up to n members, the oldest first, and says how many. They are
// removed later.
func (s *Service) shrinkPool(ctx context.Context, n int) (stopped int, err error) {
	here, err := s.here(ctx)
	if err != nil {
		return 0, err
	}
	members, err := s.store.PoolMembers(ctx, here.host)
	if err != nil {
		return 0, err
	}
	for _, m := range members {
		if stopped == n {
			break
		}
		if m.State != core.PoolReady {
			continue
		}
		mine, err := s.store.DiscardMember(ctx, m.ID)
		if err != nil {
			return stopped, err
		}
		if !mine {
			continue
		}
		if err := s.end(ctx, m.RuntimeRef); err != nil { // another one may obey
			s.log.WarnContext(ctx, "stop pool member for room", "error", err, "sandbox_id", m.ID)
			continue
		}
		stopped++
	}
	return stopped, nil
}

// DrainPool removes every member of this host, for a worker that ends. Another one that shares the
// host fills the pool again.
func (s *Service) DrainPool(ctx context.Context) error {
	here, err := s.here(ctx)
	if err != nil {
		return err
	}
	members, err := s.store.PoolMembers(ctx, here.host)
	if err != nil {
		return err
	}
	failures := make([]error, len(members))
	var group errgroup.Group
	group.SetLimit(removeAtOnce)
	for i, m := range members {
		if m.State == core.PoolFilling && !m.Overdue {
			continue // another worker's, which is there to look after it
		}
		group.Go(func() error { failures[i] = s.discardMember(ctx, m); return nil })
	}
	_ = group.Wait() // each failure is in its place
	return errors.Join(failures...)
}

// reconcileMember removes a container of the pool, with its volume, when neither the pool nor a
// session speaks for it. The pool is asked first, because a claim goes from there to a session.
func (s *Service) reconcileMember(ctx context.Context, there Status) error {
	if is, err := s.store.IsPoolMember(ctx, there.Sandbox); err != nil || is {
		return err
	}
	rows, err := s.store.SandboxesByID(ctx, []core.SandboxID{there.Sandbox})
	if err != nil || len(rows) > 0 {
		return err
	}
	s.log.InfoContext(ctx, "remove stale pool member", "sandbox_id", there.Sandbox)
	return s.purge(ctx, there.Sandbox)
}
