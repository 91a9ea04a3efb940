package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// maxStale bounds what one look for stale rows brings, of each kind.
const maxStale = 100

// Stale is what has to be read anew, the oldest hints first.
func (s *Store) Stale(ctx context.Context) (core.StaleRows, error) {
	var all core.StaleRows
	var err error
	if all.Installations, err = staleRows[core.InstallationID](ctx, s, `SELECT id, stale_at FROM installations`); err != nil {
		return all, err
	}
	if all.Repositories, err = staleRows[core.RepositoryID](ctx, s, `SELECT id, stale_at FROM repositories`); err != nil {
		return all, err
	}
	all.People, err = staleRows[core.UserID](ctx, s, `SELECT user_id, stale_at FROM user_tokens`)
	return all, err
}

func staleRows[K comparable](ctx context.Context, s *Store, from string) (map[K]time.Time, error) {
	rows, err := s.pool.Query(ctx, from+` WHERE stale_at IS NOT NULL ORDER BY stale_at LIMIT $1`, maxStale)
	if err != nil {
		return nil, mapError(fmt.Errorf("look for stale rows: %w", err))
	}
	found := map[K]time.Time{}
	var id K
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		found[id] = at
		return nil
	})
	return found, mapError(err)
}

// freshUnless ends the mark that the reader saw; one that came meanwhile stays.
const freshUnless = `stale_at = CASE WHEN stale_at > $2 THEN stale_at END`

// InstallationChanged says that an installation has to be read anew.
func (s *Store) InstallationChanged(ctx context.Context, id core.InstallationID) error {
	_, err := s.pool.Exec(ctx, `UPDATE installations SET stale_at = clock_timestamp() WHERE id = $1`, id)
	return mapError(err)
}

// Installation is what was last known of an installation. NotFound when nothing was started there.
func (s *Store) Installation(ctx context.Context, id core.InstallationID) (core.Installation, error) {
	var i core.Installation
	err := s.pool.QueryRow(ctx, `
		SELECT id, account, account_id, account_type, all_repos, suspended, removed, missing FROM installations WHERE id = $1`, id).
		Scan(&i.ID, &i.Account, &i.AccountID, &i.AccountType, &i.AllRepos, &i.Suspended, &i.Removed, &i.Missing)
	return i, mapError(err)
}

// SaveInstallation keeps what GitHub said of an installation whose mark was seen at stale.
func (s *Store) SaveInstallation(ctx context.Context, i core.Installation, stale time.Time) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE installations SET account = $3, account_id = $4, account_type = $5, all_repos = $6, suspended = $7, removed = false,
			missing = coalesce($8::text[], '{}'), updated_at = clock_timestamp(), `+freshUnless+` WHERE id = $1`,
		i.ID, stale, i.Account, i.AccountID, i.AccountType, i.AllRepos, i.Suspended, i.Missing)
	return s.accessChanged(i.ID, err)
}

// InstallationRemoved notes that an installation is not there any more.
func (s *Store) InstallationRemoved(ctx context.Context, id core.InstallationID, stale time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE installations SET removed = true, updated_at = clock_timestamp(), `+freshUnless+` WHERE id = $1`, id, stale)
	return s.accessChanged(id, err)
}

// SaveRepository keeps what GitHub said of a repository whose mark was seen at stale.
func (s *Store) SaveRepository(ctx context.Context, r core.Repository, stale time.Time) error {
	err := s.InTx(ctx, func(tx *Tx) error {
		if err := tx.upsertRepository(ctx, r); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE repositories SET `+freshUnless+` WHERE id = $1`, r.ID, stale)
		return err
	})
	return s.accessChanged(r.InstallationID, err)
}

// RepositoryRead ends the mark of a repository that cannot be read by the App any more.
func (s *Store) RepositoryRead(ctx context.Context, id core.RepositoryID, stale time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE repositories SET `+freshUnless+` WHERE id = $1`, id, stale)
	return mapError(err)
}

// TokenConfirmed ends the mark of a person's token that works.
func (s *Store) TokenConfirmed(ctx context.Context, id core.UserID, stale time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE user_tokens SET `+freshUnless+` WHERE user_id = $1`, id, stale)
	return mapError(err)
}

// accessChanged tells every process to forget what it remembered of an installation.
func (s *Store) accessChanged(id core.InstallationID, err error) error {
	if err == nil {
		s.notify.access(id)
	}
	return mapError(err)
}
