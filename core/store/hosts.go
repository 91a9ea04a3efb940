package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// RepositoryHosts is a repository's list, by name.
func (s *Store) RepositoryHosts(ctx context.Context, id core.RepositoryID) ([]core.RepositoryHost, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT h.host, coalesce(u.login, ''), h.created_at FROM repository_hosts h LEFT JOIN users u ON u.id = h.added_by
		WHERE h.repository_id = $1 ORDER BY h.host`, id)
	if err != nil {
		return nil, mapError(fmt.Errorf("read hosts: %w", err))
	}
	hosts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.RepositoryHost, error) {
		var h core.RepositoryHost
		err := row.Scan(&h.Host, &h.AddedBy, &h.AddedAt)
		return h, err
	})
	return hosts, mapError(err)
}

// readHosts is the names of a repository's list.
func readHosts(ctx context.Context, q querier, id core.RepositoryID) ([]string, error) {
	rows, err := q.Query(ctx, `SELECT host FROM repository_hosts WHERE repository_id = $1 ORDER BY host`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// AddRepositoryHost puts a host on a repository's list and writes down who did. From a session's page
// the session's log says so too; session is "" elsewhere. A host that is there already changes
// nothing. Conflict hosts_full at core.MaxEgressHosts.
func (s *Store) AddRepositoryHost(ctx context.Context, r core.Repository, host string, by core.User, session core.SessionID) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if session != "" {
			if _, err := tx.lockSession(ctx, session); err != nil {
				return err
			}
		}
		if err := tx.upsertRepository(ctx, r); err != nil {
			return err
		}
		// The update above holds the repository's row: nobody adds between the count and the insert.
		tag, err := tx.Exec(ctx, `
			INSERT INTO repository_hosts (repository_id, host, added_by)
			SELECT $1, $2, $3 WHERE (SELECT count(*) FROM repository_hosts WHERE repository_id = $1) < $4
			ON CONFLICT (repository_id, host) DO NOTHING`, r.ID, host, by.ID, core.MaxEgressHosts)
		if err != nil {
			return fmt.Errorf("add host: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return tx.mustHaveHost(ctx, r.ID, host)
		}
		if err := tx.Audit(ctx, core.AuditEntry{UserID: by.ID, Action: "egress_host_added", Session: session, Detail: r.FullName() + " " + host}); err != nil || session == "" {
			return err
		}
		return tx.Append(ctx, session, core.ByPerson, "", core.EgressHostAllowed{Host: host, By: by.Login})
	})
}

// mustHaveHost tells "it is there already" from "the list is full".
func (tx *Tx) mustHaveHost(ctx context.Context, id core.RepositoryID, host string) error {
	var there bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM repository_hosts WHERE repository_id = $1 AND host = $2)`, id, host).Scan(&there)
	if err == nil && !there {
		err = core.Fail(core.Conflict, "hosts_full", fmt.Sprintf(
			"The repository lists %d hosts, which is the most that it may. Remove one that is not needed, or use *.name for several.", core.MaxEgressHosts))
	}
	return err
}

// RemoveRepositoryHost takes a host off a repository's list and writes down who did. One that is not
// there changes nothing.
func (s *Store) RemoveRepositoryHost(ctx context.Context, r core.Repository, host string, by core.UserID) error {
	return s.InTx(ctx, func(tx *Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM repository_hosts WHERE repository_id = $1 AND host = $2`, r.ID, host)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return tx.Audit(ctx, core.AuditEntry{UserID: by, Action: "egress_host_removed", Detail: r.FullName() + " " + host})
	})
}
