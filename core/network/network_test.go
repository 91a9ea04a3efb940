package network_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/network"
)

// table stands for the database where a test decides when it answers and when it fails.
type table struct {
	mu     sync.Mutex
	policy core.EgressPolicy
	reads  int
	held   chan struct{} // reads wait until it is closed
	rows   map[core.SessionID][]core.EgressRow
	fail   error
	hang   bool
}

func (d *table) SessionEgress(context.Context, core.SessionID) (core.EgressPolicy, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	if held := d.held; held != nil {
		d.mu.Unlock()
		<-held
		d.mu.Lock()
	}
	return d.policy, d.fail
}

func (d *table) RecordEgress(ctx context.Context, id core.SessionID, rows []core.EgressRow) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hang {
		d.mu.Unlock()
		<-ctx.Done()
		d.mu.Lock()
		return ctx.Err()
	}
	if d.fail != nil {
		return d.fail
	}
	if d.rows == nil {
		d.rows = make(map[core.SessionID][]core.EgressRow)
	}
	d.rows[id] = append(d.rows[id], rows...)
	return nil
}

func (d *table) connections(id core.SessionID) (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.rows[id] {
		n += r.Connections
	}
	return n
}

func service(d *table, o network.Options) *network.Service {
	o.Store = d
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return network.New(o)
}

func refusal(id core.SessionID, host string) core.EgressRecord {
	return core.EgressRecord{SessionID: id, Host: host, Port: 443, Rule: "host_not_allowed", StartedAt: time.Now(), EndedAt: time.Now()}
}

func TestEgressPolicy_IsTheStricterModeWithBothLists(t *testing.T) {
	t.Parallel()
	d := &table{policy: core.EgressPolicy{Mode: core.EgressOpen, Hosts: []string{"b.example"}}}
	s := service(d, network.Options{Ceiling: core.EgressAllowlist, Hosts: []string{"a.example"}})
	got, err := s.EgressPolicy(t.Context(), "s")
	want := core.EgressPolicy{Mode: core.EgressAllowlist, Hosts: []string{"a.example", "b.example"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v -want +got\n%s", err, diff)
	}
}

func TestEgressPolicy_AHostThatIsAddedHoldsWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &table{policy: core.EgressPolicy{Mode: core.EgressAllowlist}}
		s := service(d, network.Options{Ceiling: core.EgressOpen})
		for range 1000 {
			if p, err := s.EgressPolicy(t.Context(), "s"); err != nil || len(p.Hosts) != 0 {
				t.Fatal(p, err)
			}
		}
		if d.reads != 1 {
			t.Errorf("%d reads for a thousand connections at once", d.reads)
		}
		d.policy.Hosts = []string{"a.example"}
		<-time.After(time.Second)
		if p, err := s.EgressPolicy(t.Context(), "s"); err != nil || !p.Listed("a.example") {
			t.Errorf("a second later: %+v, %v", p, err)
		}
	})
}

func TestEgressPolicy_ConnectionsAtOnceShareOneLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &table{policy: core.EgressPolicy{Mode: core.EgressOpen}, held: make(chan struct{})}
		s := service(d, network.Options{Ceiling: core.EgressOpen})
		first, leave := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := s.EgressPolicy(first, "s"); !errors.Is(err, context.Canceled) {
				t.Errorf("whoever left was told %v", err)
			}
		})
		synctest.Wait()
		for range 255 {
			asking.Go(func() {
				if p, err := s.EgressPolicy(t.Context(), "s"); err != nil || p.Mode != core.EgressOpen {
					t.Error(p, err)
				}
			})
		}
		asking.Go(func() {
			if _, err := s.EgressPolicy(t.Context(), "other"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		close(d.held)
		asking.Wait()
		if d.reads != 2 {
			t.Errorf("%d reads for two sessions", d.reads)
		}
	})
}

