package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// Tx is one transaction. What it appended is announced when, and only when, it has committed.
type Tx struct {
	pgx.Tx
	changed []core.SessionID
	work    bool // a worker may find something to claim
}

// InTx runs fn in a transaction, commits when it returns nil and then announces the sessions that
// changed. Errors are core.Errors where a person can do something about them.
func (s *Store) InTx(ctx context.Context, fn func(*Tx) error) error {
	inner, err := s.pool.Begin(ctx)
	if err != nil {
		return mapError(fmt.Errorf("begin: %w", err))
	}
	tx := &Tx{Tx: inner}
	if err := fn(tx); err != nil {
		// A cancelled caller must not leave the connection inside a transaction.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = inner.Rollback(end) // the cause is err; a connection that cannot roll back is dropped by the pool
		return mapError(err)
	}
	if err := inner.Commit(ctx); err != nil {
		return mapError(fmt.Errorf("commit: %w", err))
	}
	s.notify.sessions(tx.changed)
	if tx.work {
		s.notify.work()
	}
	return nil
}

// lockSession takes the session's row, the first lock of every transaction that changes a session.
func (tx *Tx) lockSession(ctx context.Context, id core.SessionID) (lockedSession, error) {
	var s lockedSession
	err := tx.QueryRow(ctx, `
		SELECT owner_id, archived, coalesce(lease_owner, ''), coalesce(lease_message::text, '')
		FROM chat_sessions WHERE id = $1 FOR NO KEY UPDATE`, id).
		Scan(&s.owner, &s.archived, &s.leaseOwner, &s.leaseMessage)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, core.NotFoundError()
	}
	return s, err
}

type lockedSession struct {
	owner        core.UserID
	archived     bool
	leaseOwner   string
	leaseMessage core.MessageID // the message that the lease was taken for
}

// lockLeased takes the session's row for the lease's owner, or fails with core.ErrLeaseLost. The
// select list is computed after the lock was waited for: a lease that ran out meanwhile is lost.
func (tx *Tx) lockLeased(ctx context.Context, lease core.Lease) error {
	var held bool
	err := tx.QueryRow(ctx, `
		SELECT coalesce(lease_owner = $2 AND lease_until > clock_timestamp(), false)
		FROM chat_sessions WHERE id = $1 FOR NO KEY UPDATE`, lease.SessionID, lease.Owner).Scan(&held)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !held {
		return core.ErrLeaseLost
	}
	return err
}

// touch moves a session to the top of the lists.
func (tx *Tx) touch(ctx context.Context, id core.SessionID) error {
	_, err := tx.Exec(ctx, `UPDATE chat_sessions SET updated_at = clock_timestamp() WHERE id = $1`, id)
	return err
}
