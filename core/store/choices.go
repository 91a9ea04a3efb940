package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// PathChoices are the paths that people took into the session's publishes, or out of them.
func (s *Store) PathChoices(ctx context.Context, id core.SessionID) (core.PathChoices, error) {
	rows, err := s.pool.Query(ctx, `SELECT path, included FROM publish_choices WHERE session_id = $1`, id)
	if err != nil {
		return nil, mapError(fmt.Errorf("read the chosen paths: %w", err))
	}
	choices := core.PathChoices{}
	var path string
	var included bool
	_, err = pgx.ForEachRow(rows, []any{&path, &included}, func() error {
		choices[path] = included
		return nil
	})
	return choices, mapError(err)
}

// setPathChoices replaces the choices of a session whose row is locked.
func (tx *Tx) setPathChoices(ctx context.Context, id core.SessionID, choices core.PathChoices) error {
	if _, err := tx.Exec(ctx, `DELETE FROM publish_choices WHERE session_id = $1`, id); err != nil {
		return fmt.Errorf("save the chosen paths: %w", err)
	}
	paths, included := make([]string, 0, len(choices)), make([]bool, 0, len(choices))
	for path, in := range choices {
		paths, included = append(paths, path), append(included, in)
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO publish_choices (session_id, path, included)
		SELECT $1, path, included FROM unnest($2::text[], $3::boolean[]) AS n (path, included)`, id, paths, included)
	if err != nil {
		return fmt.Errorf("save the chosen paths: %w", err)
	}
	return nil
}
