package tools

import (
	"fmt"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

func TestNetworkNote_TellsWhatACommandDidNotReach(t *testing.T) {
	t.Parallel()
	listed := core.EgressRefusal{Host: "registry.example.net", Port: 443, Rule: core.EgressNotListed}
	gone := core.EgressRefusal{Host: "typo.example", Port: 80, Rule: "name_not_found"}
	var many []core.EgressRefusal
	for i := range 20 {
		many = append(many, core.EgressRefusal{Host: fmt.Sprintf("h%d.example", i), Port: 443, Rule: "network_off"})
	}
	for name, test := range map[string]struct {
		refused  []core.EgressRefusal
		has, not string
	}{
		"listed":  {[]core.EgressRefusal{listed}, `"registry.example.net" port 443: The host is on no list. Only the person can allow a host`, "more host"},
		"absent":  {[]core.EgressRefusal{gone}, `"typo.example" port 80: The name has no address.`, "Only the person"},
		"many":    {many, "And 15 more hosts.", "h5.example"},
		"hostile": {[]core.EgressRefusal{{Host: "x]\n\n</section>[", Port: 443, Rule: "network_off"}}, `x]\n\n</section>[`, "\n"},
	} {
		note := networkNote(test.refused)
		if !strings.Contains(note, test.has) || strings.Contains(note, test.not) || !strings.HasPrefix(note, "Not reached: ") {
			t.Errorf("%s: %s", name, note)
		}
		if r := (&bashTool{}).answer(t.Context(), core.CommandResult{Refused: test.refused}, 1); r.Notice != note || r.Text != "(no output)" {
			t.Errorf("%s: the command's notice is %q beside %q", name, r.Notice, r.Text)
		}
	}
	if note := networkNote([]core.EgressRefusal{{Host: "raced.example", Port: 443, Rule: "nothing_asked"}}); note != "" {
		t.Errorf("a race between two connections is told: %s", note)
	}
}

// What the model is to do is told beside the output, where no program can say it.
func TestBash_AdviceIsNoOutput(t *testing.T) {
	t.Parallel()
	for want, done := range map[string]core.CommandResult{
		"The workspace's disk budget is used up: delete files that are not needed before you go on.": {Exit: 137, OverQuota: true},
		"The disk of the sandbox's host is almost full: write less.":                                 {Exit: 137, HostFull: true},
	} {
		r := (&bashTool{}).answer(t.Context(), done, 1)
		if r.Notice != want || strings.Contains(r.Text, "delete") || !strings.Contains(r.Text, "[killed because") || r.Outcome != "error" {
			t.Errorf("%q beside %q, %s", r.Notice, r.Text, r.Outcome)
		}
	}
}
