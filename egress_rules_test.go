package main

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/egress"
)

// Every rule that decides about a connection has a sentence for people, and is in the list.
func TestEgressRules_AreExplainedToPeople(t *testing.T) {
	t.Parallel()
	var rules []string
	for _, file := range parseSource(t)["sandbox/egress"] {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				if typed, ok := spec.Type.(*ast.Ident); ok && typed.Name == "Rule" {
					rule, _ := text(spec.Values[0])
					rules = append(rules, rule)
				}
			}
			return true
		})
	}
	if len(rules) < 15 {
		t.Fatalf("found only %v: the search is broken", rules)
	}
	listed := entries(page(t, "OPERATIONS.md", "### What programs in a sandbox reach"))
	for _, rule := range rules {
		if reason := core.EgressReason(rule); strings.Contains(reason, rule) || !strings.HasSuffix(reason, ".") {
			t.Errorf("people are told %q of %s", reason, rule)
		}
		if listed[rule] == "" {
			t.Errorf("OPERATIONS.md does not list %s", rule)
		}
	}
	for _, rule := range append(core.EgressFailures(), core.EgressNotListed, core.EgressPrivate) {
		if !slices.Contains(rules, rule) {
			t.Errorf("core speaks of the rule %s, which decides nothing", rule)
		}
	}
	if core.EgressNotListed != string(egress.HostNotAllowed) || core.EgressPrivate != string(egress.PrivateException) {
		t.Error("core and the proxy mean different rules")
	}
}
