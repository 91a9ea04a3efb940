package bashpolicy

import (
	"strings"
	"testing"

	"agent-sandboxing/agent/bashpolicy/policytest"
	"agent-sandboxing/core"
)

// Policy open lets everything through but what is the platform's; deny.txt has how that may be written.
func TestCheck_OpenLetsThroughWhatIsNotThePlatforms(t *testing.T) {
	t.Parallel()
	for _, line := range policytest.Read(t, "testdata/open.txt") {
		if _, r := Check(line.Policy, line.Command); r != nil {
			t.Errorf("%q is refused by %s", line.Command, r.Rule)
		}
	}
}

// A few braces mean more words than could ever be looked at.
func TestCheck_OpenBraces(t *testing.T) {
	t.Parallel()
	for command, rule := range map[string]string{
		"rm -rf " + strings.Repeat("{a,b,c,d}", 900): "",
		"rm -rf {1..999999999}":                      "",
		"{1..999999999}{1..999999999} x":             "",
		"{a,b}" + strings.Repeat("{a,b,c,d}", 900):   "",
		"rm -rf . {1..999999999}":                    "workspace_deletion",
	} {
		got := ""
		if _, r := Check(core.PolicyOpen, command); r != nil {
			got = r.Rule
		}
		if got != rule {
			t.Errorf("%.60q gives %q, want %q", command, got, rule)
		}
	}
}
