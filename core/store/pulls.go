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
	err := q.QueryRow(ctx, `SELECT session_id, number, url, state, head_sha, title, updated_at FROM pull_requests WHERE session_id = $1`, id).
		Scan(&p.SessionID, &p.Number, &p.URL, &p.State, &p.HeadSHA, &p.Title, &p.UpdatedAt)
	if isNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// upsertPullRequest writes the one row of a session whose own row is locked.
func (tx *Tx) upsertPullRequest(ctx context.Context, session core.SessionID, p core.PullRequest) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO pull_requests (session_id, number, url, state, head_sha, title) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (session_id) DO UPDATE SET number = excluded.number, url = excluded.url, state = excluded.state,
			head_sha = excluded.head_sha, title = excluded.title, updated_at = clock_timestamp()`,
		session, p.Number, p.URL, p.State, p.HeadSHA, clean(p.Title))
	if err != nil {
		return fmt.Errorf("save pull request: %w", err)
	}
	return nil
}
