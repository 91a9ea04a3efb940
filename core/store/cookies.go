package store

import (
	"context"
	"time"

	"github.com/alexedwards/scs/pgxstore"
)

// Cookies keeps browsers' cookie sessions for scs. Their expiry is kept by the database's clock, which
// need not be the one of the process that serves them. It starts no goroutine; expired rows go by
// PruneCookies.
type Cookies struct {
	*pgxstore.PostgresStore
	store *Store
}

// Cookies is the store of cookie sessions.
func (s *Store) Cookies() Cookies {
	return Cookies{pgxstore.NewWithCleanupInterval(s.pool, 0), s}
}

// Commit keeps a session for as long as it is until expiry by this process's clock.
func (c Cookies) Commit(token string, data []byte, expiry time.Time) error {
	_, err := c.store.pool.Exec(context.Background(), `
		INSERT INTO sessions (token, data, expiry) VALUES ($1, $2, clock_timestamp() + $3::interval)
		ON CONFLICT (token) DO UPDATE SET data = excluded.data, expiry = excluded.expiry`, token, data, time.Until(expiry))
	return mapError(err)
}

// PruneCookies deletes expired cookie sessions and returns how many there were.
func (s *Store) PruneCookies(ctx context.Context) (int64, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM sessions WHERE expiry < now()`)
	return tag.RowsAffected(), mapError(err)
}