func TestEgressPolicy_AnUnknownPolicyIsAnError(t *testing.T) {
	t.Parallel()
	s := service(&table{policy: core.EgressPolicy{Mode: core.EgressOpen}, fail: errors.New("no database")}, network.Options{Ceiling: core.EgressOpen})
	if p, err := s.EgressPolicy(t.Context(), "s"); err == nil || p.Mode != "" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestBegin_ConnectionsBelongToTheTurnAtWork(t *testing.T) {
	t.Parallel()
	d := &table{}
	s := service(d, network.Options{})
	s.RecordEgress(refusal("s", "before.example"))
	first := s.Begin("s", "m1")
	s.RecordEgress(refusal("s", "during.example"))
	s.RecordEgress(refusal("other", "other.example"))
	second := s.Begin("s", "m2")
	first() // late: the next turn is at work already
	s.RecordEgress(refusal("s", "next.example"))
	second()
	s.RecordEgress(refusal("s", "after.example"))
	s.FlushAll(t.Context())
	got := map[string]core.MessageID{}
	for _, rows := range d.rows {
		for _, r := range rows {
			got[r.Host] = r.MessageID
		}
	}
	want := map[string]core.MessageID{"before.example": "", "during.example": "m1", "other.example": "", "next.example": "m2", "after.example": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestRecord_IsWrittenByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &table{}
		s := service(d, network.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		for range 1000 {
			s.RecordEgress(refusal("s", "evil.example"))
		}
		<-time.After(time.Second)
		if n, rows := d.connections("s"), len(d.rows["s"]); n != 1000 || rows != 1 {
			t.Errorf("%d connections in %d rows, want 1000 in one", n, rows)
		}
		cancel()
		running.Wait()
	})
}

func TestFlush_WritesItsSessionAndWaitsForNobodyElse(t *testing.T) {
	t.Parallel()
	d := &table{}
	s := service(d, network.Options{})
	s.RecordEgress(refusal("a", "one.example"))
	s.RecordEgress(refusal("b", "two.example"))
	s.Flush(t.Context(), "a")
	if d.connections("a") != 1 || d.connections("b") != 0 {
		t.Errorf("after the flush of a: %d of a, %d of b", d.connections("a"), d.connections("b"))
	}
	s.FlushAll(t.Context())
	if d.connections("b") != 1 {
		t.Error("b was not written")
	}
}

func TestRecord_WaitsForADatabaseThatComesBack(t *testing.T) {
	t.Parallel()
	d := &table{fail: core.Fail(core.Unavailable, "database_unavailable", "gone")}
	s := service(d, network.Options{})
	s.RecordEgress(refusal("s", "evil.example"))
	s.Flush(t.Context(), "s")
	s.RecordEgress(refusal("s", "evil.example"))
	d.fail = nil
	s.Flush(t.Context(), "s")
	if n := d.connections("s"); n != 2 {
		t.Errorf("%d connections, want both", n)
	}
	d.fail = core.NotFoundError()
	s.RecordEgress(refusal("s", "evil.example"))
	s.Flush(t.Context(), "s")
	d.fail = nil
	s.Flush(t.Context(), "s")
	if n := d.connections("s"); n != 2 {
		t.Errorf("a session that was gone is written again: %d", n)
	}
}

// A database that hangs costs the end of a turn some seconds, and a connection nothing.
func TestRecord_NeverWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &table{hang: true}
		s := service(d, network.Options{})
		began := time.Now()
		s.RecordEgress(refusal("s", "evil.example"))
		var flushing sync.WaitGroup
		flushing.Go(func() { s.Flush(t.Context(), "s") })
		synctest.Wait()
		s.RecordEgress(refusal("s", "other.example"))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a record waited %s", waited)
		}
		flushing.Wait()
		if waited := time.Since(began); waited > 5*time.Second {
			t.Errorf("a flush took %s", waited)
		}
		d.hang = false
		s.Flush(t.Context(), "s")
		if n := d.connections("s"); n != 2 {
			t.Errorf("%d connections, want both", n)
		}
	})
}

// While the database is away, a session that makes up names takes no room from the others, and no
// connection is forgotten.
func TestRecord_NoSessionTakesRoomFromAnother(t *testing.T) {
	t.Parallel()
	d := &table{fail: core.Fail(core.Unavailable, "database_unavailable", "gone")}
	s := service(d, network.Options{})
	for i := range 5000 {
		s.RecordEgress(refusal("loud", fmt.Sprintf("h%d.example", i)))
		if i == 300 {
			s.FlushAll(t.Context())
		}
	}
	s.RecordEgress(refusal("loud", "h0.example")) // has a row
	s.RecordEgress(refusal("quiet", "evil.example"))
	s.FlushAll(t.Context())
	d.fail = nil
	s.FlushAll(t.Context())
	count := map[string]int64{}
	for _, r := range d.rows["loud"] {
		count[r.Host] += r.Connections
	}
	if n, rows := d.connections("loud"), len(d.rows["loud"]); n != 5001 || rows != core.MaxEgressRows+1 || count["h0.example"] != 2 || count[""] != 4500 {
		t.Errorf("%d connections in %d rows, %d of the first host, %d without a name", n, rows, count["h0.example"], count[""])
	}
	if rows := d.rows["quiet"]; len(rows) != 1 || rows[0].Host != "evil.example" {
		t.Errorf("of the other session: %+v", rows)
	}
}

func TestWatch_CollectsTheRefusalsOfItsSessionOnce(t *testing.T) {
	t.Parallel()
	s := service(&table{}, network.Options{})
	s.RecordEgress(refusal("a", "before.example"))
	stop := s.Watch("a")
	other := s.Watch("a")
	s.RecordEgress(refusal("a", "one.example"))
	s.RecordEgress(refusal("a", "one.example"))
	s.RecordEgress(refusal("b", "foreign.example"))
	allowed := refusal("a", "fine.example")
	allowed.Allowed = true
	s.RecordEgress(allowed)
	want := []core.EgressRefusal{{Host: "one.example", Port: 443, Rule: "host_not_allowed"}}
	if diff := cmp.Diff(want, stop()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for i := range 100 {
		s.RecordEgress(refusal("a", fmt.Sprintf("h%d.example", i)))
	}
	if n := len(other()); n != 20 {
		t.Errorf("a watch holds %d refusals, want 20", n)
	}
	if n := len(stop()); n != 1 {
		t.Errorf("a watch that was stopped went on: %d", n)
	}
}
