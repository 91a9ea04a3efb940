package store

import (
	"context"
	"fmt"

	"agent-sandboxing/core"
)

// Audit records what a person did that others may have to answer for.
func (s *Store) Audit(ctx context.Context, e core.AuditEntry) error {
	return s.InTx(ctx, func(tx *Tx) error { return tx.Audit(ctx, e) })
}

// Audit records it together with what was done. The time is the database's.
func (tx *Tx) Audit(ctx context.Context, e core.AuditEntry) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO audit_log (user_id, action, session_id, detail) VALUES ($1, $2, nullif($3, '')::uuid, $4)`,
		e.UserID, e.Action, string(e.Session), clean(e.Detail))
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}
