package core_test

import (
	"testing"

	"agent-sandboxing/core"
)

func TestWithin_TheStricterOneHolds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ chosen, ceiling, want core.BashPolicy }{
		{"", core.PolicyBuild, core.PolicyBuild},
		{core.PolicyReadonly, core.PolicySeed, core.PolicyReadonly},
		{core.PolicySeed, core.PolicyBuild, core.PolicySeed},
		{core.PolicyBuild, core.PolicyBuild, core.PolicyBuild},
		{core.PolicyBuild, core.PolicySeed, core.PolicySeed},
		{core.PolicyOpen, core.PolicyReadonly, core.PolicyReadonly},
		{core.PolicyBuild, core.PolicyOpen, core.PolicyBuild},
		{"unknown", core.PolicySeed, core.PolicySeed},
	} {
		if got := test.chosen.Within(test.ceiling); got != test.want {
			t.Errorf("%q within %q is %q, want %q", test.chosen, test.ceiling, got, test.want)
		}
	}
}
