package store

import (
	"cmp"
	"context"
	"fmt"

	"agent-sandboxing/core"
)

// StartMessage moves the message from queued to working. core.ErrLeaseLost; Conflict session_busy
// while another one works, not_queued when the message was taken back meanwhile.
func (s *Store) StartMessage(ctx context.Context, lease core.Lease, id core.MessageID, model string) (core.Message, error) {
	var started core.Message
	err := s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		if err := tx.requireQueued(ctx, lease.SessionID, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE messages SET state = 'working', started_at = clock_timestamp(), model = $2 WHERE id = $1`, id, model); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE chat_sessions SET lease_message = $2, updated_at = clock_timestamp() WHERE id = $1`, lease.SessionID, id); err != nil {
			return err
		}
		if err := tx.Append(ctx, lease.SessionID, core.ByPlatform, id, core.MessageWorking{Model: model}); err != nil {
			return err
		}
		var err error
		started, err = oneMessage(ctx, tx, `WHERE m.id = $1`, id)
		return err
	})
	return started, err
}

// FailQueued ends a message that could not begin. core.ErrLeaseLost; Conflict not_queued when it has
// already ended.
func (s *Store) FailQueued(ctx context.Context, lease core.Lease, id core.MessageID, code, text string) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		if err := tx.requireQueued(ctx, lease.SessionID, id); err != nil {
			return err
		}
		return tx.failQueued(ctx, lease.SessionID, id, code, text)
	})
}

func (tx *Tx) failQueued(ctx context.Context, session core.SessionID, id core.MessageID, code, text string) error {
	if _, err := tx.Exec(ctx, `
		UPDATE messages SET state = 'failed', failure_code = $2, failure_text = $3, finished_at = clock_timestamp() WHERE id = $1`,
		id, code, clean(text)); err != nil {
		return err
	}
	if err := tx.touch(ctx, session); err != nil {
		return err
	}
	return tx.Append(ctx, session, core.ByPlatform, id, core.MessageFailed{Code: code, Message: clean(text)})
}

// SetPartial stores the growing answer of the working message and tells who follows, without an
// event. It takes no lock of the session: whoever takes the lease away ends the message first.
func (s *Store) SetPartial(ctx context.Context, lease core.Lease, id core.MessageID, text string) error {
	text = clean(text)
	tag, err := s.pool.Exec(ctx, `
		UPDATE messages m SET partial_text = $4 FROM chat_sessions s
		WHERE s.id = $1 AND s.lease_owner = $2 AND s.lease_until > clock_timestamp()
		AND m.session_id = s.id AND m.id = $3 AND m.state = 'working'`, lease.SessionID, lease.Owner, id, text)
	if err != nil {
		return mapError(fmt.Errorf("store the partial answer: %w", err))
	}
	if tag.RowsAffected() == 0 {
		return core.ErrLeaseLost
	}
	s.notify.partial(lease.SessionID, id, len(text))
	return nil
}

// FinishMessage moves the working message to its terminal state, inserts the answer and appends the
// terminal event. core.ErrLeaseLost also when the message has already ended.
func (s *Store) FinishMessage(ctx context.Context, lease core.Lease, f core.Finish) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		return tx.finish(ctx, lease.SessionID, f)
	})
}

// finish ends a working message of a session whose row is locked. The usage that AddUsage has counted
// never shrinks: it holds requests that the result may not know.
func (tx *Tx) finish(ctx context.Context, session core.SessionID, f core.Finish) error {
	code := ""
	if f.State == core.Failed {
		code = cmp.Or(f.FailureCode, "internal") // an end without a code must still be an end
	}
	usage := f.Result.Usage
	tag, err := tx.Exec(ctx, `
		UPDATE messages SET state = $3, failure_code = $4, failure_text = $5, partial_text = '',
			model = coalesce(nullif($6, ''), model), prompt_hash = $7, steps = $8,
			prompt_tokens = greatest(prompt_tokens, $9), cached_tokens = greatest(cached_tokens, $10),
			completion_tokens = greatest(completion_tokens, $11), cost_usd = greatest(cost_usd, $12), cost_source = `+worstSource("$13")+`,
			max_steps = coalesce(nullif($14, 0), max_steps), max_minutes = coalesce(nullif($15, 0), max_minutes), finished_at = clock_timestamp()
		WHERE session_id = $1 AND id = $2 AND state = 'working'`,
		session, f.MessageID, f.State, code, clean(f.FailureText), f.Result.Model, f.Result.PromptHash, f.Result.Steps,
		usage.PromptTokens, usage.CachedTokens, usage.CompletionTokens, usage.CostUSD, string(usage.CostSource),
		f.Result.Limits.Steps, f.Result.Limits.Minutes)
	if err != nil {
		return fmt.Errorf("finish message: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return core.ErrLeaseLost
	}
	answer, err := tx.insertAnswer(ctx, session, f)
	if err != nil {
		return err
	}
	if err := tx.touch(ctx, session); err != nil {
		return err
	}
	return tx.Append(ctx, session, core.ByPlatform, f.MessageID, terminalEvent(f, code, answer))
}

// insertAnswer keeps what the agent said. A turn that ended early without a word has no answer.
func (tx *Tx) insertAnswer(ctx context.Context, session core.SessionID, f core.Finish) (core.MessageID, error) {
	if f.Answer == "" && f.State != core.Completed {
		return "", nil
	}
	id := core.NewID[core.MessageID]()
	_, err := tx.Exec(ctx, `
		INSERT INTO messages (id, session_id, role, reply_to, text, state, model, finished_at)
		VALUES ($1, $2, 'assistant', $3, $4, $5, $6, clock_timestamp())`,
		id, session, f.MessageID, clean(f.Answer), f.State, f.Result.Model)
	if err != nil {
		return "", fmt.Errorf("insert answer: %w", err)
	}
	return id, nil
}

func terminalEvent(f core.Finish, code string, answer core.MessageID) core.Payload {
	switch f.State {
	case core.Completed:
		additions, deletions := core.Totals(f.Changed)
		return core.MessageCompleted{
			AnswerID: answer, Files: len(f.Changed), Additions: additions, Deletions: deletions,
			Steps: f.Result.Steps, Usage: f.Result.Usage, Context: f.Result.Context,
		}
	case core.Cancelled:
		return core.MessageCancelled{AnswerID: answer, Started: true, Context: f.Result.Context}
	default: // failed; the table refuses any other state
		return core.MessageFailed{Code: code, Message: clean(f.FailureText), AnswerID: answer, Context: f.Result.Context}
	}
}
