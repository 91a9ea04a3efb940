package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

const (
	sessionColumns = `s.id, s.owner_id, s.base_branch, s.base_sha, s.default_branch_sha, s.branch, s.title, s.summary,
		s.bash_policy, s.egress_mode, s.last_sequence, s.archived, coalesce(s.lease_owner, ''), s.lease_until, s.created_at, s.updated_at,
		r.id, r.installation_id, r.owner, r.name, r.default_branch, r.private, r.archived, r.fork, r.language, r.description, r.pushed_at`
	fromSessions = ` FROM chat_sessions s JOIN repositories r ON r.id = s.repository_id `
)

// sessionFields are where sessionColumns go.
func sessionFields(s *core.ChatSession) []any {
	r := &s.Repository
	return []any{
		&s.ID, &s.OwnerID, &s.BaseBranch, &s.BaseSHA, &s.DefaultBranchSHA, &s.Branch, &s.Title, &s.Summary,
		&s.BashPolicy, &s.EgressMode, &s.LastSequence, &s.Archived, &s.LeaseOwner,
		zeroTime{&s.LeaseUntil},
		&s.CreatedAt, &s.UpdatedAt,
		&r.ID, &r.InstallationID, &r.Owner, &r.Name, &r.DefaultBranch, &r.Private, &r.Archived, &r.Fork, &r.Language, &r.Description,
		zeroTime{&r.PushedAt},
	}
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func readSession(ctx context.Context, q querier, id core.SessionID) (core.ChatSession, error) {
	var s core.ChatSession
	err := q.QueryRow(ctx, `SELECT `+sessionColumns+fromSessions+`WHERE s.id = $1`, id).Scan(sessionFields(&s)...)
	return s, err
}

// Session reads one session, NotFound when there is none.
func (s *Store) Session(ctx context.Context, id core.SessionID) (core.ChatSession, error) {
	session, err := readSession(ctx, s.pool, id)
	return session, mapError(err)
}

// CreateSession inserts the session with its first message and both events. The same ClientKey of
// the same owner returns the first session. Conflict too_many_active above MaxActive.
func (s *Store) CreateSession(ctx context.Context, n core.NewSession) (core.ChatSession, error) {
	var created core.ChatSession
	err := s.InTx(ctx, func(tx *Tx) error {
		// The owner's row serializes what one person submits at the same moment.
		if err := tx.lockUser(ctx, n.Session.OwnerID); err != nil {
			return err
		}
		first, err := sessionByKey(ctx, tx, n.Session.OwnerID, n.ClientKey)
		if err == nil {
			created, err = readSession(ctx, tx, first)
			return err
		}
		if !isNone(err) {
			return err
		}
		if err := tx.capActive(ctx, n.Session.OwnerID, n.MaxActive); err != nil {
			return err
		}
		if err := tx.upsertRepository(ctx, n.Session.Repository); err != nil {
			return err
		}
		id := cmp.Or(n.Session.ID, core.NewID[core.SessionID]())
		if err := tx.insertSession(ctx, id, n); err != nil {
			return err
		}
		if _, err := tx.insertMessage(ctx, id, n.Text, "", core.TurnLimits{}); err != nil {
			return err
		}
		created, err = readSession(ctx, tx, id)
		return err
	})
	return created, err
}

// SessionByKey returns the owner's session that was created with the key, NotFound when there is none.
func (s *Store) SessionByKey(ctx context.Context, owner core.UserID, key string) (core.ChatSession, error) {
	id, err := sessionByKey(ctx, s.pool, owner, key)
	if err != nil {
		return core.ChatSession{}, mapError(err)
	}
	return s.Session(ctx, id)
}

func sessionByKey(ctx context.Context, q querier, owner core.UserID, key string) (id core.SessionID, err error) {
	err = q.QueryRow(ctx, `SELECT id FROM chat_sessions WHERE owner_id = $1 AND client_key = $2 AND client_key <> ''`, owner, key).Scan(&id)
	return id, err
}

func (tx *Tx) insertSession(ctx context.Context, id core.SessionID, n core.NewSession) error {
	in := n.Session
	branch := cmp.Or(in.Branch, core.BranchFor(id))
	_, err := tx.Exec(ctx, `
		INSERT INTO chat_sessions (id, owner_id, repository_id, base_branch, base_sha, default_branch_sha, branch, title, bash_policy, egress_mode, client_key)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		id, in.OwnerID, in.Repository.ID, in.BaseBranch, in.BaseSHA, in.DefaultBranchSHA, branch, clean(in.Title), in.BashPolicy, cmp.Or(in.EgressMode, core.EgressNone), n.ClientKey)
	if err != nil {
		return fmt.Errorf("insert session: %w", err)
	}
	return tx.Append(ctx, id, core.ByPerson, "", core.SessionCreated{
		Repository: in.Repository.FullName(), BaseBranch: in.BaseBranch, BaseSHA: in.BaseSHA, Branch: branch,
	})
}

// upsertRepository keeps what GitHub last said of the repository, found by id.
func (tx *Tx) upsertRepository(ctx context.Context, r core.Repository) error {
	if _, err := tx.Exec(ctx, `
		INSERT INTO installations (id, account) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET account = excluded.account, updated_at = clock_timestamp()
		WHERE installations.account <> excluded.account`, r.InstallationID, r.Owner); err != nil {
		return fmt.Errorf("save installation: %w", err)
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO repositories (id, installation_id, owner, name, default_branch, private, archived, fork, language, description, pushed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (id) DO UPDATE SET installation_id = excluded.installation_id, owner = excluded.owner, name = excluded.name,
			default_branch = excluded.default_branch, private = excluded.private, archived = excluded.archived, fork = excluded.fork,
			language = excluded.language, description = excluded.description, pushed_at = excluded.pushed_at, updated_at = clock_timestamp()`,
		r.ID, r.InstallationID, r.Owner, r.Name, r.DefaultBranch, r.Private, r.Archived, r.Fork, clean(r.Language), clean(r.Description), orNull(r.PushedAt))
	if err != nil {
		return fmt.Errorf("save repository: %w", err)
	}
	return nil
}

// RenameSession sets the title.
func (s *Store) RenameSession(ctx context.Context, id core.SessionID, title string) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.lockSession(ctx, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE chat_sessions SET title = $2 WHERE id = $1`, id, clean(title)); err != nil {
			return err
		}
		return tx.Append(ctx, id, core.ByPerson, "", core.SessionRenamed{Title: snippet(title)})
	})
}

// ArchiveSession moves the session out of, or back into, the list. Repeating it changes nothing.
// Conflict session_busy while a message or a publish is unfinished.
func (s *Store) ArchiveSession(ctx context.Context, id core.SessionID, archived bool) error {
	return s.InTx(ctx, func(tx *Tx) error {
		session, err := tx.lockSession(ctx, id)
		if err != nil || session.archived == archived {
			return err
		}
		tag, err := tx.Exec(ctx, `
			UPDATE chat_sessions s SET archived = $2 WHERE id = $1
			AND NOT EXISTS (SELECT FROM messages WHERE session_id = s.id AND state IN ('queued', 'working'))
			AND NOT EXISTS (SELECT FROM publications WHERE session_id = s.id AND step IN ('requested', 'committed', 'pushed'))`, id, archived)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return core.Fail(core.Conflict, "session_busy", "This session is still at work. Wait for it to finish, or cancel it, then archive it.")
		}
		return tx.Append(ctx, id, core.ByPerson, "", core.SessionArchived{Archived: archived})
	})
}

// SaveSummary replaces the session's summary under the lease. What it cost is already counted, by
// AddUsage.
func (s *Store) SaveSummary(ctx context.Context, lease core.Lease, id core.MessageID, c core.Compaction) error {
	summary := clean(c.Summary)
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE chat_sessions SET summary = $2 WHERE id = $1`, lease.SessionID, summary); err != nil {
			return err
		}
		return tx.Append(ctx, lease.SessionID, core.ByPlatform, id, core.SummaryUpdated{
			Bytes: len(summary), ByModel: c.ByModel, Code: c.Code, Usage: c.Usage,
		})
	})
}
