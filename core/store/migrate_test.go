package store

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"agent-sandboxing/core"
	"agent-sandboxing/core/seal"
	"agent-sandboxing/migrations"
)

// openEmpty is a store on a database without tables; storetest cannot be used inside the package.
func openEmpty(t *testing.T) *Store {
	t.Helper()
	server := os.Getenv("TEST_DATABASE_URL")
	if server == "" {
		t.Fatal("TEST_DATABASE_URL is not set: run `scripts/test-postgres start` and export the line that it prints")
	}
	admin, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	name := "t_" + strings.ReplaceAll(string(core.NewID[core.UserID]()), "-", "")
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	keys, err := seal.Parse(seal.NewKey("test"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), server+" dbname="+name, keys, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // t.Context is over
		defer cancel()
		if _, err := admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
		_ = admin.Close(ctx)
	})
	return s
}

func TestMigrate_ProcessesThatStartTogetherTakeTurns(t *testing.T) {
	t.Parallel()
	s := openEmpty(t)
	done := make(chan error)
	for range 4 {
		go func() { done <- s.Migrate(t.Context()) }()
	}
	waited := make(chan error)
	go func() { waited <- s.WaitForSchema(t.Context()) }()
	for range 4 {
		if err := <-done; err != nil {
			t.Errorf("Migrate: %v", err)
		}
	}
	if err := <-waited; err != nil {
		t.Errorf("WaitForSchema meanwhile: %v", err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate again: %v", err)
	}
}

func TestWaitForSchema_DemandsExactlyTheEmbeddedVersion(t *testing.T) {
	t.Parallel()
	s := openEmpty(t)
	err := s.waitForSchema(t.Context(), time.Millisecond)
	if core.CodeOf(err) != "schema_outdated" || core.KindOf(err) != core.Unavailable {
		t.Errorf("on an empty database: %v, want Unavailable schema_outdated", err)
	}
	if _, err := s.pool.Exec(t.Context(), `SELECT FROM goose_db_version`); err == nil {
		t.Error("waiting made a table: web and worker must not change the schema")
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitForSchema(t.Context()); err != nil {
		t.Errorf("on the embedded version: %v", err)
	}
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"WaitForSchema": s.WaitForSchema(t.Context()), "Migrate": s.Migrate(t.Context())} {
		if core.CodeOf(err) != "schema_newer" {
			t.Errorf("%s on a newer database: %v, want schema_newer", name, err)
		}
	}
}

// A number may be missing for a while: parts that are made side by side are numbered before they land.
func TestMigrations_AreNumberedWithoutClashes(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrations.Files, "*.sql") // sorted
	if err != nil || len(names) == 0 {
		t.Fatalf("migrations = %v, %v", names, err)
	}
	form := regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.sql$`)
	var last int64
	for _, name := range names {
		m := form.FindStringSubmatch(name)
		if m == nil {
			t.Fatalf("%s is not named 0001_some_thing.sql", name)
		}
		number, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || number <= last {
			t.Errorf("%s: its number follows %d, %v", name, last, err)
		}
		last = number
	}
	if embedded, err := embeddedVersion(); err != nil || embedded != last {
		t.Errorf("embedded version %d, %v, want %d", embedded, err, last)
	}
}

// Rows of the first schema survive every later file, and mean what they meant.
func TestMigrations_OldMessagesSurvive(t *testing.T) {
	t.Parallel()
	s := openEmpty(t)
	db := stdlib.OpenDBFromPool(s.pool)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	session := core.NewID[core.SessionID]()
	ids := map[string]core.MessageID{"paid": core.NewID[core.MessageID](), "unpaid": core.NewID[core.MessageID](), "unused": core.NewID[core.MessageID]()}
	user := core.NewID[core.UserID]()
	if _, err := s.pool.Exec(t.Context(), `
		WITH u AS (INSERT INTO users (id, github_id, login, role) VALUES ($1, 1, 'octo-dev', 'member') RETURNING id),
			i AS (INSERT INTO installations (id, account) VALUES (1, 'octo-org') RETURNING id),
			r AS (INSERT INTO repositories (id, installation_id, owner, name) SELECT 1, id, 'octo-org', 'web-app' FROM i RETURNING id)
			INSERT INTO chat_sessions (id, owner_id, repository_id, base_branch, base_sha, branch, title, bash_policy)
			SELECT $2, u.id, r.id, 'main', repeat('a', 40), $3, 't', 'seed' FROM u, r`, user, session, core.BranchFor(session)); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]struct {
		tokens int
		cost   *float64
	}{"paid": {10, new(float64)}, "unpaid": {10, nil}, "unused": {0, nil}} {
		if _, err := s.pool.Exec(t.Context(), `
			INSERT INTO messages (id, session_id, role, text, state, failure_code, steps, prompt_tokens, cost_usd, started_at, finished_at)
			VALUES ($1, $2, 'user', 'x', 'failed', 'agent_limit_reached', 60, $3, $4, now(), now())`, ids[name], session, m.tokens, m.cost); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]core.CostSource{"paid": core.CostByProvider, "unpaid": core.CostUnknown, "unused": ""} {
		m, err := s.Message(t.Context(), session, ids[name])
		if err != nil || m.Usage.CostSource != want || m.Limits != (core.TurnLimits{}) || m.Steps != 60 {
			t.Errorf("%s: %+v, %v; want source %q and no limits", name, m, err, want)
		}
	}
}

// A session that began without a network does not get one by an upgrade.
func TestMigrations_OldSessionsStayWithoutANetwork(t *testing.T) {
	t.Parallel()
	s := openEmpty(t)
	db := stdlib.OpenDBFromPool(s.pool)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	id := core.NewID[core.SessionID]()
	if _, err := s.pool.Exec(t.Context(), `
		WITH u AS (INSERT INTO users (id, github_id, login, role) VALUES ($1, 1, 'octo-dev', 'member') RETURNING id),
			i AS (INSERT INTO installations (id, account) VALUES (1, 'octo-org') RETURNING id),
			r AS (INSERT INTO repositories (id, installation_id, owner, name) SELECT 1, id, 'octo-org', 'web-app' FROM i RETURNING id)
			INSERT INTO chat_sessions (id, owner_id, repository_id, base_branch, base_sha, branch, title, bash_policy)
			SELECT $2, u.id, r.id, 'main', repeat('a', 40), $3, 't', 'seed' FROM u, r`, core.NewID[core.UserID](), id, core.BranchFor(id)); err != nil {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if session, err := s.Session(t.Context(), id); err != nil || session.EgressMode != core.EgressNone {
		t.Errorf("got %q, %v, want none", session.EgressMode, err)
	}
}

// Every constraint that errors.go gives a meaning to exists.
func TestErrors_NameConstraintsOfTheSchema(t *testing.T) {
	t.Parallel()
	schema, err := fs.ReadFile(migrations.Files, "0001_init.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"one_working_message", "one_live_sandbox", "one_unfinished_publication", "messages_size", "messages_terminal",
		"chat_sessions_client_key", "messages_client_key", "publications_client_key",
	} {
		if byConstraint(name) == nil || !strings.Contains(string(schema), name) {
			t.Errorf("constraint %s is unknown to errors.go or to the schema", name)
		}
	}
}
