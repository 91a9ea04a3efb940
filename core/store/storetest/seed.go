package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
)

// Lease is long enough for a test under the race detector on a busy machine.
const Lease = time.Minute

// BaseSHA is the base commit of seeded sessions.
var BaseSHA = strings.Repeat("a", 40)

// User signs a new person in.
func User(tb testing.TB, s *store.Store) core.User {
	tb.Helper()
	id := rand.Int64N(1 << 40)
	u, err := s.UpsertUser(tb.Context(), core.Person{ID: core.GitHubUserID(id), Login: fmt.Sprintf("octo-dev-%d", id), Name: "Octo Dev"})
	if err != nil {
		tb.Fatalf("seed user: %v", err)
	}
	return u
}

// Repository is what sessions are seeded with.
func Repository() core.Repository {
	return core.Repository{
		ID: 4711, InstallationID: 12, Owner: "octo-org", Name: "web-app", DefaultBranch: "main", Private: true,
		Language: "Go", CanPull: true, CanPush: true,
	}
}

// Session makes a session of owner whose first message waits in the queue.
func Session(tb testing.TB, s *store.Store, owner core.UserID) core.ChatSession {
	tb.Helper()
	session, err := s.CreateSession(tb.Context(), core.NewSession{
		Session: core.ChatSession{
			OwnerID: owner, Repository: Repository(), BaseBranch: "main", BaseSHA: BaseSHA,
			Title: "Add a health check", BashPolicy: core.PolicySeed,
		},
		Text: "Add a health check",
	})
	if err != nil {
		tb.Fatalf("seed session: %v", err)
	}
	return session
}

// Worker registers a worker on host.
func Worker(tb testing.TB, s *store.Store, host string) core.Worker {
	tb.Helper()
	w := core.Worker{ID: core.NewID[core.WorkerID](), Host: host, Version: "test", Capacity: 4}
	if err := s.SaveWorker(tb.Context(), w); err != nil {
		tb.Fatalf("seed worker: %v", err)
	}
	return w
}

// Claim leases the session that waits.
func Claim(tb testing.TB, s *store.Store) core.Claim {
	tb.Helper()
	claim, err := s.Claim(tb.Context(), Worker(tb, s, "host-1"), Lease, core.Budgets{})
	if err != nil {
		tb.Fatalf("seed claim: %v", err)
	}
	return claim
}

// Working makes a session, claims it and starts its message.
func Working(tb testing.TB, s *store.Store) core.Claim {
	tb.Helper()
	Session(tb, s, User(tb, s).ID)
	claim := Claim(tb, s)
	started, err := s.StartMessage(tb.Context(), claim.Lease, claim.Message.ID, "test-model")
	if err != nil {
		tb.Fatalf("seed working message: %v", err)
	}
	claim.Message = &started
	return claim
}

// Finish completes the claim's working message with answer and gives the session back.
func Finish(tb testing.TB, s *store.Store, claim core.Claim, answer string) {
	tb.Helper()
	if err := s.FinishMessage(tb.Context(), claim.Lease, core.Finish{MessageID: claim.Message.ID, State: core.Completed, Answer: answer}); err != nil {
		tb.Fatalf("finish: %v", err)
	}
	if err := s.Release(tb.Context(), claim.Lease); err != nil {
		tb.Fatalf("release: %v", err)
	}
}

// Expire lets the session's lease run out, as if its worker had died long ago.
func Expire(tb testing.TB, s *store.Store, id core.SessionID) {
	tb.Helper()
	Exec(tb, s, `UPDATE chat_sessions SET lease_until = clock_timestamp() - interval '1 second' WHERE id = $1`, id)
}

// Exec runs SQL of a test's own, for states that no method of the store makes.
func Exec(tb testing.TB, s *store.Store, sql string, args ...any) {
	tb.Helper()
	err := s.InTx(tb.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(tb.Context(), sql, args...)
		return err
	})
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}
