package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"agent-sandboxing/core"
	"agent-sandboxing/migrations"
)

const (
	schemaWait = 30 * time.Second
	schemaPoll = 500 * time.Millisecond

	lockTrySeconds = 1   // between two tries for the migration lock
	lockTries      = 300 // five minutes: another process may be migrating
)

// Migrate brings the schema to the embedded version. Processes that start together take turns by
// a lock of the database. Conflict schema_newer when the database is ahead of this program.
func (s *Store) Migrate(ctx context.Context) error {
	embedded, err := embeddedVersion()
	if err != nil {
		return err
	}
	current, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	if current > embedded {
		return schemaNewer(current, embedded)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockTrySeconds, lockTries))
	if err != nil {
		return fmt.Errorf("migration lock: %w", err)
	}
	db := stdlib.OpenDBFromPool(s.pool)
	defer func() { _ = db.Close() }() // the pool stays open
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	applied, err := provider.Up(ctx)
	if err != nil {
		return mapError(fmt.Errorf("migrate: %w", err))
	}
	for _, m := range applied {
		s.log.InfoContext(ctx, "migration_applied", slog.Int64("version", m.Source.Version), slog.Duration("took", m.Duration))
	}
	return nil
}

// WaitForSchema waits up to 30 s for exactly the embedded version. Conflict schema_newer at once,
// Unavailable schema_outdated at the end.
func (s *Store) WaitForSchema(ctx context.Context) error { return s.waitForSchema(ctx, schemaWait) }

func (s *Store) waitForSchema(ctx context.Context, most time.Duration) error {
	embedded, err := embeddedVersion()
	if err != nil {
		return err
	}
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	poll := time.NewTicker(schemaPoll)
	defer poll.Stop()
	for {
		current, err := s.schemaVersion(ctx)
		switch {
		case err != nil:
			return err
		case current == embedded:
			return nil
		case current > embedded:
			return schemaNewer(current, embedded)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return core.Fail(core.Unavailable, "schema_outdated", fmt.Sprintf("The database has schema version %d, this program needs %d. Run `migrate` of this version, or start `serve`.", current, embedded))
		case <-poll.C:
		}
	}
}

func schemaNewer(current, embedded int64) error {
	return core.Fail(core.Conflict, "schema_newer", fmt.Sprintf("The database has schema version %d, this program knows only %d. Start a newer version of the program.", current, embedded))
}

// schemaVersion is the version of the database, 0 when it was never migrated. It writes nothing.
func (s *Store) schemaVersion(ctx context.Context) (int64, error) {
	var version int64
	err := s.pool.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&version)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42P01" { // undefined_table
		return 0, nil
	}
	return version, mapError(err)
}

// embeddedVersion is the number of the last migration file.
func embeddedVersion() (int64, error) {
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		return 0, err
	}
	var last int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("migration file %s: %w", name, err)
		}
		last = max(last, version)
	}
	return last, nil
}
