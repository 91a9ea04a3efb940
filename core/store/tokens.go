package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5/pgconn"

	"agent-sandboxing/core"
	"agent-sandboxing/core/seal"
)

const tokenColumns = `access, refresh, expires_at, refresh_expires_at, version`

func reauthRequired() *core.Error {
	return core.Fail(core.Unauthenticated, "reauth_required", "Your GitHub sign-in has ended. Sign in again; nothing is lost.")
}

// SaveUserToken stores the token of a new sign-in, sealed; its Version is raised here, not taken.
func (s *Store) SaveUserToken(ctx context.Context, id core.UserID, t core.UserToken) error {
	return s.InTx(ctx, func(tx *Tx) error {
		_, err := s.writeToken(ctx, tx, id, t)
		return err
	})
}

// DropUserToken forgets a token that GitHub takes no more. One that was stored since version stays.
// When GitHub has said that the person took it back, it signs them out everywhere, too: the mark that
// says so goes with the row.
func (s *Store) DropUserToken(ctx context.Context, id core.UserID, version int64) error {
	return s.InTx(ctx, func(tx *Tx) error {
		var takenBack bool
		err := tx.QueryRow(ctx, `
			DELETE FROM user_tokens WHERE user_id = $1 AND version = $2 RETURNING stale_at IS NOT NULL`, id, version).Scan(&takenBack)
		if isNone(err) {
			return nil
		}
		if err != nil || !takenBack {
			return err
		}
		_, err = tx.endLogins(ctx, id)
		return err
	})
}

// Disconnected forgets a person's token, whichever it is, and signs them out everywhere: their access
// was taken back, by themselves (written down) or on GitHub (by is "").
func (s *Store) Disconnected(ctx context.Context, id, by core.UserID) error {
	return s.InTx(ctx, func(tx *Tx) error {
		u, err := oneUser(ctx, tx, `WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM user_tokens WHERE user_id = $1`, id); err != nil {
			return fmt.Errorf("forget the token: %w", err)
		}
		if _, err := tx.endLogins(ctx, id); err != nil || by == "" {
			return err
		}
		return tx.Audit(ctx, core.AuditEntry{UserID: by, Action: "github_disconnected", Detail: "@" + u.Login})
	})
}

// UserToken reads the token, Unauthenticated reauth_required when there is none.
func (s *Store) UserToken(ctx context.Context, id core.UserID) (core.UserToken, error) {
	t, err := s.readToken(ctx, s.pool, id, "")
	return t, mapError(err)
}

// RefreshUserToken runs refresh on the token under its row's lock and stores what it returns. When
// the stored version is not the given one, somebody has refreshed meanwhile and that token is
// returned instead. An error of refresh is returned as it is and changes nothing. It holds a
// connection until GitHub has answered, so the caller bounds how many there are. Unavailable
// github_unavailable when another process does not get GitHub's answer in time.
func (s *Store) RefreshUserToken(ctx context.Context, id core.UserID, version int64, refresh func(core.UserToken) (core.UserToken, error)) (core.UserToken, error) {
	var current core.UserToken
	err := s.InTx(ctx, func(tx *Tx) error {
		// Who has the lock waits for GitHub: when that takes long, waiting along only takes connections.
		_, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '3s'`)
		if err != nil {
			return err
		}
		current, err = s.readToken(ctx, tx, id, " FOR UPDATE")
		if err != nil || current.Version != version {
			return err
		}
		fresh, err := refresh(current)
		if err != nil {
			return err
		}
		fresh.Version, err = s.writeToken(ctx, tx, id, fresh)
		current = fresh
		return err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "55P03" { // lock_not_available
		err = core.Fail(core.Unavailable, "github_unavailable",
			"GitHub is slow to renew your sign-in. Nothing was lost: try again in a minute.").Because(err)
	}
	if err != nil {
		return core.UserToken{}, err
	}
	return current, nil
}

func (s *Store) readToken(ctx context.Context, q querier, id core.UserID, lock string) (core.UserToken, error) {
	var t core.UserToken
	var access, refresh []byte
	err := q.QueryRow(ctx, `SELECT `+tokenColumns+` FROM user_tokens WHERE user_id = $1`+lock, id).
		Scan(&access, &refresh, zeroTime{&t.ExpiresAt}, zeroTime{&t.RefreshExpiresAt}, &t.Version)
	if isNone(err) {
		return t, reauthRequired()
	}
	if err != nil {
		return t, err
	}
	plainAccess, err := s.keys.Open(access, seal.Place("user_tokens", "access", string(id)))
	if err != nil {
		return core.UserToken{}, reauthRequired().Because(fmt.Errorf("access token: %w", err))
	}
	plainRefresh, err := s.keys.Open(refresh, seal.Place("user_tokens", "refresh", string(id)))
	if err != nil {
		return core.UserToken{}, reauthRequired().Because(fmt.Errorf("refresh token: %w", err))
	}
	t.Access, t.Refresh = string(plainAccess), string(plainRefresh)
	return t, nil
}

// writeToken counts a row's versions on from a random number, so that those of a row that was deleted
// do not come again.
func (s *Store) writeToken(ctx context.Context, tx *Tx, id core.UserID, t core.UserToken) (version int64, err error) {
	err = tx.QueryRow(ctx, `
		INSERT INTO user_tokens AS old (user_id, access, refresh, expires_at, refresh_expires_at, version) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (user_id) DO UPDATE SET access = excluded.access, refresh = excluded.refresh, expires_at = excluded.expires_at,
			refresh_expires_at = excluded.refresh_expires_at, version = old.version + 1, stale_at = NULL, updated_at = clock_timestamp()
		RETURNING version`,
		id,
		s.keys.Seal([]byte(t.Access), seal.Place("user_tokens", "access", string(id))),
		s.keys.Seal([]byte(t.Refresh), seal.Place("user_tokens", "refresh", string(id))),
		orNull(t.ExpiresAt), orNull(t.RefreshExpiresAt), rand.Int64N(1<<62)).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("store the token: %w", err)
	}
	return version, nil
}
