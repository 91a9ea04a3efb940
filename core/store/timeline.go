package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// Timeline reads everything that a session page shows in one snapshot, with the last limit events
// (0: all) before sequence before (0: the newest). Messages come in the order of a conversation,
// each answer right after its question.
func (s *Store) Timeline(ctx context.Context, id core.SessionID, before int64, limit int) (core.Timeline, error) {
	var t core.Timeline
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return t, mapError(fmt.Errorf("begin: %w", err))
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it only read
	err = readTimeline(ctx, tx, &t, id, before, limit)
	return t, mapError(err)
}

func readTimeline(ctx context.Context, q querier, t *core.Timeline, id core.SessionID, before int64, limit int) (err error) {
	if t.Session, err = readSession(ctx, q, id); err != nil {
		return err
	}
	if t.Owner, err = oneUser(ctx, q, `WHERE id = $1`, t.Session.OwnerID); err != nil {
		return err
	}
	if t.Messages, err = readMessages(ctx, q, id); err != nil {
		return err
	}
	if t.Events, t.Earlier, err = readLastEvents(ctx, q, id, before, limit); err != nil {
		return err
	}
	if t.Sandbox, err = newestSandbox(ctx, q, id); err != nil {
		return err
	}
	if t.PullRequest, err = readPullRequest(ctx, q, id); err != nil {
		return err
	}
	if t.Publication, err = noneIsNil(onePublication(ctx, q, `WHERE session_id = $1 ORDER BY created_at DESC LIMIT 1`, id)); err != nil {
		return err
	}
	if t.Diff, t.Changed, err = newestDiff(ctx, q, id); err != nil {
		return err
	}
	if t.Egress, err = readEgress(ctx, q, id, shownEgress); err != nil || t.Session.EgressMode != core.EgressAllowlist {
		return err
	}
	t.Hosts, err = readHosts(ctx, q, t.Session.Repository.ID)
	return err
}

func readMessages(ctx context.Context, q querier, id core.SessionID) ([]core.Message, error) {
	rows, err := q.Query(ctx, `
		SELECT `+messageColumns+` FROM messages m LEFT JOIN messages q ON q.session_id = m.session_id AND q.id = m.reply_to
		WHERE m.session_id = $1 ORDER BY `+inTurns, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanMessage)
}

// readLastEvents returns the events in order, and whether there are earlier ones.
func readLastEvents(ctx context.Context, q querier, id core.SessionID, before int64, limit int) ([]core.Event, bool, error) {
	rows, err := q.Query(ctx, `
		SELECT `+eventColumns+` FROM events
		WHERE session_id = $1 AND ($2 = 0 OR sequence < $2) ORDER BY sequence DESC LIMIT nullif($3, 0)`, id, before, limit)
	if err != nil {
		return nil, false, err
	}
	events, err := pgx.CollectRows(rows, scanEvent)
	if err != nil {
		return nil, false, err
	}
	slices.Reverse(events)
	return events, len(events) > 0 && events[0].Sequence > 1, nil
}
