package agent

import (
	"fmt"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

func TestNetworkNote_SaysWhatCanBeReachedInThreeLines(t *testing.T) {
	t.Parallel()
	many := core.EgressPolicy{Mode: core.EgressAllowlist}
	for i := range core.MaxEgressHosts {
		many.Hosts = append(many.Hosts, fmt.Sprintf("h%d.%s.example.com", i, strings.Repeat("a", 60)))
	}
	for name, test := range map[string]struct {
		policy core.EgressPolicy
		want   []string
	}{
		"open":      {core.EgressPolicy{Mode: core.EgressOpen}, []string{"any public host", "ssh", "addresses, UDP"}},
		"allowlist": {core.EgressPolicy{Mode: core.EgressAllowlist, Hosts: []string{"a.example", "*.b.example"}}, []string{"a.example, *.b.example.", "ssh", "name it in your answer"}},
		"empty":     {core.EgressPolicy{Mode: core.EgressAllowlist}, []string{"none is listed", "name it in your answer"}},
		"many":      {many, []string{"name it in your answer"}},
		"none":      {core.EgressPolicy{Mode: core.EgressNone}, []string{"Network: none"}},
	} {
		note := networkNote(test.policy)
		if n := strings.Count(note, "\n"); n < 1 || n > 3 || len(note) > 2600 {
			t.Errorf("%s: %d lines, %d bytes", name, n, len(note))
		}
		for _, want := range test.want {
			if !strings.Contains(note, want) {
				t.Errorf("%s lacks %q: %s", name, want, note)
			}
		}
		if section := workspace(core.WorkspaceState{Repository: "o/r", Network: test.policy}, core.PolicySeed, workspaceCap); !strings.Contains(section, strings.TrimSpace(note)) {
			t.Errorf("%s is not in the workspace's section: %s", name, section)
		}
	}
	if note := networkNote(core.EgressPolicy{}); note != "" {
		t.Errorf("nothing is known, and the note says %q", note)
	}
}
