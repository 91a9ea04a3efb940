package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// appendEvents numbers the rows from the counter on the session's row, whose lock is held until
// commit: commit order is sequence order, without holes.
const appendEvents = `
	WITH counter AS (
		UPDATE chat_sessions SET last_sequence = last_sequence + cardinality($4::text[])
		WHERE id = $1 %s
		RETURNING last_sequence - cardinality($4::text[]) AS last
	)
	INSERT INTO events (session_id, sequence, type, producer, message_id, payload)
	SELECT $1, counter.last + e.n, e.type, e.producer, nullif($2, '')::uuid, e.payload::jsonb
	FROM counter, unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS e (producer, type, payload, n)`

var (
	appendLocked = fmt.Sprintf(appendEvents, "")
	appendLeased = fmt.Sprintf(appendEvents, "AND lease_owner = $6 AND lease_until > clock_timestamp()")
)

// Append adds events to the session's log in this transaction. message is "" for events of no message.
func (tx *Tx) Append(ctx context.Context, session core.SessionID, by core.Producer, message core.MessageID, events ...core.Payload) error {
	rows, err := encodeEvents(events, func(core.Payload) core.Producer { return by })
	if err != nil || len(events) == 0 {
		return err
	}
	return tx.appendRows(ctx, session, message, rows)
}

// appendOwn is Append with each event's natural producer.
func (tx *Tx) appendOwn(ctx context.Context, session core.SessionID, message core.MessageID, events ...core.Payload) error {
	rows, err := encodeEvents(events, producerOf)
	if err != nil || len(events) == 0 {
		return err
	}
	return tx.appendRows(ctx, session, message, rows)
}

func (tx *Tx) appendRows(ctx context.Context, session core.SessionID, message core.MessageID, rows eventRows) error {
	tag, err := tx.Exec(ctx, appendLocked, string(session), string(message), rows.producers, rows.types, rows.payloads)
	if err != nil {
		return fmt.Errorf("append events: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return core.NotFoundError()
	}
	tx.changed = append(tx.changed, session)
	return nil
}

// Append adds events under the lease: one statement, so one round trip and its own transaction.
func (s *Store) Append(ctx context.Context, lease core.Lease, by core.Producer, id core.MessageID, events ...core.Payload) error {
	rows, err := encodeEvents(events, func(core.Payload) core.Producer { return by })
	if err != nil || len(events) == 0 {
		return err
	}
	tag, err := s.pool.Exec(ctx, appendLeased, string(lease.SessionID), string(id), rows.producers, rows.types, rows.payloads, lease.Owner)
	if err != nil {
		return mapError(fmt.Errorf("append events: %w", err))
	}
	if tag.RowsAffected() == 0 {
		return core.ErrLeaseLost
	}
	s.notify.sessions([]core.SessionID{lease.SessionID})
	return nil
}

// eventRows are the columns of new events, one element each.
type eventRows struct{ producers, types, payloads []string }

func encodeEvents(events []core.Payload, by func(core.Payload) core.Producer) (eventRows, error) {
	var rows eventRows
	for _, e := range events {
		payload, err := document(e)
		if err != nil {
			return rows, fmt.Errorf("encode %s: %w", e.EventType(), err)
		}
		rows.producers = append(rows.producers, string(by(e)))
		rows.types = append(rows.types, string(e.EventType()))
		rows.payloads = append(rows.payloads, payload)
	}
	return rows, nil
}

// producerOf is who an event comes from when the caller does not say.
func producerOf(e core.Payload) core.Producer {
	switch e.(type) {
	case core.AgentToolCall, core.AgentToolResult:
		return core.ByAgent
	}
	return core.ByPlatform
}

const eventColumns = `session_id, sequence, type, producer, coalesce(message_id::text, ''), payload, created_at`

func scanEvent(row pgx.CollectableRow) (core.Event, error) {
	var e core.Event
	err := row.Scan(&e.SessionID, &e.Sequence, &e.Type, &e.Producer, &e.MessageID, &e.Payload, &e.CreatedAt)
	return e, err
}

// EventsSince returns up to limit events (0: all) with a sequence above after, in order.
func (s *Store) EventsSince(ctx context.Context, id core.SessionID, after int64, limit int) ([]core.Event, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT `+eventColumns+` FROM events
		WHERE session_id = $1 AND sequence > $2 ORDER BY sequence LIMIT nullif($3, 0)`, id, after, limit)
	if err != nil {
		return nil, mapError(err)
	}
	events, err := pgx.CollectRows(rows, scanEvent)
	return events, mapError(err)
}

// LastSequences returns the newest sequence of each session that exists.
func (s *Store) LastSequences(ctx context.Context, ids []core.SessionID) (map[core.SessionID]int64, error) {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	rows, err := s.pool.Query(ctx, `SELECT id, last_sequence FROM chat_sessions WHERE id = ANY ($1::text[]::uuid[])`, texts)
	if err != nil {
		return nil, mapError(err)
	}
	last := make(map[core.SessionID]int64, len(ids))
	var id core.SessionID
	var sequence int64
	_, err = pgx.ForEachRow(rows, []any{&id, &sequence}, func() error {
		last[id] = sequence
		return nil
	})
	return last, mapError(err)
}

// Activity returns the session's last tool calls, oldest first.
func (s *Store) Activity(ctx context.Context, id core.SessionID, limit int) ([]core.ToolActivity, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT tool, object, outcome FROM (
			SELECT sequence, payload->>'tool' AS tool, payload->>'object' AS object,
				concat_ws(' ', payload->>'outcome', nullif(payload->>'detail', '')) AS outcome
			FROM events WHERE session_id = $1 AND type = 'agent_tool_result'
			ORDER BY sequence DESC LIMIT $2
		) newest ORDER BY sequence`, id, limit)
	if err != nil {
		return nil, mapError(err)
	}
	activity, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.ToolActivity, error) {
		var a core.ToolActivity
		err := row.Scan(&a.Tool, &a.Object, &a.Outcome)
		return a, err
	})
	return activity, mapError(err)
}

// isNone says that a single-row read found nothing.
func isNone(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
