package store

import (
	"context"
	"fmt"

	"agent-sandboxing/core"
)

// Repository reads what was last known of a repository on which something was started or set. NotFound.
func (s *Store) Repository(ctx context.Context, id core.RepositoryID) (core.Repository, error) {
	var r core.Repository
	err := s.pool.QueryRow(ctx, `
		SELECT id, installation_id, owner, name, default_branch, private, archived, fork, language, description, pushed_at
		FROM repositories WHERE id = $1`, id).
		Scan(&r.ID, &r.InstallationID, &r.Owner, &r.Name, &r.DefaultBranch, &r.Private, &r.Archived, &r.Fork, &r.Language, &r.Description, zeroTime{&r.PushedAt})
	if err != nil {
		return core.Repository{}, mapError(fmt.Errorf("read repository: %w", err))
	}
	return r, nil
}

// RepositoryPolicy is the shell policy that an administrator chose for a repository, "" when none did.
func (s *Store) RepositoryPolicy(ctx context.Context, id core.RepositoryID) (core.BashPolicy, error) {
	var p core.BashPolicy
	err := s.pool.QueryRow(ctx, `SELECT coalesce(bash_policy, '') FROM repository_settings WHERE repository_id = $1`, id).Scan(&p)
	if err != nil && !isNone(err) {
		return "", mapError(fmt.Errorf("read repository settings: %w", err))
	}
	return p, nil
}

// SetRepositoryPolicy keeps an administrator's choice, "" to take it back, and writes it down. Sessions
// that exist keep theirs.
func (s *Store) SetRepositoryPolicy(ctx context.Context, r core.Repository, p core.BashPolicy, by core.UserID) error {
	return s.setRepository(ctx, r, "bash_policy", string(p), "repository_policy", by)
}

// setRepository sets one of an administrator's columns, NULL for "".
func (s *Store) setRepository(ctx context.Context, r core.Repository, column, value, action string, by core.UserID) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.upsertRepository(ctx, r); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf(`
			INSERT INTO repository_settings (repository_id, %[1]s, updated_by) VALUES ($1, nullif($2, ''), $3)
			ON CONFLICT (repository_id) DO UPDATE SET %[1]s = excluded.%[1]s, updated_by = excluded.updated_by, updated_at = clock_timestamp()`, column),
			r.ID, value, by); err != nil {
			return fmt.Errorf("save repository settings: %w", err)
		}
		return tx.Audit(ctx, core.AuditEntry{UserID: by, Action: action, Detail: r.FullName() + " " + value})
	})
}

// RepositoryEgress is the egress mode that an administrator chose for a repository, "" when none did.
func (s *Store) RepositoryEgress(ctx context.Context, id core.RepositoryID) (core.EgressMode, error) {
	var m core.EgressMode
	err := s.pool.QueryRow(ctx, `SELECT coalesce(egress_mode, '') FROM repository_settings WHERE repository_id = $1`, id).Scan(&m)
	if err != nil && !isNone(err) {
		return "", mapError(fmt.Errorf("read repository settings: %w", err))
	}
	return m, nil
}

// SetRepositoryEgress keeps an administrator's choice, "" to take it back, and writes it down. Sessions
// that exist keep theirs.
func (s *Store) SetRepositoryEgress(ctx context.Context, r core.Repository, m core.EgressMode, by core.UserID) error {
	return s.setRepository(ctx, r, "egress_mode", string(m), "repository_egress", by)
}
