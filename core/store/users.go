package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

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

// UpsertUser finds the person by GitHub id, or makes a member, and keeps the current login and name.
// The role is not GitHub's: SetRole changes it.
func (s *Store) UpsertUser(ctx context.Context, p core.Person) (core.User, error) {
	var u core.User
	err := s.pool.QueryRow(ctx, `
		INSERT INTO users (id, github_id, login, name, role) VALUES ($1, $2, $3, $4, 'member')
		ON CONFLICT (github_id) DO UPDATE SET login = excluded.login, name = excluded.name, updated_at = clock_timestamp()
		RETURNING id, github_id, login, name, role, created_at`,
		core.NewID[core.UserID](), p.ID, p.Login, clean(p.Name)).Scan(userFields(&u)...)
	return u, mapError(err)
}

// SetRole changes what a person may do here and writes down who did; the role they have already
// changes nothing. Unless by is an administrator by configuration, they must have the role still: of
// two who take it from each other one keeps it. NotFound.
func (s *Store) SetRole(ctx context.Context, id core.UserID, role core.UserRole, by core.UserID, configured bool) error {
	return s.InTx(ctx, func(tx *Tx) error {
		// Both rows, in one order for everybody.
		if _, err := tx.Exec(ctx, `SELECT FROM users WHERE id IN ($1, $2) ORDER BY id FOR UPDATE`, id, by); err != nil {
			return fmt.Errorf("lock both: %w", err)
		}
		who, err := oneUser(ctx, tx, `WHERE id = $1`, by)
		if err != nil {
			return err
		}
		if !configured && who.Role != core.Admin {
			return core.NotFoundError()
		}
		u, err := oneUser(ctx, tx, `WHERE id = $1`, id)
		if err != nil || u.Role == role {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE users SET role = $2, updated_at = clock_timestamp() WHERE id = $1`, id, role); err != nil {
			return fmt.Errorf("save role: %w", err)
		}
		return tx.Audit(ctx, core.AuditEntry{UserID: by, Action: "user_role", Detail: "@" + u.Login + " " + string(role)})
	})
}

// People lists everybody who has signed in, those who were here last first, at most limit.
func (s *Store) People(ctx context.Context, query string, limit int) ([]core.UserRow, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT u.id, u.github_id, u.login, u.name, u.role, u.created_at,
			(SELECT max(l.last_seen_at) FROM login_sessions l WHERE l.user_id = u.id),
			(SELECT count(*) FROM login_sessions l WHERE l.user_id = u.id AND `+liveLogin+`),
			EXISTS (SELECT FROM user_tokens t WHERE t.user_id = u.id)
		FROM users u
		WHERE position(lower($1) in lower(u.login)) > 0 OR position(lower($1) in lower(u.name)) > 0
		ORDER BY 7 DESC NULLS LAST, u.login LIMIT $2`, query, limit)
	if err != nil {
		return nil, mapError(fmt.Errorf("list people: %w", err))
	}
	people, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.UserRow, error) {
		var r core.UserRow
		err := row.Scan(append(userFields(&r.User), zeroTime{&r.LastSeenAt}, &r.Browsers, &r.Connected)...)
		return r, err
	})
	return people, mapError(err)
}

// AuditOf reads what was done last to people's access, the newest first.
func (s *Store) AuditOf(ctx context.Context, actions []string, limit int) ([]core.AuditRow, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT u.login, a.action, a.detail, a.created_at FROM audit_log a JOIN users u ON u.id = a.user_id
		WHERE a.action = ANY($1) ORDER BY a.created_at DESC LIMIT $2`, actions, limit)
	if err != nil {
		return nil, mapError(fmt.Errorf("read audit log: %w", err))
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.AuditRow, error) {
		var r core.AuditRow
		err := row.Scan(&r.By, &r.Action, &r.Detail, &r.At)
		return r, err
	})
	return all, mapError(err)
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
