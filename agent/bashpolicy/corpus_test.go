package bashpolicy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"agent-sandboxing/agent/bashpolicy/policytest"
	"agent-sandboxing/core"
)

func allowed(t testing.TB) []policytest.Line { return policytest.Read(t, "testdata/allow.txt") }
func denied(t testing.TB) []policytest.Line  { return policytest.Read(t, "testdata/deny.txt") }

func TestCheck_Corpus(t *testing.T) {
	t.Parallel()
	wrong := 0
	for _, line := range allowed(t) {
		canonical, r := Check(line.Policy, line.Command)
		if r != nil {
			t.Errorf("%s: %q is refused by %s: %s", line.Policy, line.Command, r.Rule, r.Message)
			wrong++
			continue
		}
		again, r := Check(line.Policy, canonical)
		if r != nil || again != canonical {
			t.Errorf("%q renders as %q, which renders as %q (%v)", line.Command, canonical, again, r)
			wrong++
		}
	}
	for _, line := range denied(t) {
		canonical, r := Check(line.Policy, line.Command)
		switch {
		case r == nil:
			t.Errorf("%s: %q is allowed as %q, want %s", line.Policy, line.Command, canonical, line.Rule)
			wrong++
		case r.Rule != line.Rule:
			t.Errorf("%s: %q is refused by %s, want %s", line.Policy, line.Command, r.Rule, line.Rule)
			wrong++
		}
	}
	t.Logf("policy: %d allowed, %d refused, %d wrong", len(allowed(t)), len(denied(t)), wrong)
}

// Every refusal has a name that stays and a sentence that says what to do.
func TestCheck_EveryRefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, line := range denied(t) {
		_, r := Check(line.Policy, line.Command)
		if r == nil {
			continue // TestCheck_Corpus tells
		}
		if !strings.HasSuffix(r.Message, ".") || len(r.Message) < 20 || strings.Count(r.Message, "\n") > 0 {
			t.Errorf("%q: the message %q is no sentence", line.Command, r.Message)
		}
	}
}

func TestCorpus_EveryRuleHasRefusedAndNearlyIdenticalAllowedLines(t *testing.T) {
	t.Parallel()
	refused, near := map[string][]string{}, map[string]int{}
	for _, line := range denied(t) {
		refused[line.Rule] = append(refused[line.Rule], line.Command)
	}
	for _, line := range allowed(t) {
		if line.Rule == "" {
			continue
		}
		if !slices.ContainsFunc(refused[line.Rule], func(r string) bool { return nearly(line.Command, r) }) {
			t.Errorf("%q is nearly identical to no command that %s refuses", line.Command, line.Rule)
			continue
		}
		near[line.Rule]++
	}
	rules := ruleIDs(t)
	if len(rules) < 20 {
		t.Fatalf("found only the rules %v", rules)
	}
	for _, rule := range rules {
		if len(refused[rule]) < 4 || near[rule] < 2 {
			t.Errorf("%s has %d refused lines, want 4, and %d nearly identical allowed ones, want 2", rule, len(refused[rule]), near[rule])
		}
	}
	for rule := range refused {
		if !slices.Contains(rules, rule) {
			t.Errorf("deny.txt names the rule %s, which nothing gives", rule)
		}
	}
}

// nearly says that a few keystrokes turn one command into the other: no more than a third of it, or six
// of a short one.
func nearly(a, b string) bool {
	return distance(a, b) <= max(6, max(len(a), len(b))/3)
}

// distance is the least number of bytes to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// ruleIDs are the rules that the source gives: the first argument of refuse.
func ruleIDs(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); !ok || f.Name != "refuse" {
				return true
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: a rule that is no literal", entry.Name())
				return true
			}
			rule, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Error(err)
			}
			rules = append(rules, rule)
			return true
		})
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

func TestCorpus_EveryCommandOfSeedIsAllowedTwice(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for _, line := range allowed(t) {
		if line.Policy != core.PolicySeed {
			continue
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(line.Command), "")
		if err != nil {
			t.Fatal(err)
		}
		here := map[string]bool{}
		syntax.Walk(file, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CallExpr:
				here[n.Args[0].Lit()] = true
			case *syntax.TimeClause:
				here["time"] = true
			}
			return true
		})
		for name := range here {
			count[name]++
		}
	}
	for _, name := range append(slices.Clone(seedNames), platformName) {
		if count[name] < 2 {
			t.Errorf("%s is in %d allowed lines, want 2", name, count[name])
		}
	}
}

func TestCorpus_HasTwoHundredDifferentLinesEach(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]policytest.Line{"allow.txt": allowed(t), "deny.txt": denied(t)} {
		seen := map[policytest.Line]bool{}
		for _, line := range lines {
			line.Rule = ""
			if seen[line] {
				t.Errorf("%s has %q twice", name, line.Command)
			}
			seen[line] = true
		}
		if len(seen) < 200 {
			t.Errorf("%s has %d lines, want 200", name, len(seen))
		}
	}
}
