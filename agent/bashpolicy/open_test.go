package bashpolicy

import (
	"strings"
	"testing"

	"agent-sandboxing/agent/bashpolicy/policytest"
	"agent-sandboxing/core"
)

// What is not the platform's, and does no harm, is let through, also where nobody can run it to see.
func TestCheck_LetsThroughWhatIsOnlyJudged(t *testing.T) {
	t.Parallel()
	for _, line := range policytest.Read(t, "testdata/judged.txt") {
		if _, r := Check(line.Policy, line.Command); r != nil {
			t.Errorf("%s: %q is refused by %s", line.Policy, line.Command, r.Rule)
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
