package store

import (
	"context"
	"fmt"
	"time"

	"agent-sandboxing/core"
)

// RecordDelivery notes a delivery and marks what it says to read anew; false says that it was here
// before and changed nothing.
func (s *Store) RecordDelivery(ctx context.Context, d core.Delivery) (fresh bool, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		tag, err := tx.Exec(ctx, `
			INSERT INTO webhook_deliveries (guid, event, action, installation_id) VALUES ($1, $2, $3, $4)
			ON CONFLICT (guid) DO NOTHING`, d.GUID, clean(d.Event), clean(d.Action), d.Installation)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		fresh = true
		return tx.markStale(ctx, d)
	})
	if err != nil {
		return false, fmt.Errorf("record delivery: %w", err)
	}
	if fresh && d.Stale != core.StaleNothing && d.Stale != core.StalePullRequest {
		s.notify.access(d.Installation)
	}
	return fresh, nil
}

func (tx *Tx) markStale(ctx context.Context, d core.Delivery) error {
	mark := func(sql string, args ...any) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	}
	switch d.Stale {
	case core.StaleNothing:
	case core.StaleInstallation:
		return mark(`UPDATE installations SET stale_at = clock_timestamp() WHERE id = $1`, d.Installation)
	case core.StaleAccount:
		if err := mark(`UPDATE installations SET stale_at = clock_timestamp() WHERE id = $1`, d.Installation); err != nil {
			return err
		}
		return mark(`UPDATE repositories SET stale_at = clock_timestamp() WHERE installation_id = $1`, d.Installation)
	case core.StaleRepository:
		return mark(`UPDATE repositories SET stale_at = clock_timestamp() WHERE id = $1`, d.Repository)
	case core.StalePerson:
		return tx.markPerson(ctx, d.Person)
	case core.StalePullRequest:
		tag, err := tx.Exec(ctx, `
			UPDATE pull_requests SET stale_at = clock_timestamp()
			WHERE session_id = (SELECT id FROM chat_sessions WHERE id = $1 AND repository_id = $2)`, d.Session, d.Repository)
		if err == nil && tag.RowsAffected() > 0 {
			tx.changed = append(tx.changed, d.Session)
		}
		return err
	}
	return nil
}

// markPerson marks a person's token. Without one there is nothing to ask GitHub with, and they are
// signed out everywhere.
func (tx *Tx) markPerson(ctx context.Context, githubID core.GitHubUserID) error {
	u, err := oneUser(ctx, tx, `WHERE github_id = $1`, githubID)
	if isNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `UPDATE user_tokens SET stale_at = clock_timestamp() WHERE user_id = $1`, u.ID)
	if err != nil || tag.RowsAffected() > 0 {
		return err
	}
	_, err = tx.endLogins(ctx, u.ID)
	return err
}

// Deliveries says which of the deliveries have been here.
func (s *Store) Deliveries(ctx context.Context, guids []string) (map[string]bool, error) {
	rows, err := s.pool.Query(ctx, `SELECT guid FROM webhook_deliveries WHERE guid = ANY($1)`, guids)
	if err != nil {
		return nil, mapError(err)
	}
	defer rows.Close()
	known := map[string]bool{}
	for rows.Next() {
		var guid string
		if err := rows.Scan(&guid); err != nil {
			return nil, err
		}
		known[guid] = true
	}
	return known, mapError(rows.Err())
}

// PruneDeliveries forgets deliveries that GitHub cannot send again any more, and returns how many.
func (s *Store) PruneDeliveries(ctx context.Context) (int64, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM webhook_deliveries WHERE received_at < clock_timestamp() - interval '14 days'`)
	return tag.RowsAffected(), mapError(err)
}

// Due says whether it is time to do something that one of all processes does once in a while, and
// that the caller is the one.
func (s *Store) Due(ctx context.Context, chore string, every time.Duration) (bool, error) {
	tag, err := s.pool.Exec(ctx, `
		INSERT INTO chores AS c (name, ran_at) VALUES ($1, clock_timestamp())
		ON CONFLICT (name) DO UPDATE SET ran_at = excluded.ran_at WHERE c.ran_at <= excluded.ran_at - $2::interval`, chore, every)
	return tag.RowsAffected() > 0, mapError(err)
}
