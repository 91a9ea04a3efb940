package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

const (
	// shownEgress is how many rows of a session a page is given.
	shownEgress = 30
	// maxRefusedEvents bounds the egress_refused events of one turn; what is beyond is in the rows.
	maxRefusedEvents = 20
)

// egressKey names one row of a session.
type egressKey struct {
	host    string
	port    int
	allowed bool
	rule    string
}

func keyOf(r core.EgressRow) egressKey { return egressKey{r.Host, r.Port, r.Allowed, r.Rule} }

// RecordEgress adds to what a session's sandbox has reached, and appends egress_refused once for each
// host and rule of a turn that forbade it. Above core.MaxEgressRows new hosts are summed without their names.
// NotFound when the session is gone.
func (s *Store) RecordEgress(ctx context.Context, session core.SessionID, rows []core.EgressRow) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.lockSession(ctx, session); err != nil {
			return err
		}
		known, err := tx.egressTurns(ctx, session)
		if err != nil {
			return err
		}
		fresh := newRefusals(known, rows)
		if err := tx.addEgress(ctx, session, bounded(known, rows)); err != nil {
			return err
		}
		for _, r := range fresh {
			event := core.EgressRefused{Host: clean(r.Host), Port: r.Port, Rule: r.Rule}
			if err := tx.Append(ctx, session, core.ByPlatform, r.MessageID, event); err != nil {
				return err
			}
		}
		return nil
	})
}

// egressTurns is each row of the session with the turn of its newest connection.
func (tx *Tx) egressTurns(ctx context.Context, session core.SessionID) (map[egressKey]core.MessageID, error) {
	rows, err := tx.Query(ctx, `SELECT host, port, allowed, rule, coalesce(message_id::text, '') FROM egress_log WHERE session_id = $1`, session)
	if err != nil {
		return nil, fmt.Errorf("read egress: %w", err)
	}
	known := make(map[egressKey]core.MessageID)
	var k egressKey
	var turn core.MessageID
	_, err = pgx.ForEachRow(rows, []any{&k.host, &k.port, &k.allowed, &k.rule, &turn}, func() error {
		known[k] = turn
		return nil
	})
	return known, err
}

// newRefusals are those that the log of their turn does not have yet.
func newRefusals(known map[egressKey]core.MessageID, rows []core.EgressRow) []core.EgressRow {
	type refusal struct {
		turn       core.MessageID
		host, rule string
	}
	told := make(map[refusal]bool)
	count := make(map[core.MessageID]int)
	for k, turn := range known {
		if r := (refusal{turn, k.host, k.rule}); forbidden(k.allowed, k.rule) && !told[r] {
			told[r] = true
			count[turn]++
		}
	}
	var fresh []core.EgressRow
	for _, row := range rows {
		r := refusal{row.MessageID, row.Host, row.Rule}
		if !forbidden(row.Allowed, row.Rule) || row.Host == "" || told[r] || count[row.MessageID] >= maxRefusedEvents {
			continue
		}
		told[r] = true
		count[row.MessageID]++
		fresh = append(fresh, row)
	}
	return fresh
}

// forbidden says that a rule refused the connection; others failed.
func forbidden(allowed bool, rule string) bool {
	return !allowed && !slices.Contains(core.EgressFailures(), rule)
}

// bounded sums the rows by key, and those that are new to a full session under no name. They come
// sorted: two workers that write at once, the old one and the new, lock in the same order.
func bounded(known map[egressKey]core.MessageID, rows []core.EgressRow) []core.EgressRow {
	taken := len(known)
	sums := make(map[egressKey]core.EgressRow)
	for _, r := range rows {
		r.Host = clean(r.Host)
		k := keyOf(r)
		_, old := known[k]
		_, here := sums[k]
		switch {
		case old || here:
		case taken < core.MaxEgressRows:
			taken++
		default:
			r.Host, r.Port = "", 0
			k = keyOf(r)
		}
		sums[k] = addRow(sums[k], r)
	}
	list := make([]core.EgressRow, 0, len(sums))
	for _, r := range sums {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b core.EgressRow) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Rule, b.Rule))
	})
	return list
}

// addRow is the sum of two rows of one key; a zero sum begins with r.
func addRow(sum, r core.EgressRow) core.EgressRow {
	if sum.Connections == 0 {
		return r
	}
	if r.EndedAt.After(sum.EndedAt) {
		sum.EndedAt, sum.MessageID = r.EndedAt, r.MessageID
	}
	if r.StartedAt.Before(sum.StartedAt) {
		sum.StartedAt = r.StartedAt
	}
	sum.Connections += r.Connections
	sum.Sent += r.Sent
	sum.Received += r.Received
	return sum
}

