package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

const messageColumns = `m.id, m.session_id, m.role, coalesce(m.reply_to::text, ''), m.text, m.partial_text, m.state,
	m.failure_code, m.failure_text, m.cancel_requested_at, m.preparations, m.model, m.prompt_hash, m.steps,
	m.prompt_tokens, m.cached_tokens, m.completion_tokens, m.cost_usd, m.cost_source,
	coalesce(m.max_steps, 0), coalesce(m.max_minutes, 0), m.created_at, m.started_at, m.finished_at`

func scanMessage(row pgx.CollectableRow) (core.Message, error) {
	var m core.Message
	err := row.Scan(&m.ID, &m.SessionID, &m.Role, &m.ReplyTo, &m.Text, &m.PartialText, &m.State,
		&m.FailureCode, &m.FailureText, zeroTime{&m.CancelRequestedAt}, &m.Preparations, &m.Model, &m.PromptHash, &m.Steps,
		&m.Usage.PromptTokens, &m.Usage.CachedTokens, &m.Usage.CompletionTokens, &m.Usage.CostUSD, &m.Usage.CostSource,
		&m.Limits.Steps, &m.Limits.Minutes, &m.CreatedAt, zeroTime{&m.StartedAt}, zeroTime{&m.FinishedAt})
	return m, err
}

