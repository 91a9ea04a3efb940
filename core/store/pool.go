package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// BeginFill writes the row of a member that is about to be made, when its host has fewer than size,
// discarded ones not counted. A row that is still filling after within counts as overdue.
func (s *Store) BeginFill(ctx context.Context, m core.PoolMember, size int, within time.Duration) (bool, error) {
	begun := false
	err := s.InTx(ctx, func(tx *Tx) error {
		// One worker at a time counts a host's pool.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('pool_members ' || $1, 0))`, m.Host); err != nil {
			return fmt.Errorf("lock the pool: %w", err)
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO pool_members (id, host, state, spec, fill_until)
			SELECT $1, $2, 'filling', $3, clock_timestamp() + $5::interval
			WHERE (SELECT count(*) FROM pool_members WHERE host = $2 AND state <> 'discarded') < $4`,
			m.ID, m.Host, m.Spec, size, within)
		begun = err == nil && tag.RowsAffected() == 1
		return err
	})
	return begun && err == nil, err
}

// EndFill makes a filling member ready; false when it was discarded meanwhile.
func (s *Store) EndFill(ctx context.Context, m core.PoolMember) (bool, error) {
	tag, err := s.pool.Exec(ctx, `
		UPDATE pool_members SET state = 'ready', runtime_ref = $2, volume = $3, image = $4 WHERE id = $1 AND state = 'filling'`,
		m.ID, m.RuntimeRef, m.Volume, m.Image)
	return tag.RowsAffected() == 1, mapError(err)
}

// PoolMembers lists a host's, the oldest first.
func (s *Store) PoolMembers(ctx context.Context, host string) ([]core.PoolMember, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT id, host, state, spec, runtime_ref, volume, image, state = 'filling' AND fill_until < clock_timestamp(), clock_timestamp() - created_at
		FROM pool_members WHERE host = $1 ORDER BY created_at`, host)
	if err != nil {
		return nil, mapError(err)
	}
	members, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.PoolMember, error) {
		var m core.PoolMember
		err := row.Scan(&m.ID, &m.Host, &m.State, &m.Spec, &m.RuntimeRef, &m.Volume, &m.Image, &m.Overdue, &m.Age)
		return m, err
	})
	return members, mapError(err)
}

// IsPoolMember says whether the pool has a row of that id, in any state.
func (s *Store) IsPoolMember(ctx context.Context, id core.SandboxID) (bool, error) {
	var is bool
	err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pool_members WHERE id = $1)`, id).Scan(&is)
	return is, mapError(err)
}

// DiscardMember takes a member out of everybody's reach; false when it was claimed or is gone. The row
// stays until ForgetMember, so that what is left of the sandbox is removed whoever dies meanwhile.
func (s *Store) DiscardMember(ctx context.Context, id core.SandboxID) (bool, error) {
	tag, err := s.pool.Exec(ctx, `UPDATE pool_members SET state = 'discarded' WHERE id = $1`, id)
	return tag.RowsAffected() == 1, mapError(err)
}

// ForgetMember deletes the row of a discarded member of which nothing is left.
func (s *Store) ForgetMember(ctx context.Context, id core.SandboxID) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM pool_members WHERE id = $1 AND state = 'discarded'`, id)
	return mapError(err)
}

// ClaimMember gives the oldest ready member of box's host that was made with spec to the lease's
// session: the member's row becomes box's, with its id, container, volume and image, together with the
// events. Nil when there is none. core.ErrLeaseLost.
func (s *Store) ClaimMember(ctx context.Context, lease core.Lease, spec string, box core.Sandbox, events func(core.Sandbox) []core.Payload) (*core.Sandbox, error) {
	claimed := false
	err := s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `
			DELETE FROM pool_members WHERE id = (
				SELECT id FROM pool_members WHERE host = $1 AND state = 'ready' AND spec = $2
				ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED)
			RETURNING id, runtime_ref, volume, image`, box.Host, spec).
			Scan(&box.ID, &box.RuntimeRef, &box.Volume, &box.Image)
		if isNone(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("claim a pool member: %w", err)
		}
		claimed = true
		if err := tx.upsertSandbox(ctx, box, true); err != nil {
			return err
		}
		return tx.appendOwn(ctx, lease.SessionID, "", events(box)...)
	})
	if err != nil || !claimed {
		return nil, err
	}
	return &box, nil
}