func (tx *Tx) addEgress(ctx context.Context, session core.SessionID, rows []core.EgressRow) error {
	n := len(rows)
	hosts, rules, turns := make([]string, n), make([]string, n), make([]string, n)
	ports, allowed := make([]int, n), make([]bool, n)
	connections, sent, received := make([]int64, n), make([]int64, n), make([]int64, n)
	started, ended := make([]time.Time, n), make([]time.Time, n)
	for i, r := range rows {
		hosts[i], rules[i], turns[i], ports[i], allowed[i] = r.Host, clean(r.Rule), string(r.MessageID), r.Port, r.Allowed
		connections[i], sent[i], received[i], started[i], ended[i] = r.Connections, r.Sent, r.Received, r.StartedAt, r.EndedAt
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO egress_log AS old (session_id, host, port, allowed, rule, message_id, connections, sent, received, started_at, ended_at)
		SELECT $1, host, port, allowed, rule, nullif(turn, '')::uuid, connections, sent, received, started_at, ended_at
		FROM unnest($2::text[], $3::int[], $4::boolean[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::timestamptz[], $11::timestamptz[])
			AS n (host, port, allowed, rule, turn, connections, sent, received, started_at, ended_at)
		ON CONFLICT (session_id, host, port, allowed, rule) DO UPDATE SET message_id = excluded.message_id,
			connections = old.connections + excluded.connections, sent = old.sent + excluded.sent, received = old.received + excluded.received,
			started_at = least(old.started_at, excluded.started_at), ended_at = greatest(old.ended_at, excluded.ended_at)`,
		session, hosts, ports, allowed, rules, turns, connections, sent, received, started, ended)
	if err != nil {
		return fmt.Errorf("record egress: %w", err)
	}
	return nil
}

// Egress sums up what a session's sandbox has reached, with its limit newest rows (0: all).
func (s *Store) Egress(ctx context.Context, session core.SessionID, limit int) (core.EgressSummary, error) {
	sum, err := readEgress(ctx, s.pool, session, limit)
	return sum, mapError(err)
}

func readEgress(ctx context.Context, q querier, session core.SessionID, limit int) (core.EgressSummary, error) {
	var sum core.EgressSummary
	rows, err := q.Query(ctx, `
		SELECT coalesce(message_id::text, ''), host, port, allowed, rule, connections, sent, received, started_at, ended_at,
			count(*) OVER (), count(*) FILTER (WHERE allowed) OVER (), count(*) FILTER (WHERE NOT allowed AND rule <> ALL ($3)) OVER (),
			coalesce(sum(sent) FILTER (WHERE allowed) OVER (), 0)::bigint, coalesce(sum(received) FILTER (WHERE allowed) OVER (), 0)::bigint
		FROM egress_log WHERE session_id = $1 ORDER BY ended_at DESC, host, port, rule LIMIT nullif($2, 0)`, session, limit, core.EgressFailures())
	if err != nil {
		return sum, fmt.Errorf("read egress: %w", err)
	}
	var r core.EgressRow
	_, err = pgx.ForEachRow(rows, []any{
		&r.MessageID, &r.Host, &r.Port, &r.Allowed, &r.Rule, &r.Connections, &r.Sent, &r.Received, &r.StartedAt, &r.EndedAt,
		&sum.Total, &sum.Contacted, &sum.Refused, &sum.Sent, &sum.Received,
	}, func() error {
		sum.Rows = append(sum.Rows, r)
		return nil
	})
	return sum, err
}

// SessionEgress is the mode that a session began with, the hosts that its repository lists now, and what
// its sandbox has moved.
func (s *Store) SessionEgress(ctx context.Context, id core.SessionID) (core.EgressPolicy, error) {
	var p core.EgressPolicy
	err := s.pool.QueryRow(ctx, `
		SELECT egress_mode, ARRAY(SELECT host FROM repository_hosts h WHERE h.repository_id = s.repository_id ORDER BY host),
			(SELECT coalesce(sum(sent + received), 0)::bigint FROM egress_log e WHERE e.session_id = s.id)
		FROM chat_sessions s WHERE id = $1`, id).Scan(&p.Mode, &p.Hosts, &p.Moved)
	if err != nil {
		return core.EgressPolicy{}, mapError(fmt.Errorf("read the session's egress: %w", err))
	}
	return p, nil
}
