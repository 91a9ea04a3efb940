package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

const publicationColumns = `id, session_id, coalesce(message_id::text, ''), coalesce(requested_by::text, ''), client_key, title, body,
	step, outcome, tree_sha, commit_sha, remote_before, number, failure_code, failure_text, left_out,
	created_at, finished_at, waiting_until, waiting_reason, work_commit, conflicts, conflict_patch, waits,
	draft, base, choice, cancel_requested_at`

func scanPublication(row pgx.CollectableRow) (core.Publication, error) {
	var p core.Publication
	err := row.Scan(&p.ID, &p.SessionID, &p.MessageID, &p.RequestedBy, &p.ClientKey, &p.Title, &p.Body,
		&p.Step, &p.Outcome, &p.TreeSHA, &p.CommitSHA, &p.RemoteBefore, &p.Number, &p.FailureCode, &p.FailureText, &p.LeftOut,
		&p.CreatedAt, zeroTime{&p.FinishedAt}, zeroTime{&p.WaitingUntil}, &p.WaitingReason,
		&p.WorkCommit, &p.Conflicts, &p.ConflictPatch, &p.Waits,
		&p.Draft, &p.Base, &p.Choice, zeroTime{&p.CancelRequestedAt})
	return p, err
}

// onePublication reads the row that tail selects; pgx.ErrNoRows when there is none.
func onePublication(ctx context.Context, q querier, tail string, args ...any) (core.Publication, error) {
	rows, err := q.Query(ctx, `SELECT `+publicationColumns+` FROM publications `+tail, args...)
	if err != nil {
		return core.Publication{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanPublication)
}

// noneIsNil turns "no row" into nil.
func noneIsNil(p core.Publication, err error) (*core.Publication, error) {
	if isNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, mapError(err)
	}
	return &p, nil
}

// Publication reads one attempt of the session, NotFound when it belongs to another.
func (s *Store) Publication(ctx context.Context, session core.SessionID, id core.PublicationID) (core.Publication, error) {
	p, err := onePublication(ctx, s.pool, `WHERE session_id = $1 AND id = $2`, session, id)
	return p, mapError(err)
}

// LastPublished is the newest publication of the session whose push was done, nil when none.
func (s *Store) LastPublished(ctx context.Context, id core.SessionID) (*core.Publication, error) {
	return noneIsNil(onePublication(ctx, s.pool, `WHERE session_id = $1 AND pushed_at IS NOT NULL ORDER BY pushed_at DESC LIMIT 1`, id))
}

// WithCommit are the session's publications that have a commit, newest first, whatever became of them.
func (s *Store) WithCommit(ctx context.Context, id core.SessionID) ([]core.Publication, error) {
	return s.publications(ctx, `WHERE session_id = $1 AND commit_sha <> '' ORDER BY finished_at DESC NULLS FIRST`, id)
}

// Resolved are the session's publications that ended as a conflict which the agent was asked to resolve
// since, in a turn that completed; oldest first.
func (s *Store) Resolved(ctx context.Context, id core.SessionID) ([]core.Publication, error) {
	return s.publications(ctx, `
		WHERE session_id = $1 AND failure_code = $2 AND EXISTS (
			SELECT FROM messages m WHERE m.session_id = $1 AND m.state = 'completed' AND m.client_key = $3 || publications.id::text)
		ORDER BY finished_at`, id, core.CodeSyncConflict, core.ResolveKey)
}

// publications reads the rows that tail selects.
func (s *Store) publications(ctx context.Context, tail string, args ...any) ([]core.Publication, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+publicationColumns+` FROM publications `+tail, args...)
	if err != nil {
		return nil, mapError(err)
	}
	found, err := pgx.CollectRows(rows, scanPublication)
	return found, mapError(err)
}

// RequestPublish stores a person's wish to publish. The same ClientKey in the same session returns
// the first one. Conflict publish_pending while another is unfinished. paths take the place of what was
// chosen before; nil leaves that as it is.
func (s *Store) RequestPublish(ctx context.Context, p core.Publication, paths core.PathChoices) (core.Publication, error) {
	var stored core.Publication
	err := s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.lockSession(ctx, p.SessionID); err != nil {
			return err
		}
		var err error
		stored, err = onePublication(ctx, tx, `WHERE session_id = $1 AND client_key = $2 AND client_key <> ''`, p.SessionID, p.ClientKey)
		if !isNone(err) {
			return err
		}
		if p.ID == "" {
			p.ID = core.NewID[core.PublicationID]()
		}
		p.Step = core.PublishRequested
		if err := tx.upsertPublication(ctx, p); err != nil {
			return err
		}
		if paths != nil {
			if err := tx.setPathChoices(ctx, p.SessionID, paths); err != nil {
				return err
			}
		}
		if err := tx.touch(ctx, p.SessionID); err != nil {
			return err
		}
		tx.work = true
		if err := tx.Append(ctx, p.SessionID, core.ByPerson, p.MessageID, core.PublicationChanged{
			Type: core.EventPublicationRequested, PublicationID: p.ID,
		}); err != nil {
			return err
		}
		stored, err = onePublication(ctx, tx, `WHERE id = $1`, p.ID)
		return err
	})
	return stored, err
}

// SavePublication inserts or updates the row under the lease and appends the events. Conflict
// publish_pending while another is unfinished, publish_finished when this one has already ended.
func (s *Store) SavePublication(ctx context.Context, lease core.Lease, p core.Publication, events ...core.Payload) error {
	return s.savePublication(ctx, lease, p, nil, events)
}

// FinishPublication writes the row, the pull request's row and the events in one transaction.
func (s *Store) FinishPublication(ctx context.Context, lease core.Lease, p core.Publication, pr core.PullRequest, events ...core.Payload) error {
	return s.savePublication(ctx, lease, p, &pr, events)
}

