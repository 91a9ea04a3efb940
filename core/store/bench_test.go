package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

// round is how many rows a writer adds before the other side has its turn.
const round = 100

// BenchmarkAppend adds events under the lease, and the same rows by bare pgx inserts in transactions,
// in turns on the same server, so that both see the same machine. It reports both and how much of
// the bare rate the store reaches.
func BenchmarkAppend(b *testing.B) {
	for _, sessions := range []int{1, 8} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			url := storetest.NewURL(b)
			s := storetest.Open(b, url, storetest.Keys(b))
			pool, err := pgxpool.New(b.Context(), url+" pool_max_conns=20")
			if err != nil {
				b.Fatal(err)
			}
			defer pool.Close()
			owner := storetest.User(b, s)
			var claims, bare []core.Claim
			for range sessions {
				storetest.Session(b, s, owner.ID)
				claims = append(claims, storetest.Claim(b, s))
				storetest.Session(b, s, owner.ID)
				bare = append(bare, storetest.Claim(b, s))
			}
			var stored, inserted time.Duration
			var rows int
			for b.Loop() {
				stored += each(b, claims, func(ctx context.Context, c core.Claim, _ int) error { return appendOne(ctx, s, c) })
				inserted += each(b, bare, func(ctx context.Context, c core.Claim, i int) error { return insertOne(ctx, pool, c, 1000+rows+i) })
				rows += round
			}
			all := float64(rows * sessions)
			b.ReportMetric(0, "ns/op") // of a whole round, which says nothing
			b.ReportMetric(float64(stored.Nanoseconds())/all, "store-ns/row")
			b.ReportMetric(float64(inserted.Nanoseconds())/all, "bare-ns/row")
			b.ReportMetric(100*inserted.Seconds()/stored.Seconds(), "%-of-bare-rate")
			b.Logf("bench: event append with %d sessions at once %.0f µs, bare insert %.0f µs, %.0f %% of the bare rate (budget 50 %%)",
				sessions, float64(stored.Microseconds())/all, float64(inserted.Microseconds())/all, 100*inserted.Seconds()/stored.Seconds())
		})
	}
}

// each runs a round of add in every session at once and returns how long it took.
func each(b *testing.B, claims []core.Claim, add func(context.Context, core.Claim, int) error) time.Duration {
	began := time.Now()
	var all sync.WaitGroup
	for _, c := range claims {
		all.Go(func() {
			for i := range round {
				if err := add(b.Context(), c, i); err != nil {
					b.Errorf("add: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// event is an ordinary one of a turn.
func event() core.AgentToolResult {
	return core.AgentToolResult{CallID: "call_0123456789", Tool: "edit", Object: "src/server/health.go", Outcome: "ok", Detail: "+8 −2", Snippet: "func health(w http.ResponseWriter, r *http.Request) {", Ms: 12}
}

func appendOne(ctx context.Context, s *store.Store, c core.Claim) error {
	return s.Append(ctx, c.Lease, core.ByAgent, c.Message.ID, event())
}

func insertOne(ctx context.Context, pool *pgxpool.Pool, c core.Claim, sequence int) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		payload, err := json.Marshal(event())
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO events (session_id, sequence, type, producer, message_id, payload) VALUES ($1, $2, $3, $4, $5, $6)`,
			c.Session.ID, sequence, "agent_tool_result", "agent", c.Message.ID, string(payload))
		return err
	})
}
