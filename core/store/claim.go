package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"agent-sandboxing/core"
)

const (
	// duePublication is unfinished and has not to wait, or not any more because it shall only be ended.
	duePublication = `(step IN ('requested', 'committed', 'pushed') AND coalesce(waiting_until, '-infinity') <= clock_timestamp()
		OR step = 'requested' AND cancel_requested_at IS NOT NULL)`

	// lockNext picks the free session that has waited longest, publications first. A session whose
	// live sandbox is on another host that a worker serves is left to that worker.
	lockNext = `
		WITH waiting AS (
			SELECT session_id, 0 AS turn, created_at FROM publications WHERE ` + duePublication + `
			UNION ALL
			SELECT session_id, 1, created_at FROM messages WHERE state = 'queued'
		)
		SELECT s.id FROM chat_sessions s JOIN waiting w ON w.session_id = s.id
		WHERE s.lease_owner IS NULL AND NOT EXISTS (
			SELECT FROM sandboxes b JOIN workers k ON k.host = b.host
			WHERE b.session_id = s.id AND b.state <> 'failed' AND b.host <> $1
			AND k.heartbeat_at > clock_timestamp() - interval '30 seconds'
		)
		ORDER BY w.turn, w.created_at LIMIT 1
		FOR NO KEY UPDATE OF s SKIP LOCKED`

	// takeLease looks again, with a snapshot from after the lock: what lockNext saw may be gone.
	takeLease = `
		UPDATE chat_sessions s SET lease_owner = $2, lease_until = clock_timestamp() + $3::interval
		WHERE s.id = $1 AND s.lease_owner IS NULL AND (
			EXISTS (SELECT FROM messages WHERE session_id = s.id AND state = 'queued')
			OR EXISTS (SELECT FROM publications WHERE session_id = s.id AND ` + duePublication + `)
		)`

	oldestQueued = `WHERE m.session_id = $1 AND m.state = 'queued' ORDER BY m.created_at LIMIT 1`

	// cancelRequested says that a person wants to end what the lease of s was taken for: its message, or
	// its publish while nothing of that was sent.
	cancelRequested = `(EXISTS (
		SELECT FROM messages WHERE session_id = s.id AND id = s.lease_message AND cancel_requested_at IS NOT NULL
		AND (state = 'working' OR state = 'cancelled' AND started_at IS NULL)
	) OR s.lease_message IS NULL AND EXISTS (
		SELECT FROM publications WHERE session_id = s.id AND step = 'requested' AND cancel_requested_at IS NOT NULL
	))`
)

// errRaced says that another worker served the locked session first.
var errRaced = errors.New("the session has nothing to do any more")

// Claim leases the free session that has waited longest for worker. A due publication is served
// before any message; the claim holds exactly one of the two. A message that a budget leaves no money
// for ends as failed, and the next one is looked at. core.ErrNoWork when nothing waits.
func (s *Store) Claim(ctx context.Context, worker core.Worker, lease time.Duration, budgets core.Budgets) (core.Claim, error) {
	for {
		var claim core.Claim
		refused := false
		err := s.InTx(ctx, func(tx *Tx) error {
			var err error
			claim, refused, err = tx.claim(ctx, worker, lease, budgets)
			return err
		})
		if err == nil && refused || errors.Is(err, errRaced) {
			continue
		}
		return claim, err
	}
}

