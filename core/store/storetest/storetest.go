// Package storetest gives each test a database of its own on a real server, and small seeds.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core/seal"
	"agent-sandboxing/core/store"
	"agent-sandboxing/migrations"
)

const (
	serverVariable = "TEST_DATABASE_URL"
	// templateLock keeps test processes from building the template at the same moment.
	templateLock = 7_301_514_220
	setupLimit   = 2 * time.Minute
)

// New returns a store on a fresh migrated database, which is dropped when the test ends.
func New(tb testing.TB) *store.Store {
	tb.Helper()
	return Open(tb, NewURL(tb), Keys(tb))
}

// Open connects to a database of NewURL and closes the store when the test ends.
func Open(tb testing.TB, url string, keys *seal.Keyring) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), url, keys, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatalf("open store: %v", err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Keys is a random keyring.
func Keys(tb testing.TB) *seal.Keyring {
	tb.Helper()
	keys, err := seal.Parse(seal.NewKey("test"))
	if err != nil {
		tb.Fatalf("make keys: %v", err)
	}
	return keys
}

// NewURL makes a fresh migrated database by cloning the template and returns its connection string.
func NewURL(tb testing.TB) string {
	tb.Helper()
	server := os.Getenv(serverVariable)
	if server == "" {
		tb.Fatalf("%s is not set: run `scripts/test-postgres start` and export the line that it prints", serverVariable)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), setupLimit)
	defer cancel()
	admin, err := pgx.Connect(ctx, server)
	if err != nil {
		tb.Fatalf("connect to the test server: %v", err)
	}
	defer closeConn(ctx, admin)
	template, err := ensureTemplate(ctx, admin)
	if err != nil {
		tb.Fatalf("prepare template: %v", err)
	}
	name := "t_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY FILE_COPY"); err != nil {
		tb.Fatalf("create database: %v", err)
	}
	tb.Cleanup(func() { drop(tb, server, name) })
	return within(admin.Config(), name)
}

func drop(tb testing.TB, server, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), setupLimit) // the test's own context is over
	defer cancel()
	admin, err := pgx.Connect(ctx, server)
	if err != nil {
		tb.Errorf("connect to drop %s: %v", name, err)
		return
	}
	defer closeConn(ctx, admin)
	if _, err := admin.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		tb.Errorf("drop %s: %v", name, err)
	}
}

// ensureTemplate builds, once per content of the migrations, the database that tests clone. It is
// built under another name and renamed when complete, so a killed build is never cloned.
func ensureTemplate(ctx context.Context, admin *pgx.Conn) (string, error) {
	hash, err := migrationsHash()
	if err != nil {
		return "", err
	}
	name := "template_" + hash
	if _, err := admin.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return "", fmt.Errorf("lock: %w", err)
	}
	defer func() { _, _ = admin.Exec(ctx, "SELECT pg_advisory_unlock($1)", templateLock) }() // closing the connection unlocks too
	var exists bool
	if err := admin.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil || exists {
		return name, err
	}
	building := name + "_building"
	if _, err := admin.Exec(ctx, "DROP DATABASE IF EXISTS "+building+" WITH (FORCE)"); err != nil {
		return "", fmt.Errorf("drop a half-built template: %w", err)
	}
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+building); err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	if err := migrate(ctx, within(admin.Config(), building)); err != nil {
		return "", err
	}
	if _, err := admin.Exec(ctx, "ALTER DATABASE "+building+" RENAME TO "+name); err != nil {
		return "", fmt.Errorf("rename: %w", err)
	}
	return name, nil
}

func migrate(ctx context.Context, url string) error {
	keys, err := seal.Parse(seal.NewKey("template"))
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, url, keys, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	if err := s.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func migrationsHash() (string, error) {
	sum := sha256.New()
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		content, err := fs.ReadFile(migrations.Files, name)
		if err != nil {
			return "", err
		}
		sum.Write(fmt.Appendf(nil, "%s %d\n%s", name, len(content), content)) // never fails
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// within is config's server with another database.
func within(config *pgx.ConnConfig, database string) string {
	url := fmt.Sprintf("host='%s' port=%d user='%s' dbname='%s' sslmode=disable", config.Host, config.Port, config.User, database)
	if config.Password != "" {
		url += fmt.Sprintf(" password='%s'", config.Password)
	}
	return url
}

func closeConn(ctx context.Context, conn *pgx.Conn) {
	if err := conn.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
		slog.DebugContext(ctx, "close_failed", slog.Any("error", err))
	}
}
