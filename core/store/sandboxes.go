package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

const sandboxColumns = `id, session_id, state, host, generation, runtime_ref, volume, image, runtime, checked_out,
	unsaved, failure_code, failure_text, stop_requested_at, last_used_at, created_at, clock_timestamp() - last_used_at, clock_timestamp() - made_at`

func scanSandbox(row pgx.CollectableRow) (core.Sandbox, error) {
	var b core.Sandbox
	err := row.Scan(&b.ID, &b.SessionID, &b.State, &b.Host, &b.Generation, &b.RuntimeRef, &b.Volume, &b.Image, &b.Runtime, &b.CheckedOut,
		&b.Unsaved, &b.FailureCode, &b.FailureText, zeroTime{&b.StopRequestedAt}, &b.LastUsedAt, &b.CreatedAt, &b.Unused, &b.Age)
	return b, err
}

// oneSandbox reads the row that tail selects; pgx.ErrNoRows when there is none.
func oneSandbox(ctx context.Context, q querier, tail string, args ...any) (core.Sandbox, error) {
	rows, err := q.Query(ctx, `SELECT `+sandboxColumns+` FROM sandboxes `+tail, args...)
	if err != nil {
		return core.Sandbox{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanSandbox)
}

// newestSandbox is the session's newest row of any state, nil when there is none.
func newestSandbox(ctx context.Context, q querier, id core.SessionID) (*core.Sandbox, error) {
	box, err := oneSandbox(ctx, q, `WHERE session_id = $1 ORDER BY generation DESC, created_at DESC LIMIT 1`, id)
	if isNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &box, nil
}

// LiveSandbox returns the session's newest sandbox row of any state, or nil.
func (s *Store) LiveSandbox(ctx context.Context, id core.SessionID) (*core.Sandbox, error) {
	box, err := newestSandbox(ctx, s.pool, id)
	return box, mapError(err)
}

// SaveSandbox inserts or updates the row under the lease and appends the events. StopRequestedAt
// is not taken from box: a stop asked for while the worker held its copy must not be lost. Nor is any
// time: a row that is creating or ready is being used now, by the database's clock.
func (s *Store) SaveSandbox(ctx context.Context, lease core.Lease, box core.Sandbox, events ...core.Payload) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		if err := tx.upsertSandbox(ctx, box, true); err != nil {
			return err
		}
		return tx.appendOwn(ctx, lease.SessionID, "", events...)
	})
}

// MarkSandbox is SaveSandbox without a lease, only while the session has no owner; false says that
// it had one and nothing was written.
func (s *Store) MarkSandbox(ctx context.Context, box core.Sandbox, events ...core.Payload) (bool, error) {
	free := false
	err := s.InTx(ctx, func(tx *Tx) error {
		session, err := tx.lockSession(ctx, box.SessionID)
		if err != nil || session.leaseOwner != "" {
			return err
		}
		free = true
		if err := tx.upsertSandbox(ctx, box, false); err != nil {
			return err
		}
		return tx.appendOwn(ctx, box.SessionID, "", events...)
	})
	return free && err == nil, err
}

// upsertSandbox writes the row of a session whose own row is locked. A copy of an older generation
// changes nothing (Conflict sandbox_superseded). A stop request lives until the stop. used says that a
// worker has the sandbox in hand.
func (tx *Tx) upsertSandbox(ctx context.Context, b core.Sandbox, used bool) error {
	tag, err := tx.Exec(ctx, `
		INSERT INTO sandboxes AS old (id, session_id, state, host, generation, runtime_ref, volume, image, runtime, checked_out,
			unsaved, failure_code, failure_text)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, host = excluded.host, generation = excluded.generation,
			runtime_ref = excluded.runtime_ref, volume = excluded.volume, image = excluded.image, runtime = excluded.runtime,
			checked_out = excluded.checked_out, unsaved = excluded.unsaved,
			failure_code = excluded.failure_code, failure_text = excluded.failure_text,
			last_used_at = CASE WHEN $14 AND excluded.state IN ('creating', 'ready') THEN clock_timestamp() ELSE old.last_used_at END,
			made_at = CASE WHEN excluded.generation = old.generation THEN old.made_at ELSE clock_timestamp() END,
			stop_requested_at = CASE WHEN excluded.state IN ('creating', 'ready') AND excluded.generation = old.generation THEN old.stop_requested_at END
		WHERE old.session_id = excluded.session_id AND old.generation <= excluded.generation`,
		b.ID, b.SessionID, b.State, b.Host, b.Generation, b.RuntimeRef, b.Volume, b.Image, b.Runtime, b.CheckedOut,
		b.Unsaved, b.FailureCode, clean(b.FailureText), used)
	if err != nil {
		return fmt.Errorf("save sandbox: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return core.Fail(core.Conflict, "sandbox_superseded", "A newer sandbox has taken this one's place.")
	}
	return nil
}

// SandboxesOn lists one host's rows whose container may run, the longest unused first.
func (s *Store) SandboxesOn(ctx context.Context, host string) ([]core.Sandbox, error) {
	return s.sandboxes(ctx, `WHERE host = $1 AND state IN ('creating', 'ready', 'stopping') ORDER BY last_used_at`, host)
}

// SandboxesByID returns the rows that have one of the ids, of any state and host.
func (s *Store) SandboxesByID(ctx context.Context, ids []core.SandboxID) ([]core.Sandbox, error) {
	return s.sandboxes(ctx, `WHERE id = ANY ($1)`, ids)
}

func (s *Store) sandboxes(ctx context.Context, tail string, args ...any) ([]core.Sandbox, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+sandboxColumns+` FROM sandboxes `+tail, args...)
	if err != nil {
		return nil, mapError(err)
	}
	boxes, err := pgx.CollectRows(rows, scanSandbox)
	return boxes, mapError(err)
}

// DispensableVolumes lists one host's rows whose volume nobody will miss: of a session that is archived,
// unused for a week, and saved whole.
func (s *Store) DispensableVolumes(ctx context.Context, host string) ([]core.Sandbox, error) {
	return s.sandboxes(ctx, `
		WHERE host = $1 AND state IN ('stopped', 'failed') AND volume <> '' AND NOT unsaved
		AND last_used_at < clock_timestamp() - interval '7 days'
		AND EXISTS (SELECT FROM chat_sessions s WHERE s.id = session_id AND s.archived AND s.lease_owner IS NULL)
		AND (SELECT c.missing FROM checkpoints c WHERE c.session_id = sandboxes.session_id ORDER BY c.created_at DESC LIMIT 1) = '[]'
		ORDER BY last_used_at LIMIT 100`, host)
}

// RequestStop asks the sandbox's worker to stop it. Conflict nothing_to_stop when none runs.
func (s *Store) RequestStop(ctx context.Context, id core.SessionID) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.lockSession(ctx, id); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			UPDATE sandboxes SET stop_requested_at = coalesce(stop_requested_at, clock_timestamp())
			WHERE session_id = $1 AND state IN ('creating', 'ready')`, id)
		if err == nil && tag.RowsAffected() == 0 {
			return core.Fail(core.Conflict, "nothing_to_stop", "This session's sandbox is not running.")
		}
		return err
	})
}