// oneMessage reads the message that tail selects; pgx.ErrNoRows when there is none.
func oneMessage(ctx context.Context, q querier, tail string, args ...any) (core.Message, error) {
	rows, err := q.Query(ctx, `SELECT `+messageColumns+` FROM messages m `+tail, args...)
	if err != nil {
		return core.Message{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanMessage)
}

// Message reads one message of the session, NotFound when it belongs to another.
func (s *Store) Message(ctx context.Context, session core.SessionID, id core.MessageID) (core.Message, error) {
	m, err := oneMessage(ctx, s.pool, `WHERE m.session_id = $1 AND m.id = $2`, session, id)
	return m, mapError(err)
}

// PostMessage queues a follow-up. The same ClientKey in the same session returns the first message.
// Conflict session_archived or too_many_active; TooLarge message_too_large.
func (s *Store) PostMessage(ctx context.Context, n core.NewMessage) (core.Message, error) {
	var posted core.Message
	err := s.InTx(ctx, func(tx *Tx) error {
		session, err := tx.lockSession(ctx, n.SessionID)
		if err != nil {
			return err
		}
		posted, err = oneMessage(ctx, tx, `WHERE m.session_id = $1 AND m.client_key = $2 AND m.client_key <> ''`, n.SessionID, n.ClientKey)
		if !isNone(err) {
			return err
		}
		if session.archived {
			return core.Fail(core.Conflict, "session_archived", "This session is archived. Restore it, then post.")
		}
		if err := tx.lockUser(ctx, n.OwnerID); err != nil {
			return err
		}
		if err := tx.capActive(ctx, n.OwnerID, n.MaxActive); err != nil {
			return err
		}
		id, err := tx.insertMessage(ctx, n.SessionID, n.Text, n.ClientKey, n.Limits)
		if err != nil {
			return err
		}
		posted, err = oneMessage(ctx, tx, `WHERE m.id = $1`, id)
		return err
	})
	return posted, err
}

// insertMessage queues text in a session whose row is locked, or new.
func (tx *Tx) insertMessage(ctx context.Context, session core.SessionID, text, clientKey string, limits core.TurnLimits) (core.MessageID, error) {
	id := core.NewID[core.MessageID]()
	text = clean(text)
	_, err := tx.Exec(ctx, `
		INSERT INTO messages (id, session_id, role, text, state, client_key, max_steps, max_minutes)
		VALUES ($1, $2, 'user', $3, 'queued', $4, nullif($5, 0), nullif($6, 0))`,
		id, session, text, clientKey, limits.Steps, limits.Minutes)
	if err != nil {
		return "", fmt.Errorf("insert message: %w", err)
	}
	if err := tx.touch(ctx, session); err != nil {
		return "", err
	}
	tx.work = true
	return id, tx.Append(ctx, session, core.ByPerson, id, core.MessageQueued{Snippet: snippet(text)})
}

// capActive refuses when the person's unfinished messages have reached most; 0 is no cap. The
// caller holds the lock of the person's row.
func (tx *Tx) capActive(ctx context.Context, owner core.UserID, most int) error {
	if most == 0 {
		return nil
	}
	var active int
	err := tx.QueryRow(ctx, `
		SELECT count(*) FROM messages m JOIN chat_sessions s ON s.id = m.session_id
		WHERE s.owner_id = $1 AND m.state IN ('queued', 'working')`, owner).Scan(&active)
	if err != nil {
		return err
	}
	if active >= most {
		return core.Fail(core.Conflict, "too_many_active", fmt.Sprintf("You have %d unfinished messages, the most that one person may have. Wait for one to finish, or cancel one.", active))
	}
	return nil
}

// EditMessage replaces the text of a queued message. Conflict not_queued when it has begun or ended.
func (s *Store) EditMessage(ctx context.Context, session core.SessionID, id core.MessageID, text string) error {
	text = clean(text)
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.lockSession(ctx, session); err != nil {
			return err
		}
		if err := tx.requireQueued(ctx, session, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE messages SET text = $2 WHERE id = $1`, id, text); err != nil {
			return err
		}
		return tx.Append(ctx, session, core.ByPerson, id, core.MessageEdited{Snippet: snippet(text)})
	})
}

// RemoveMessage ends a queued message as cancelled, and its preparation with it. Conflict not_queued.
func (s *Store) RemoveMessage(ctx context.Context, session core.SessionID, id core.MessageID, by string) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.lockSession(ctx, session); err != nil {
			return err
		}
		if err := tx.requireQueued(ctx, session, id); err != nil {
			return err
		}
		return tx.cancelQueued(ctx, session, id, by)
	})
}

// requireQueued demands a queued message of the locked session.
func (tx *Tx) requireQueued(ctx context.Context, session core.SessionID, id core.MessageID) error {
	m, err := oneMessage(ctx, tx, `WHERE m.session_id = $1 AND m.id = $2 AND m.role = 'user'`, session, id)
	if err == nil && m.State != core.Queued {
		return core.Fail(core.Conflict, "not_queued", "This message is not waiting any more, so it stays as it is.")
	}
	return err
}

// cancelQueued ends a queued message; cancel_requested_at tells a worker that prepares it to stop.
func (tx *Tx) cancelQueued(ctx context.Context, session core.SessionID, id core.MessageID, by string) error {
	if _, err := tx.Exec(ctx, `
		UPDATE messages SET state = 'cancelled', cancel_requested_at = clock_timestamp(), finished_at = clock_timestamp()
		WHERE id = $1 AND state = 'queued'`, id); err != nil {
		return err
	}
	if err := tx.touch(ctx, session); err != nil {
		return err
	}
	if err := tx.Append(ctx, session, core.ByPerson, id, core.MessageCancelRequested{By: by}); err != nil {
		return err
	}
	return tx.Append(ctx, session, core.ByPlatform, id, core.MessageCancelled{})
}

// RequestCancel asks for the end of the session's working message; the worker that runs it obeys.
// Without one, the oldest queued message ends at once. Asking twice is one request. Conflict
// nothing_to_cancel.
func (s *Store) RequestCancel(ctx context.Context, session core.SessionID, by string) (core.Message, error) {
	var message core.Message
	err := s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.lockSession(ctx, session); err != nil {
			return err
		}
		m, err := oneMessage(ctx, tx, `
			WHERE m.session_id = $1 AND m.state IN ('queued', 'working')
			ORDER BY m.state = 'working' DESC, m.created_at LIMIT 1`, session)
		switch {
		case isNone(err):
			return core.Fail(core.Conflict, "nothing_to_cancel", "Nothing is running in this session, so there is nothing to cancel.")
		case err != nil:
			return err
		case m.State == core.Queued:
			err = tx.cancelQueued(ctx, session, m.ID, by)
		case m.CancelRequestedAt.IsZero():
			err = tx.requestCancel(ctx, session, m.ID, by)
		}
		if err != nil {
			return err
		}
		message, err = oneMessage(ctx, tx, `WHERE m.id = $1`, m.ID)
		return err
	})
	return message, err
}

func (tx *Tx) requestCancel(ctx context.Context, session core.SessionID, id core.MessageID, by string) error {
	if _, err := tx.Exec(ctx, `UPDATE messages SET cancel_requested_at = clock_timestamp() WHERE id = $1`, id); err != nil {
		return err
	}
	return tx.Append(ctx, session, core.ByPerson, id, core.MessageCancelRequested{By: by})
}

// inTurns sorts a session's messages as a conversation: each answer right after its question, even
// when other questions were queued in between. It needs m left-joined to its question q.
const inTurns = `coalesce(q.created_at, m.created_at), coalesce(q.id, m.id), m.role = 'assistant'`

// Conversation returns the last texts before message, oldest first. Left out are messages that
// were taken back before they began.
func (s *Store) Conversation(ctx context.Context, id core.SessionID, before core.MessageID, limit int) ([]core.TurnText, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT role, text FROM (
			SELECT m.role, m.text, row_number() OVER (ORDER BY `+inTurns+`) AS n
			FROM messages m LEFT JOIN messages q ON q.session_id = m.session_id AND q.id = m.reply_to
			WHERE m.session_id = $1 AND m.state NOT IN ('queued', 'working') AND m.text <> ''
			AND NOT (m.role = 'user' AND m.state = 'cancelled' AND m.started_at IS NULL)
			AND coalesce(q.created_at, m.created_at) < (SELECT created_at FROM messages WHERE session_id = $1 AND id = $2)
			ORDER BY n DESC LIMIT $3
		) last ORDER BY n`, id, before, limit)
	if err != nil {
		return nil, mapError(err)
	}
	texts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.TurnText, error) {
		var t core.TurnText
		err := row.Scan(&t.Role, &t.Text)
		return t, err
	})
	return texts, mapError(err)
}