func (s *Store) savePublication(ctx context.Context, lease core.Lease, p core.Publication, pr *core.PullRequest, events []core.Payload) error {
	p.SessionID = lease.SessionID
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		if err := tx.upsertPublication(ctx, p); err != nil {
			return err
		}
		if pr != nil {
			if err := tx.upsertPullRequest(ctx, p.SessionID, *pr); err != nil {
				return err
			}
		}
		if err := tx.touch(ctx, p.SessionID); err != nil {
			return err
		}
		return tx.appendOwn(ctx, p.SessionID, p.MessageID, events...)
	})
}

// upsertPublication writes an attempt of a session whose row is locked. Who asked and when stays as
// first written.
func (tx *Tx) upsertPublication(ctx context.Context, p core.Publication) error {
	leftOut, err := document(nonNil(p.LeftOut))
	if err != nil {
		return err
	}
	conflicts, err := document(nonNil(p.Conflicts))
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO publications AS old (id, session_id, message_id, requested_by, client_key, title, body,
			step, outcome, tree_sha, commit_sha, remote_before, number, failure_code, failure_text, left_out,
			waiting_until, waiting_reason, created_at, work_commit, conflicts, conflict_patch, waits,
			draft, base, choice, cancel_requested_at, pushed_at, finished_at)
		VALUES ($1, $2, nullif($3, '')::uuid, nullif($4, '')::uuid, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16::text::jsonb,
			$17, $18, coalesce($19, clock_timestamp()), $20, $21::text::jsonb, $22, $23, $24, $25, $26, $27,
			CASE WHEN $8 = 'pushed' THEN clock_timestamp() END, CASE WHEN $8 IN ('done', 'failed') THEN clock_timestamp() END)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, body = excluded.body, step = excluded.step, outcome = excluded.outcome,
			tree_sha = excluded.tree_sha, commit_sha = excluded.commit_sha, remote_before = excluded.remote_before,
			number = excluded.number, failure_code = excluded.failure_code, failure_text = excluded.failure_text,
			left_out = excluded.left_out, waiting_until = excluded.waiting_until, waiting_reason = excluded.waiting_reason,
			work_commit = excluded.work_commit, conflicts = excluded.conflicts, conflict_patch = excluded.conflict_patch, waits = excluded.waits,
			cancel_requested_at = coalesce(old.cancel_requested_at, excluded.cancel_requested_at),
			pushed_at = coalesce(old.pushed_at, excluded.pushed_at), finished_at = excluded.finished_at
		WHERE old.session_id = excluded.session_id AND old.step NOT IN ('done', 'failed')`,
		p.ID, p.SessionID, string(p.MessageID), string(p.RequestedBy), p.ClientKey, clean(p.Title), clean(p.Body),
		string(p.Step), string(p.Outcome), p.TreeSHA, p.CommitSHA, p.RemoteBefore, p.Number, p.FailureCode, clean(p.FailureText), leftOut,
		orNull(p.WaitingUntil), clean(p.WaitingReason), orNull(p.CreatedAt), p.WorkCommit, conflicts, clean(p.ConflictPatch), p.Waits,
		p.Draft, p.Base, string(p.Choice), orNull(p.CancelRequestedAt))
	if err != nil {
		return fmt.Errorf("save publication: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return core.Fail(core.Conflict, "publish_finished", "This publish has already ended. Start another one.")
	}
	return nil
}

// CancelPublication ends an attempt that no worker has, and asks the worker that has it to end it before
// anything is sent. Conflict publish_not_waiting when it is over, publish_sent when it is too late.
func (s *Store) CancelPublication(ctx context.Context, session core.SessionID, id core.PublicationID) error {
	return s.InTx(ctx, func(tx *Tx) error {
		lock, err := tx.lockSession(ctx, session)
		if err != nil {
			return err
		}
		p, err := onePublication(ctx, tx, `WHERE session_id = $1 AND id = $2`, session, id)
		if err != nil {
			return err
		}
		served := lock.leaseOwner != "" && lock.leaseMessage == p.MessageID
		event := core.PublicationChanged{Type: core.EventPublicationCancel, PublicationID: p.ID, CommitSHA: p.CommitSHA}
		switch {
		case p.Step == core.PublishDone || p.Step == core.PublishFailed:
			return core.Fail(core.Conflict, "publish_not_waiting", "This publish has ended already. Look at how it ended.")
		case !served && (p.Step == core.PublishRequested || !p.WaitingUntil.IsZero()):
			p = endCancelled(p)
			event.Type, event.Code, event.Message = core.EventPublicationFailed, p.FailureCode, p.FailureText
		case p.Step == core.PublishRequested:
			p.CancelRequestedAt = time.Now()
		default:
			return core.Fail(core.Conflict, "publish_sent", "The commit is on its way to GitHub already, so the publish is brought to its end. Close the pull request there if you do not want it.")
		}
		if err := tx.upsertPublication(ctx, p); err != nil {
			return err
		}
		if err := tx.touch(ctx, session); err != nil {
			return err
		}
		return tx.Append(ctx, session, core.ByPerson, p.MessageID, event)
	})
}

// endCancelled ends an attempt that was waiting, or that nobody had begun.
func endCancelled(p core.Publication) core.Publication {
	p.Step, p.FailureCode, p.WaitingUntil = core.PublishFailed, "publish_cancelled", time.Time{}
	p.FailureText = "The publish was cancelled before anything was sent to GitHub. Publish again when you like."
	if p.CommitSHA != "" {
		p.FailureText = "The publish was cancelled while it waited for GitHub. What it had pushed stays on the branch; publish again to go on from there."
	}
	return p
}
