package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// keptCheckpoints is how many of a session's checkpoints stay for restore.
const keptCheckpoints = 20

// SaveCheckpoint inserts it under the lease, says of the sandbox that its work is saved, appends
// checkpoint_saved and drops the oldest above 20. One of another base than the session's could never be
// restored, so it is refused (checkpoint_failed): the sandbox says what its base is, and may be wrong.
func (s *Store) SaveCheckpoint(ctx context.Context, lease core.Lease, c core.Checkpoint) error {
	deleted, err := document(nonNil(c.Info.Deleted))
	if err != nil {
		return err
	}
	missing, err := document(nonNil(c.Info.Missing))
	if err != nil {
		return err
	}
	if c.Archive == nil {
		c.Archive = []byte{}
	}
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO checkpoints (id, session_id, message_id, base_sha, deleted, files, bytes, missing, archive)
			SELECT $1::uuid, id, nullif($3, '')::uuid, base_sha, $5::text::jsonb, $6::integer, $7::bigint, $8::text::jsonb, $9::bytea
			FROM chat_sessions WHERE id = $2 AND base_sha = $4`,
			c.ID, lease.SessionID, string(c.MessageID), c.Info.BaseSHA, deleted, c.Info.Files, c.Info.Bytes, missing, c.Archive)
		if err != nil {
			return fmt.Errorf("insert checkpoint: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return core.Fail(core.Conflict, "checkpoint_failed",
				"The sandbox names another base commit than the session's, so its work tree was not saved. Put the session's base commit back into /workspace/.platform/base, or start a new session.")
		}
		if _, err := tx.Exec(ctx, `
			DELETE FROM checkpoints WHERE session_id = $1 AND id NOT IN (
				SELECT id FROM checkpoints WHERE session_id = $1 ORDER BY created_at DESC LIMIT $2)`, lease.SessionID, keptCheckpoints); err != nil {
			return fmt.Errorf("drop old checkpoints: %w", err)
		}
		if _, err := tx.Exec(ctx, `UPDATE sandboxes SET unsaved = false WHERE session_id = $1 AND state <> 'failed'`, lease.SessionID); err != nil {
			return err
		}
		return tx.Append(ctx, lease.SessionID, core.ByPlatform, c.MessageID, core.CheckpointSaved{
			CheckpointID: c.ID, Files: c.Info.Files, Bytes: c.Info.Bytes, Missing: c.Info.Missing,
		})
	})
}

// CheckedOut says whether a checkout of the session was ever completed, on any host. The log is what
// remembers it when the sandbox's row is about another attempt.
func (s *Store) CheckedOut(ctx context.Context, id core.SessionID) (bool, error) {
	var done bool
	err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM events WHERE session_id = $1 AND type = $2)`,
		id, core.CheckoutCompleted{}.EventType()).Scan(&done)
	return done, mapError(err)
}

// Checkpoint returns a checkpoint with its archive, back being how many newer ones are passed over; nil
// when there are not so many.
func (s *Store) Checkpoint(ctx context.Context, id core.SessionID, back int) (*core.Checkpoint, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT id, session_id, coalesce(message_id::text, ''), base_sha, deleted, files, bytes, missing, archive, created_at
		FROM checkpoints WHERE session_id = $1 ORDER BY created_at DESC OFFSET $2 LIMIT 1`, id, back)
	if err != nil {
		return nil, mapError(err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (core.Checkpoint, error) {
		var c core.Checkpoint
		err := row.Scan(&c.ID, &c.SessionID, &c.MessageID, &c.Info.BaseSHA, &c.Info.Deleted, &c.Info.Files, &c.Info.Bytes, &c.Info.Missing, &c.Archive, &c.CreatedAt)
		return c, err
	})
	if isNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, mapError(err)
	}
	return &c, nil
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
