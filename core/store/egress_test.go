package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func refused(turn core.MessageID, host string) core.EgressRow {
	return core.EgressRow{MessageID: turn, Host: host, Port: 443, Rule: "host_not_allowed", Connections: 1, StartedAt: noon, EndedAt: noon}
}

func record(t *testing.T, s *store.Store, id core.SessionID, rows ...core.EgressRow) {
	t.Helper()
	if err := s.RecordEgress(t.Context(), id, rows); err != nil {
		t.Fatal(err)
	}
}

func egressEvents(t *testing.T, s *store.Store, id core.SessionID) (refusals []core.Event) {
	t.Helper()
	events, err := s.EventsSince(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Type == "egress_refused" {
			refusals = append(refusals, e)
		}
	}
	return refusals
}

func TestRecordEgress_SumsWhatIsRepeated(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id, turn := claim.Session.ID, claim.Message.ID
	later := noon.Add(time.Minute)
	npm := core.EgressRow{
		MessageID: turn, Host: "registry.example.net", Port: 443, Allowed: true, Rule: "open",
		Connections: 2, Sent: 10, Received: 1000, StartedAt: noon, EndedAt: later,
	}
	record(t, s, id, npm, refused(turn, "evil.example"))
	again := npm
	again.Connections, again.Sent, again.Received, again.StartedAt, again.EndedAt = 1, 5, 500, noon.Add(-time.Hour), noon
	outside := refused("", "evil.example")
	outside.EndedAt = noon.Add(2 * time.Minute)
	record(t, s, id, again, again, outside)

	got, err := s.Egress(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	npm.Connections, npm.Sent, npm.Received, npm.StartedAt = 4, 20, 2000, noon.Add(-time.Hour)
	outside.Connections = 2
	want := core.EgressSummary{Rows: []core.EgressRow{outside, npm}, Total: 2, Contacted: 1, Refused: 1, Sent: 20, Received: 2000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	first, err := s.Egress(t.Context(), id, 1)
	if err != nil || len(first.Rows) != 1 || first.Total != 2 || first.Received != 2000 {
		t.Errorf("the newest alone: %+v, %v", first, err)
	}
	tl, err := s.Timeline(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, tl.Egress); diff != "" {
		t.Errorf("timeline -want +got\n%s", diff)
	}
}

func TestRecordEgress_TellsARefusalOnceATurn(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id, turn := claim.Session.ID, claim.Message.ID
	other := refused(turn, "evil.example")
	other.Port = 80
	for range 3 {
		record(t, s, id, refused(turn, "evil.example"), other)
	}
	private := refused(turn, "evil.example")
	private.Rule = "address_not_public"
	record(t, s, id, private)
	events := egressEvents(t, s, id)
	if len(events) != 2 || events[0].MessageID != turn || events[0].Producer != core.ByPlatform {
		t.Fatalf("got %d events %+v, want one for each rule", len(events), events)
	}
	// The same host in a later turn is told again.
	next, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: id, OwnerID: claim.Session.OwnerID, Text: "Again"})
	if err != nil {
		t.Fatal(err)
	}
	record(t, s, id, refused(next.ID, "evil.example"))
	if events = egressEvents(t, s, id); len(events) != 3 || events[2].MessageID != next.ID {
		t.Errorf("the next turn: %d events", len(events))
	}
}