func (tx *Tx) claim(ctx context.Context, worker core.Worker, lease time.Duration, budgets core.Budgets) (c core.Claim, refused bool, err error) {
	c = core.Claim{Worker: worker.ID, Lease: core.Lease{Owner: uuid.NewString()}}
	err = tx.QueryRow(ctx, lockNext, worker.Host).Scan(&c.Lease.SessionID)
	if isNone(err) {
		return c, false, core.ErrNoWork
	}
	if err != nil {
		return c, false, fmt.Errorf("lock the next session: %w", err)
	}
	id := c.Lease.SessionID
	tag, err := tx.Exec(ctx, takeLease, id, c.Lease.Owner, lease)
	if err != nil {
		return c, false, fmt.Errorf("take the lease: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return c, false, errRaced
	}
	publication, err := onePublication(ctx, tx, `WHERE session_id = $1 AND `+duePublication, id)
	switch {
	case err == nil:
		c.Publication = &publication
	case !isNone(err):
		return c, false, err
	default:
		if refused, err = tx.refuseOverBudget(ctx, id, budgets); err != nil {
			return c, false, err
		}
		if refused {
			return c, true, tx.giveBack(ctx, id)
		}
		if c.Message, err = tx.prepareOldest(ctx, id, worker); err != nil {
			return c, false, err
		}
	}
	if c.Session, err = readSession(ctx, tx, id); err != nil {
		return c, false, err
	}
	c.Owner, err = oneUser(ctx, tx, `WHERE id = $1`, c.Session.OwnerID)
	return c, false, err
}

// HoldSession leases a session that nobody owns, for what the platform does to its sandbox between
// two turns; a message that comes meanwhile waits. core.ErrNoWork when it has an owner.
func (s *Store) HoldSession(ctx context.Context, id core.SessionID, time time.Duration) (core.Lease, error) {
	lease := core.Lease{SessionID: id, Owner: uuid.NewString()}
	tag, err := s.pool.Exec(ctx, `
		UPDATE chat_sessions SET lease_owner = $2, lease_until = clock_timestamp() + $3::interval
		WHERE id = $1 AND lease_owner IS NULL`, id, lease.Owner, time)
	if err == nil && tag.RowsAffected() == 0 {
		return lease, core.ErrNoWork
	}
	return lease, mapError(err)
}

// giveBack takes the lease off a session whose row is locked.
func (tx *Tx) giveBack(ctx context.Context, id core.SessionID) error {
	_, err := tx.Exec(ctx, `UPDATE chat_sessions SET lease_owner = NULL, lease_until = NULL, lease_message = NULL WHERE id = $1`, id)
	return err
}

// prepareOldest says that the session's oldest queued message is being prepared.
func (tx *Tx) prepareOldest(ctx context.Context, id core.SessionID, worker core.Worker) (*core.Message, error) {
	m, err := oneMessage(ctx, tx, oldestQueued, id)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `UPDATE chat_sessions SET lease_message = $2 WHERE id = $1`, id, m.ID); err != nil {
		return nil, err
	}
	return &m, tx.Append(ctx, id, core.ByPlatform, m.ID, core.MessagePreparing{Worker: string(worker.ID)})
}

// Heartbeat extends the lease. cancel says that the message it was taken for shall end: a person
// asked while it works, or took it back while it was prepared. core.ErrLeaseLost.
func (s *Store) Heartbeat(ctx context.Context, lease core.Lease, extend time.Duration) (cancel bool, err error) {
	err = s.pool.QueryRow(ctx, `
		UPDATE chat_sessions s SET lease_until = clock_timestamp() + $3::interval
		WHERE id = $1 AND lease_owner = $2 AND lease_until > clock_timestamp()
		RETURNING `+cancelRequested, lease.SessionID, lease.Owner, extend).Scan(&cancel)
	if isNone(err) {
		return false, core.ErrLeaseLost
	}
	return cancel, mapError(err)
}

// CancelRequested reads what Heartbeat answers, without extending the lease. core.ErrLeaseLost.
func (s *Store) CancelRequested(ctx context.Context, lease core.Lease) (cancel bool, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT `+cancelRequested+` FROM chat_sessions s
		WHERE id = $1 AND lease_owner = $2 AND lease_until > clock_timestamp()`, lease.SessionID, lease.Owner).Scan(&cancel)
	if isNone(err) {
		return false, core.ErrLeaseLost
	}
	return cancel, mapError(err)
}

// Release gives the session back and, when something waits in it, wakes the workers. A session whose
// message still works is not given back: its end could not be written, so the lease runs out and the
// reaper ends the message. core.ErrLeaseLost then, and when the session was not the caller's any more.
func (s *Store) Release(ctx context.Context, lease core.Lease) error {
	var waiting bool
	err := s.pool.QueryRow(ctx, `
		UPDATE chat_sessions s SET lease_owner = NULL, lease_until = NULL, lease_message = NULL
		WHERE id = $1 AND lease_owner = $2 AND lease_until > clock_timestamp()
		AND NOT EXISTS (SELECT FROM messages WHERE session_id = s.id AND state = 'working')
		RETURNING EXISTS (SELECT FROM messages WHERE session_id = s.id AND state = 'queued')
			OR EXISTS (SELECT FROM publications WHERE session_id = s.id AND `+duePublication+`)`,
		lease.SessionID, lease.Owner).Scan(&waiting)
	switch {
	case isNone(err):
		return core.ErrLeaseLost
	case err != nil:
		return mapError(err)
	case waiting:
		s.notify.work()
	}
	return nil
}
