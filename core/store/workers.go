package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
)

// SaveWorker upserts the worker's row; its heartbeat is the database's time.
func (s *Store) SaveWorker(ctx context.Context, w core.Worker) error {
	status, err := document(w.Status)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, `
		INSERT INTO workers (id, host, version, capacity, status) VALUES ($1, $2, $3, $4, $5::text::jsonb)
		ON CONFLICT (id) DO UPDATE SET host = excluded.host, version = excluded.version, capacity = excluded.capacity,
			status = excluded.status, heartbeat_at = clock_timestamp()`,
		w.ID, w.Host, w.Version, w.Capacity, status)
	return mapError(err)
}

// PruneWorkers forgets the workers that have not been seen for a week and returns how many.
func (s *Store) PruneWorkers(ctx context.Context) (int64, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM workers WHERE heartbeat_at < clock_timestamp() - interval '7 days'`)
	return tag.RowsAffected(), mapError(err)
}

// Workers lists every worker that was seen in the last day, the most recently seen first.
func (s *Store) Workers(ctx context.Context) ([]core.Worker, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT id, host, version, capacity, status, clock_timestamp() - heartbeat_at FROM workers
		WHERE heartbeat_at > clock_timestamp() - interval '1 day' ORDER BY heartbeat_at DESC`)
	if err != nil {
		return nil, mapError(err)
	}
	workers, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.Worker, error) {
		var w core.Worker
		err := row.Scan(&w.ID, &w.Host, &w.Version, &w.Capacity, &w.Status, &w.SilentFor)
		return w, err
	})
	return workers, mapError(err)
}
