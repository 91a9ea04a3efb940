package store

import (
	"context"
	"fmt"

	"agent-sandboxing/core"
)

// PullRequest is the session's pull request, nil when there is none.
func (s *Store) PullRequest(ctx context.Context, id core.SessionID) (*core.PullRequest, error) {
	pr, err := readPullRequest(ctx, s.pool, id)
	return pr, mapError(err)
}

func readPullRequest(ctx context.Context, q querier, id core.SessionID) (*core.PullRequest, error) {
	var p core.PullRequest
	err := q.QueryRow(ctx, `SELECT session_id, number, url, state, draft, head_sha, base, behind, title, updated_at, stale_at FROM pull_requests WHERE session_id = $1`, id).
		Scan(&p.SessionID, &p.Number, &p.URL, &p.State, &p.Draft, &p.HeadSHA, &p.Base, &p.Behind, &p.Title, &p.UpdatedAt, zeroTime{&p.StaleAt})
	if isNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// SavePullRequest writes under the lease what GitHub says of the session's pull request now.
func (s *Store) SavePullRequest(ctx context.Context, lease core.Lease, p core.PullRequest, events ...core.Payload) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		if err := tx.upsertPullRequest(ctx, lease.SessionID, p); err != nil {
			return err
		}
		return tx.appendOwn(ctx, lease.SessionID, "", events...)
	})
}

// PullRequestRead keeps what GitHub says of the session's pull request, whose mark was seen at p.StaleAt, and
// appends the event when its state is another one. One that took its place meanwhile stays as it is.
func (s *Store) PullRequestRead(ctx context.Context, session core.SessionID, p core.PullRequest) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.lockSession(ctx, session); err != nil {
			return err
		}
		known, err := readPullRequest(ctx, tx, session)
		if err != nil || known == nil || known.Number != p.Number {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE pull_requests SET state = $3, draft = $4, base = $5, stale_at = CASE WHEN stale_at > $2 THEN stale_at END
			WHERE session_id = $1`, session, p.StaleAt, p.State, p.Draft, p.Base); err != nil {
			return fmt.Errorf("save pull request: %w", err)
		}
		if known.State == p.State {
			return nil
		}
		return tx.appendOwn(ctx, session, "", core.PullRequestMoved{State: p.State, Number: p.Number, URL: p.URL})
	})
}

// RepositoryRenamed keeps what GitHub says of a repository that has another name or owner now.
func (s *Store) RepositoryRenamed(ctx context.Context, r core.Repository) error {
	return s.InTx(ctx, func(tx *Tx) error { return tx.upsertRepository(ctx, r) })
}

// upsertPullRequest writes the one row of a session whose own row is locked.
func (tx *Tx) upsertPullRequest(ctx context.Context, session core.SessionID, p core.PullRequest) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO pull_requests (session_id, number, url, state, head_sha, title, draft, base, behind) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (session_id) DO UPDATE SET number = excluded.number, url = excluded.url, state = excluded.state,
			head_sha = excluded.head_sha, title = excluded.title, draft = excluded.draft, base = excluded.base, behind = excluded.behind,
			stale_at = NULL, updated_at = clock_timestamp()`,
		session, p.Number, p.URL, p.State, p.HeadSHA, clean(p.Title), p.Draft, p.Base, p.Behind)
	if err != nil {
		return fmt.Errorf("save pull request: %w", err)
	}
	return nil
}
