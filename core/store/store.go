// Package store keeps the product's records in Postgres. State and event commit in one transaction;
// who follows a session is told after the commit, by ids only, and reads the rest from the tables.
//
// Lock order: the row of chat_sessions first, then whatever else. Times that decide something are
// the database's, taken after the lock (clock_timestamp).
package store

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"agent-sandboxing/core"
	"agent-sandboxing/core/seal"
)

// minConns keeps the claim, the heartbeat and the pages of a small machine from waiting for each
// other; pool_max_conns in the URL raises it.
const minConns = 20

// Store is a process's access to the database. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	keys   *seal.Keyring
	log    *slog.Logger
	notify *notifier
}

// Open connects to url (a Postgres URL or key=value string) and starts the notifier. It fails with
// Unavailable database_unavailable when no server answers. Close ends it.
func Open(ctx context.Context, url string, keys *seal.Keyring, log *slog.Logger) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The cause may quote the URL with its password.
		return nil, core.Fail(core.Invalid, "database_url_invalid", "DATABASE_URL cannot be read. Write it as postgres://user@host/name or as key=value pairs.")
	}
	config.MaxConns = max(config.MaxConns, minConns)
	setSession(config.ConnConfig)
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{
			Name: "timestamptz", OID: pgtype.TimestamptzOID,
			Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, mapError(fmt.Errorf("open the database: %w", err))
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, mapError(fmt.Errorf("reach the database: %w", err))
	}
	return &Store{pool: pool, keys: keys, log: log, notify: startNotifier(ctx, pool, log)}, nil
}

// setSession fixes what every connection of ours relies on, whatever the server's defaults are.
func setSession(config *pgx.ConnConfig) {
	for name, value := range map[string]string{
		"application_name":                    "agent-sandboxing",
		"timezone":                            "UTC",
		"default_transaction_isolation":       "read committed",
		"idle_in_transaction_session_timeout": "120000",
	} {
		config.RuntimeParams[name] = value
	}
}

// Close sends what the notifier still holds and ends every connection. Closing twice is fine.
func (s *Store) Close() {
	s.notify.stop()
	s.pool.Close()
}

// Ping proves that the database answers.
func (s *Store) Ping(ctx context.Context) error { return mapError(s.pool.Ping(ctx)) }
