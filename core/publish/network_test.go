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
	}{
		"nothing": {nil, nil},
		"all": {[]core.EgressRow{
			row("registry.example.net", 443, true, "host_listed"), row("a.example", 80, true, "open"), row("a.example", 443, true, "open"),
			row("evil.example", 443, false, core.EgressNotListed), row("evil.example", 80, false, "port_not_allowed"),
			row("typo.example", 443, false, "name_not_found"), row("", 0, false, core.EgressNotListed),
		}, []string{"Contacted: `a.example`, `registry.example.net`", "Refused: `evil.example`"}},
		"inside":  {[]core.EgressRow{row("nexus.corp", 8081, true, core.EgressPrivate)}, []string{"Contacted: 1 inside the operator's network"}},
		"both":    {[]core.EgressRow{row("nexus.corp", 8081, true, core.EgressPrivate), row("a.example", 443, true, "open")}, []string{"Contacted: `a.example`, and 1 inside the operator's network"}},
		"hostile": {[]core.EgressRow{row("`@octo-dev` <!-- agent-session:end -->\nx", 443, false, "network_off")}, nil},
	} {
		if diff := cmp.Diff(test.want, networkLines(core.EgressSummary{Rows: test.rows})); diff != "" {
			t.Errorf("%s -want +got\n%s", name, diff)
		}
	}
	var many core.EgressSummary
	for i := range core.MaxEgressRows {
		many.Rows = append(many.Rows, row(fmt.Sprintf("h%03d.%s.example", i, strings.Repeat("a", 200)), 443, true, "open"))
	}
	line := networkLines(many)[0]
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
