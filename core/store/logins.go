package store

import (
	"context"

	"agent-sandboxing/core"
)

// liveLogin is a login that nobody ended, used in the last 7 days and younger than 30.
const liveLogin = `l.ended_at IS NULL AND l.last_seen_at > clock_timestamp() - interval '7 days' AND l.created_at > clock_timestamp() - interval '30 days'`

// CreateLogin records a signed-in browser.
func (s *Store) CreateLogin(ctx context.Context, id core.UserID) (core.Login, error) {
	l := core.Login{ID: core.NewID[core.LoginID](), UserID: id}
	err := s.pool.QueryRow(ctx, `INSERT INTO login_sessions (id, user_id) VALUES ($1, $2) RETURNING created_at, last_seen_at`, l.ID, id).
		Scan(&l.CreatedAt, &l.LastSeenAt)
	return l, mapError(err)
}

// Login returns a live login with its user and moves its last_seen_at at most once a minute.
// Unauthenticated signed_out when it was ended, idle for 7 days or is 30 days old.
func (s *Store) Login(ctx context.Context, id core.LoginID) (core.Login, core.User, error) {
	var l core.Login
	var u core.User
	var stale bool
	err := s.pool.QueryRow(ctx, `
		SELECT u.id, u.github_id, u.login, u.name, u.role, u.created_at,
			l.id, l.user_id, l.created_at, l.last_seen_at, l.last_seen_at < clock_timestamp() - interval '1 minute'
		FROM login_sessions l JOIN users u ON u.id = l.user_id
		WHERE l.id = $1 AND `+liveLogin, id).
		Scan(append(userFields(&u), &l.ID, &l.UserID, &l.CreatedAt, &l.LastSeenAt, &stale)...)
	if err = mapError(err); core.KindOf(err) == core.NotFound {
		return l, u, core.Fail(core.Unauthenticated, "signed_out", "You are signed out. Sign in again to go on.")
	}
	if err == nil && stale {
		err = mapError(s.pool.QueryRow(ctx, `
			UPDATE login_sessions SET last_seen_at = clock_timestamp() WHERE id = $1 RETURNING last_seen_at`, id).Scan(&l.LastSeenAt))
	}
	return l, u, err
}

// EndLogin signs one browser out. Ending it twice is fine.
func (s *Store) EndLogin(ctx context.Context, id core.LoginID) error {
	_, err := s.pool.Exec(ctx, `UPDATE login_sessions SET ended_at = clock_timestamp() WHERE id = $1 AND ended_at IS NULL`, id)
	return mapError(err)
}

// EndLogins signs all of a person's browsers out, writes down who did, and returns how many there were.
func (s *Store) EndLogins(ctx context.Context, id, by core.UserID) (ended int64, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		u, err := oneUser(ctx, tx, `WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if ended, err = tx.endLogins(ctx, id); err != nil {
			return err
		}
		return tx.Audit(ctx, core.AuditEntry{UserID: by, Action: "sign_out_everywhere", Detail: "@" + u.Login})
	})
	return ended, err
}

func (tx *Tx) endLogins(ctx context.Context, id core.UserID) (int64, error) {
	tag, err := tx.Exec(ctx, `UPDATE login_sessions SET ended_at = clock_timestamp() WHERE user_id = $1 AND ended_at IS NULL`, id)
	return tag.RowsAffected(), err
}

// Browsers counts a person's live logins.
func (s *Store) Browsers(ctx context.Context, id core.UserID) (n int, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM login_sessions l WHERE l.user_id = $1 AND `+liveLogin, id).Scan(&n)
	return n, mapError(err)
}
