package store

import (
	"context"
	"fmt"
)

// Instance names this installation for labels on containers and volumes: the same for every process
// on this database, another for every other database of the same server.
func (s *Store) Instance(ctx context.Context) (string, error) {
	var system, database int64
	err := s.pool.QueryRow(ctx, `
		SELECT system_identifier, (SELECT oid::bigint FROM pg_database WHERE datname = current_database())
		FROM pg_control_system()`).Scan(&system, &database)
	if err != nil {
		return "", mapError(fmt.Errorf("identify the database: %w", err))
	}
	return fmt.Sprintf("%x-%x", uint64(system), database), nil
}