// A program that makes up names fills neither the table nor the log.
func TestRecordEgress_IsBounded(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id, turn := claim.Session.ID, claim.Message.ID
	record(t, s, id, refused(turn, "first.example"))
	for batch := range 3 {
		var rows []core.EgressRow
		for i := range 300 {
			rows = append(rows, refused(turn, fmt.Sprintf("h%d-%d.evil.example", batch, i)))
		}
		record(t, s, id, rows...)
	}
	record(t, s, id, refused(turn, "first.example"))
	got, err := s.Egress(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	hosts := map[string]int64{}
	for _, r := range got.Rows {
		total += r.Connections
		hosts[r.Host] = r.Connections
	}
	if got.Total != core.MaxEgressRows+1 || total != 902 || hosts["first.example"] != 2 || hosts[""] != 902-core.MaxEgressRows-1 {
		t.Errorf("%d rows of %d connections, %d without a name, %d of the first host", got.Total, total, hosts[""], hosts["first.example"])
	}
	if n := len(egressEvents(t, s, id)); n != 20 {
		t.Errorf("%d events, want 20", n)
	}
}

func TestRecordEgress_TakesAnyNameAndAnyOrder(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id, turn := claim.Session.ID, claim.Message.ID
	record(t, s, id, refused(turn, "a\x00\xff<script>.example"))
	if got, err := s.Egress(t.Context(), id, 0); err != nil || got.Rows[0].Host != "a\uFFFD\uFFFD<script>.example" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.RecordEgress(t.Context(), core.NewID[core.SessionID](), []core.EgressRow{refused("", "x.example")}); core.KindOf(err) != core.NotFound {
		t.Errorf("a session that is not there: %v", err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			rows := []core.EgressRow{refused(turn, "a.example"), refused(turn, "b.example")}
			if i%2 == 0 {
				rows[0], rows[1] = rows[1], rows[0]
			}
			if err := s.RecordEgress(t.Context(), id, rows); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(egressEvents(t, s, id)); n != 3 {
		t.Errorf("%d events, want one for each of three hosts", n)
	}
}

func TestEgressLog_GoesWithItsSession(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	record(t, s, claim.Session.ID, refused(claim.Message.ID, "evil.example"))
	storetest.Exec(t, s, `DELETE FROM chat_sessions WHERE id = $1`, claim.Session.ID)
	if got, err := s.Egress(t.Context(), claim.Session.ID, 0); err != nil || got.Total != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSessionEgress_SumsAllThatWasMoved(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	allowed := core.EgressRow{Host: "registry.example.net", Port: 443, Allowed: true, Rule: "open", Connections: 1, Sent: 10, Received: 1000, StartedAt: noon, EndedAt: noon}
	cut := refused("", "big.example")
	cut.Rule, cut.Received = "traffic_spent", 5000
	record(t, s, claim.Session.ID, allowed, cut, refused("", "evil.example"))
	p, err := s.SessionEgress(t.Context(), claim.Session.ID)
	if err != nil || p.Moved != 6010 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestRepositoryHosts_AreKeptOnceAndAudited(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	person := storetest.User(t, s)
	repo := claim.Session.Repository
	must(t, s.AddRepositoryHost(t.Context(), repo, "registry.example.net", person, claim.Session.ID))
	must(t, s.AddRepositoryHost(t.Context(), repo, "registry.example.net", person, claim.Session.ID))
	must(t, s.AddRepositoryHost(t.Context(), repo, "*.example.com", person, ""))
	hosts, err := s.RepositoryHosts(t.Context(), repo.ID)
	if err != nil || len(hosts) != 2 || hosts[0].Host != "*.example.com" || hosts[1].Host != "registry.example.net" || hosts[1].AddedBy != person.Login || hosts[1].AddedAt.IsZero() {
		t.Fatalf("%+v, %v", hosts, err)
	}
	p, err := s.SessionEgress(t.Context(), claim.Session.ID)
	if diff := cmp.Diff(core.EgressPolicy{Mode: core.EgressNone, Hosts: []string{"*.example.com", "registry.example.net"}}, p); diff != "" || err != nil {
		t.Errorf("policy %v -want +got\n%s", err, diff)
	}
	must(t, s.RemoveRepositoryHost(t.Context(), repo, "registry.example.net", person.ID))
	must(t, s.RemoveRepositoryHost(t.Context(), repo, "registry.example.net", person.ID))
	if hosts, err = s.RepositoryHosts(t.Context(), repo.ID); err != nil || len(hosts) != 1 {
		t.Errorf("after the removal: %+v, %v", hosts, err)
	}
	var audited []string
	must(t, s.InTx(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT array_agg(action || ' ' || detail ORDER BY id) FROM audit_log WHERE user_id = $1`, person.ID).Scan(&audited)
	}))
	want := []string{"egress_host_added octo-org/web-app registry.example.net", "egress_host_added octo-org/web-app *.example.com", "egress_host_removed octo-org/web-app registry.example.net"}
	if diff := cmp.Diff(want, audited); diff != "" {
		t.Errorf("audit -want +got\n%s", diff)
	}
	events, err := s.EventsSince(t.Context(), claim.Session.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, e := range events {
		if e.Type == "egress_host_allowed" && e.Producer == core.ByPerson {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the session's log tells of it %d times, want once", told)
	}
}

func TestRepositoryHosts_AreBoundedAlsoWhenTwoAdd(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	person, repo := storetest.User(t, s), claim.Session.Repository
	storetest.Exec(t, s, `INSERT INTO repository_hosts (repository_id, host) SELECT $1, 'h' || n || '.example.com' FROM generate_series(1, $2) n`, repo.ID, core.MaxEgressHosts-1)
	var all sync.WaitGroup
	full := make(chan error, 6)
	for i := range 6 {
		all.Go(func() {
			full <- s.AddRepositoryHost(t.Context(), repo, fmt.Sprintf("more%d.example.com", i), person, "")
		})
	}
	all.Wait()
	close(full)
	refusals := 0
	for err := range full {
		if core.CodeOf(err) == "hosts_full" {
			refusals++
		} else if err != nil {
			t.Error(err)
		}
	}
	if hosts, err := s.RepositoryHosts(t.Context(), repo.ID); err != nil || len(hosts) != core.MaxEgressHosts || refusals != 5 {
		t.Errorf("%d hosts after %d refusals, %v", len(hosts), refusals, err)
	}
	must(t, s.AddRepositoryHost(t.Context(), repo, "h1.example.com", person, "")) // there already
}

func TestRepositoryEgress_IsKeptAndTakenBack(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	admin, repo := storetest.User(t, s), storetest.Repository()
	must(t, s.SetRepositoryPolicy(t.Context(), repo, core.PolicyReadonly, admin.ID))
	for _, want := range []core.EgressMode{core.EgressNone, core.EgressAllowlist, ""} {
		must(t, s.SetRepositoryEgress(t.Context(), repo, want, admin.ID))
		if m, err := s.RepositoryEgress(t.Context(), repo.ID); m != want || err != nil {
			t.Errorf("got %q, %v, want %q", m, err, want)
		}
	}
	if p, err := s.RepositoryPolicy(t.Context(), repo.ID); p != core.PolicyReadonly || err != nil {
		t.Errorf("the shell policy beside it: %q, %v", p, err)
	}
	if err := s.SetRepositoryEgress(t.Context(), repo, "anything", admin.ID); err == nil {
		t.Error("an unknown mode was kept")
	}
}

// A program that looks up many names which do not exist leaves room for what a rule forbids.
func TestRecordEgress_FailuresTakeNoRefusalsPlace(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id, turn := claim.Session.ID, claim.Message.ID
	for i := range 30 {
		missing := refused(turn, fmt.Sprintf("h%d.example", i))
		missing.Rule = "name_not_found"
		record(t, s, id, missing)
	}
	record(t, s, id, refused(turn, "evil.example"))
	if n := len(egressEvents(t, s, id)); n != 1 {
		t.Errorf("%d events, want the refusal alone", n)
	}
}