// Unsummarised returns the turns of the session that have ended without SaveSummary, oldest first; of
// more than ten the newest.
func (s *Store) Unsummarised(ctx context.Context, id core.SessionID) ([]core.EndedTurn, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT id, text, state, failure_code, steps, answer FROM (
			SELECT m.id, m.text, m.state, m.failure_code, m.steps, coalesce(a.text, '') AS answer, m.created_at
			FROM messages m LEFT JOIN messages a ON a.session_id = m.session_id AND a.reply_to = m.id
			WHERE m.session_id = $1 AND m.role = 'user' AND m.started_at IS NOT NULL AND m.state IN ('completed', 'failed', 'cancelled')
			AND m.id NOT IN (SELECT e.message_id FROM events e WHERE e.session_id = $1 AND e.type = 'summary_updated' AND e.message_id IS NOT NULL)
			ORDER BY m.created_at DESC, m.id DESC LIMIT 10
		) last ORDER BY created_at, id`, id)
	if err != nil {
		return nil, mapError(err)
	}
	turns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.EndedTurn, error) {
		var t core.EndedTurn
		err := row.Scan(&t.Finish.MessageID, &t.Request, &t.Finish.State, &t.Finish.FailureCode, &t.Finish.Result.Steps, &t.Finish.Answer)
		return t, err
	})
	return turns, mapError(err)
}

// LastRequest is the text of the session's message that was worked on last, "" when none was.
func (s *Store) LastRequest(ctx context.Context, id core.SessionID) (string, error) {
	var text string
	err := s.pool.QueryRow(ctx, `
		SELECT text FROM messages WHERE session_id = $1 AND role = 'user' AND started_at IS NOT NULL
		ORDER BY started_at DESC LIMIT 1`, id).Scan(&text)
	if isNone(err) {
		return "", nil
	}
	return text, mapError(err)
}
