package store

import (
	"context"
	"fmt"

	"agent-sandboxing/core"
)

// worstSource is the source of a sum of the row's cost and of one with source $n.
func worstSource(param string) string {
	return `CASE WHEN 'unknown' IN (cost_source, ` + param + `) THEN 'unknown' WHEN 'price' IN (cost_source, ` + param + `) THEN 'price'
		ELSE coalesce(nullif(` + param + `, ''), cost_source) END`
}

// AddUsage adds what one model request of a started message used, and returns what its session and
// its owner have spent with it. What was added survives a worker that dies. core.ErrLeaseLost.
func (s *Store) AddUsage(ctx context.Context, lease core.Lease, id core.MessageID, u core.Usage) (core.Spending, error) {
	var spent core.Spending
	err := s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			UPDATE messages SET prompt_tokens = prompt_tokens + $3, cached_tokens = cached_tokens + $4,
				completion_tokens = completion_tokens + $5, cost_usd = CASE WHEN $6::numeric IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0) + $6 END,
				cost_source = `+worstSource("$7")+`
			WHERE session_id = $1 AND id = $2 AND started_at IS NOT NULL`,
			lease.SessionID, id, u.PromptTokens, u.CachedTokens, u.CompletionTokens, u.CostUSD, string(u.CostSource))
		if err != nil {
			return fmt.Errorf("add usage: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return core.ErrLeaseLost
		}
		// Another session of the same person that spends now is waited for, or neither would see the other.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('spending ' || owner_id, 0)) FROM chat_sessions WHERE id = $1`, lease.SessionID); err != nil {
			return fmt.Errorf("wait for the person's other sessions: %w", err)
		}
		spent, err = readSpending(ctx, tx, lease.SessionID)
		return err
	})
	return spent, err
}

// readSpending sums what the session has cost, and what every message cost that its owner's sessions
// started in this month, UTC.
func readSpending(ctx context.Context, q querier, id core.SessionID) (core.Spending, error) {
	var spent core.Spending
	err := q.QueryRow(ctx, `
		WITH month AS MATERIALIZED (SELECT date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') AS begins)
		SELECT coalesce((SELECT sum(cost_usd) FROM messages WHERE session_id = s.id), 0)::float8,
			coalesce((
				SELECT sum(m.cost_usd) FROM chat_sessions o JOIN messages m ON m.session_id = o.id
				WHERE o.owner_id = s.owner_id AND m.cost_usd IS NOT NULL AND m.started_at >= month.begins AT TIME ZONE 'UTC'
			), 0)::float8,
			(month.begins + interval '1 month') AT TIME ZONE 'UTC'
		FROM chat_sessions s, month WHERE s.id = $1`, id).Scan(&spent.SessionUSD, &spent.MonthUSD, &spent.MonthEnds)
	if err != nil {
		return spent, fmt.Errorf("sum what was spent: %w", err)
	}
	return spent, nil
}

// refuseOverBudget ends the oldest queued message of a session, whose row is locked, when a budget is
// used up.
func (tx *Tx) refuseOverBudget(ctx context.Context, id core.SessionID, budgets core.Budgets) (refused bool, err error) {
	if budgets == (core.Budgets{}) {
		return false, nil
	}
	spent, err := readSpending(ctx, tx, id)
	if err != nil {
		return false, err
	}
	reached := budgets.Check(spent)
	if reached == nil {
		return false, nil
	}
	m, err := oneMessage(ctx, tx, oldestQueued, id)
	if err != nil {
		return false, err
	}
	return true, tx.failQueued(ctx, id, m.ID, core.CodeOf(reached), core.MessageOf(reached))
}
