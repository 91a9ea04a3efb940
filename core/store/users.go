package store

import (
	"context"

	"agent-sandboxing/core"
)

// oneUser reads the user that tail selects; pgx.ErrNoRows when there is none.
func oneUser(ctx context.Context, q querier, tail string, args ...any) (core.User, error) {
	var u core.User
	err := q.QueryRow(ctx, `SELECT id, github_id, login, name, role, created_at FROM users `+tail, args...).Scan(userFields(&u)...)
	return u, err
}

func userFields(u *core.User) []any {
	return []any{&u.ID, &u.GitHubID, &u.Login, &u.Name, &u.Role, &u.CreatedAt}
}

// UpsertUser finds the person by GitHub id, or makes a user, and keeps the current login, name and role.
func (s *Store) UpsertUser(ctx context.Context, p core.Person, role core.UserRole) (core.User, error) {
	var u core.User
	err := s.pool.QueryRow(ctx, `
		INSERT INTO users (id, github_id, login, name, role) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (github_id) DO UPDATE SET login = excluded.login, name = excluded.name, role = excluded.role, updated_at = clock_timestamp()
		RETURNING id, github_id, login, name, role, created_at`,
		core.NewID[core.UserID](), p.ID, p.Login, clean(p.Name), role).Scan(userFields(&u)...)
	return u, mapError(err)
}

// User reads one user, NotFound when there is none.
func (s *Store) User(ctx context.Context, id core.UserID) (core.User, error) {
	u, err := oneUser(ctx, s.pool, `WHERE id = $1`, id)
	return u, mapError(err)
}

// lockUser serializes what one person submits, after the session's row.
func (tx *Tx) lockUser(ctx context.Context, id core.UserID) error {
	var found bool
	err := tx.QueryRow(ctx, `SELECT true FROM users WHERE id = $1 FOR NO KEY UPDATE`, id).Scan(&found)
	if isNone(err) {
		return core.NotFoundError()
	}
	return err
}
