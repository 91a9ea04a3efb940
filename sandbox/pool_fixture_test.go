package sandbox_test

import (
	"context"
	"slices"
	"time"

	"agent-sandboxing/core"
)

// The pool's part of rows.

func (r *rows) BeginFill(_ context.Context, m core.PoolMember, size int, _ time.Duration) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, other := range r.pool {
		if other.State != core.PoolDiscarded {
			count++
		}
	}
	if count >= size {
		return false, nil
	}
	m.State = core.PoolFilling
	r.pool = append(r.pool, m)
	return true, nil
}

func (r *rows) EndFill(_ context.Context, m core.PoolMember) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.member(m.ID)
	if i < 0 || r.pool[i].State != core.PoolFilling {
		return false, nil
	}
	m.State = core.PoolReady
	r.pool[i] = m
	return true, nil
}

func (r *rows) ClaimMember(_ context.Context, lease core.Lease, spec string, box core.Sandbox, events func(core.Sandbox) []core.Payload) (*core.Sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[lease.SessionID] != lease.Owner {
		return nil, core.ErrLeaseLost
	}
	i := slices.IndexFunc(r.pool, func(m core.PoolMember) bool {
		return m.State == core.PoolReady && m.Spec == spec && m.Host == box.Host
	})
	if i < 0 {
		return nil, nil
	}
	m := r.pool[i]
	r.pool = slices.Delete(r.pool, i, i+1)
	box.ID, box.RuntimeRef, box.Volume, box.Image = m.ID, m.RuntimeRef, m.Volume, m.Image
	return &box, r.write(box, events(box))
}

func (r *rows) PoolMembers(_ context.Context, host string) ([]core.PoolMember, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.pool), func(m core.PoolMember) bool { return m.Host != host }), nil
}

func (r *rows) IsPoolMember(_ context.Context, id core.SandboxID) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.member(id) >= 0, nil
}

func (r *rows) DiscardMember(_ context.Context, id core.SandboxID) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.member(id)
	if i >= 0 {
		r.pool[i].State = core.PoolDiscarded
	}
	return i >= 0, nil
}

func (r *rows) ForgetMember(_ context.Context, id core.SandboxID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool = slices.DeleteFunc(r.pool, func(m core.PoolMember) bool { return m.ID == id && m.State == core.PoolDiscarded })
	return nil
}

func (r *rows) member(id core.SandboxID) int {
	return slices.IndexFunc(r.pool, func(m core.PoolMember) bool { return m.ID == id })
}

// editPool changes the pool's rows behind the service's back.
func (r *rows) editPool(edit func(*core.PoolMember)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.pool {
		edit(&r.pool[i])
	}
}

// put and drop make and delete a session's row behind the service's back.
func (r *rows) put(box core.Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boxes[box.SessionID] = box
}

func (r *rows) drop(id core.SessionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.boxes, id)
}
