package publish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
)

func TestNetworkLines_SayWhatWasReachedAndRefused(t *testing.T) {
	t.Parallel()
	row := func(host string, port int, allowed bool, rule string) core.EgressRow {
		return core.EgressRow{Host: host, Port: port, Allowed: allowed, Rule: rule, Connections: 3, Sent: 10}
	}
	for name, test := range map[string]struct {
		rows []core.EgressRow
		want []string
		now  core.EgressPolicy
	}{
		"nothing": {},
		"all": {rows: []core.EgressRow{
			row("registry.example.net", 443, true, "host_listed"), row("a.example", 80, true, "open"), row("a.example", 443, true, "open"),
			row("evil.example", 443, false, core.EgressNotListed), row("evil.example", 80, false, "port_not_allowed"),
			row("typo.example", 443, false, "name_not_found"), row("", 0, false, core.EgressNotListed),
		}, want: []string{"Contacted: `a.example`, `registry.example.net`", "Refused: `evil.example`"}},
		"on the list now": {rows: []core.EgressRow{
			row("a.example", 443, false, core.EgressNotListed), row("b.docs.example", 443, false, core.EgressNotListed),
			row("c.example", 443, false, core.EgressNotListed), row("d.example", 443, false, "server_name_differs"),
		}, want: []string{"Refused: `c.example`, `d.example`"}, now: core.EgressPolicy{Mode: core.EgressAllowlist, Hosts: []string{"a.example", "*.docs.example", "d.example"}}},
		"reached since": {rows: []core.EgressRow{
			row("a.example", 443, false, core.EgressNotListed), row("a.example", 443, true, "host_listed"),
			row("b.example", 443, true, "host_listed"), row("b.example", 443, false, core.EgressNotListed), row("b.example", 80, false, "not_http"),
		}, want: []string{"Contacted: `a.example`, `b.example`", "Refused: `b.example`"}},
		"inside":  {rows: []core.EgressRow{row("nexus.corp", 8081, true, core.EgressPrivate)}, want: []string{"Contacted: 1 inside the operator's network"}},
		"both":    {rows: []core.EgressRow{row("nexus.corp", 8081, true, core.EgressPrivate), row("a.example", 443, true, "open")}, want: []string{"Contacted: `a.example`, and 1 inside the operator's network"}},
		"hostile": {rows: []core.EgressRow{row("`@octo-dev` <!-- agent-session:end -->\nx", 443, false, "network_off")}},
	} {
		if diff := cmp.Diff(test.want, networkLines(core.EgressSummary{Rows: test.rows}, test.now)); diff != "" {
			t.Errorf("%s -want +got\n%s", name, diff)
		}
	}
	var many core.EgressSummary
	for i := range core.MaxEgressRows {
		many.Rows = append(many.Rows, row(fmt.Sprintf("h%03d.%s.example", i, strings.Repeat("a", 200)), 443, true, "open"))
	}
	line := networkLines(many, core.EgressPolicy{})[0]
	if !strings.HasSuffix(line, "and 480 more") || len(line) > 6000 {
		t.Errorf("%d bytes: …%s", len(line), line[len(line)-60:])
	}
}

// Our block's own marks in a host's name must not end the block.
func TestBody_TellsOfTheNetworkInsideTheBlock(t *testing.T) {
	t.Parallel()
	a := newAttempt("T", "Words.")
	plain := a.body("", nil)
	a.network = core.EgressSummary{Rows: []core.EgressRow{
		{Host: "<!-- agent-session:end -->", Port: 443, Rule: core.EgressNotListed},
		{Host: "evil.example", Port: 443, Rule: core.EgressNotListed},
		{Host: "a.example", Port: 443, Allowed: true, Rule: "open"},
	}}
	body := a.body("", nil)
	if !strings.Contains(body, "**Network of the sandbox**\n\n- Contacted: `a.example`\n- Refused: `evil.example`\n") {
		t.Errorf("the body: %s", body)
	}
	a.network = core.EgressSummary{}
	if again := a.body(body, nil); again != plain {
		t.Errorf("the block with the network is not replaced as a whole: %s", again)
	}
}
