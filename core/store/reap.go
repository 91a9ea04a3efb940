package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

const (
	// maxLosses is how many workers may be lost while they prepare one message, or publish once.
	maxLosses = 3

	codeWorkerLost  = "worker_lost"
	codePublishLost = "publish_worker_lost"
	textWorkerLost  = "The worker that ran this message stopped answering. Your changes are kept. Send the message again to go on."
	textLostThrice  = "Three workers in a row stopped while they prepared this message. Ask the operator to look at the workers, then send it again."
	textPublishLost = "Three workers in a row stopped while they published. What had reached GitHub stays there. Ask the operator to look at the workers, then publish again."
	textBoxLost     = "The worker that held this sandbox stopped answering. The next message starts it again with the same files."
)

// Reap ends every expired lease, each in its own transaction, and returns how many there were.
func (s *Store) Reap(ctx context.Context) (int, error) {
	for reaped := 0; ; reaped++ {
		err := s.InTx(ctx, func(tx *Tx) error { return tx.reapOne(ctx) })
		if errors.Is(err, core.ErrNoWork) {
			return reaped, nil
		}
		if err != nil {
			return reaped, err
		}
	}
}

// reapOne frees one session from its dead worker; core.ErrNoWork when no lease has run out.
func (tx *Tx) reapOne(ctx context.Context) error {
	var id core.SessionID
	var prepared core.MessageID
	err := tx.QueryRow(ctx, `
		SELECT id, coalesce(lease_message::text, '') FROM chat_sessions
		WHERE lease_owner IS NOT NULL AND lease_until <= clock_timestamp()
		ORDER BY lease_until LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED`).Scan(&id, &prepared)
	if isNone(err) {
		return core.ErrNoWork
	}
	if err != nil {
		return err
	}
	if err := tx.failWorking(ctx, id); err != nil {
		return err
	}
	if prepared == "" {
		err = tx.countPublishLoss(ctx, id)
	} else {
		err = tx.countLoss(ctx, id, prepared)
	}
	if err != nil {
		return err
	}
	if err := tx.failSandbox(ctx, id); err != nil {
		return err
	}
	tx.work = true
	return tx.giveBack(ctx, id)
}

// failWorking ends the working message; what the agent had said until then stays as its answer.
func (tx *Tx) failWorking(ctx context.Context, id core.SessionID) error {
	m, err := oneMessage(ctx, tx, `WHERE m.session_id = $1 AND m.state = 'working'`, id)
	if isNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := tx.interruptCalls(ctx, id, m.ID); err != nil {
		return err
	}
	return tx.finish(ctx, id, core.Finish{
		MessageID: m.ID, State: core.Failed, Answer: m.PartialText,
		FailureCode: codeWorkerLost, FailureText: textWorkerLost,
		Result: core.TurnResult{Model: m.Model},
	})
}

// interruptCalls gives every call whose result nobody wrote its end, so that the next turn knows of
// it: it may have done its work.
func (tx *Tx) interruptCalls(ctx context.Context, id core.SessionID, message core.MessageID) error {
	rows, err := tx.Query(ctx, `
		SELECT c.payload->>'call_id', c.payload->>'tool', c.payload->>'object' FROM events c
		WHERE c.session_id = $1 AND c.message_id = $2 AND c.type = 'agent_tool_call' AND NOT EXISTS (
			SELECT FROM events r WHERE r.session_id = $1 AND r.message_id = $2 AND r.type = 'agent_tool_result'
			AND r.payload->>'call_id' = c.payload->>'call_id')
		ORDER BY c.sequence`, id, message)
	if err != nil {
		return err
	}
	open, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.Payload, error) {
		r := core.AgentToolResult{Outcome: "interrupted"}
		err := row.Scan(&r.CallID, &r.Tool, &r.Object)
		return r, err
	})
	if err != nil {
		return err
	}
	return tx.Append(ctx, id, core.ByPlatform, message, open...)
}

// countLoss puts a message that was only prepared back into the queue, twice; the third loss fails it.
func (tx *Tx) countLoss(ctx context.Context, id core.SessionID, prepared core.MessageID) error {
	var losses int
	err := tx.QueryRow(ctx, `
		UPDATE messages SET preparations = preparations + 1
		WHERE session_id = $1 AND id = $2 AND state = 'queued' RETURNING preparations`, id, prepared).Scan(&losses)
	switch {
	case isNone(err):
		return nil
	case err != nil:
		return err
	case losses >= maxLosses:
		return tx.failQueued(ctx, id, prepared, codeWorkerLost, textLostThrice)
	}
	return tx.Append(ctx, id, core.ByPlatform, prepared, core.MessageRequeued{Losses: losses})
}

// countPublishLoss leaves a publish that was under way to the next worker, twice; the third loss fails it,
// lest it takes one worker after the other from everybody's messages.
func (tx *Tx) countPublishLoss(ctx context.Context, id core.SessionID) error {
	var losses int
	err := tx.QueryRow(ctx, `
		UPDATE publications SET losses = losses + 1 WHERE session_id = $1 AND `+duePublication+` RETURNING losses`, id).Scan(&losses)
	if isNone(err) || err == nil && losses < maxLosses {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := onePublication(ctx, tx, `WHERE session_id = $1 AND `+duePublication, id)
	if err != nil {
		return err
	}
	p.Step, p.FailureCode, p.FailureText, p.WaitingUntil = core.PublishFailed, codePublishLost, textPublishLost, time.Time{}
	if err := tx.upsertPublication(ctx, p); err != nil {
		return err
	}
	if err := tx.touch(ctx, id); err != nil {
		return err
	}
	return tx.Append(ctx, id, core.ByPlatform, p.MessageID, core.PublicationChanged{
		Type: core.EventPublicationFailed, PublicationID: p.ID, CommitSHA: p.CommitSHA, Code: p.FailureCode, Message: p.FailureText,
	})
}

// failSandbox gives up the container: nobody attaches to it again, the next claim makes another one
// on the same volume.
func (tx *Tx) failSandbox(ctx context.Context, id core.SessionID) error {
	box, err := oneSandbox(ctx, tx, `WHERE session_id = $1 AND state IN ('creating', 'ready')`, id)
	if isNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	box.State, box.FailureCode, box.FailureText = core.SandboxFailed, codeWorkerLost, textBoxLost
	if err := tx.upsertSandbox(ctx, box, false); err != nil {
		return err
	}
	return tx.Append(ctx, id, core.ByPlatform, "", core.SandboxChanged{
		State: box.State, SandboxID: box.ID, Generation: box.Generation, Image: box.Image, Runtime: box.Runtime,
		Code: box.FailureCode, Message: box.FailureText,
	})
}
