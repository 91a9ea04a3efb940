package bashpolicy

import (
	"fmt"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// nested are texts in which commands start commands, n deep. Which word is the program is open at each step,
// so that there are more than two to the n ways to read them.
var nested = map[string]struct {
	policy core.BashPolicy
	text   func(n int) string
}{
	"npx":            {core.PolicySeed, func(n int) string { return strings.Repeat("npx --x ", n) + "tsc" }},
	"uv run":         {core.PolicySeed, func(n int) string { return strings.Repeat("uv run --x ", n) + "tsc" }},
	"pnpm dlx":       {core.PolicySeed, func(n int) string { return strings.Repeat("pnpm dlx --y ", n) + "tsc" }},
	"cross-env":      {core.PolicyBuild, func(n int) string { return "npx " + strings.Repeat("cross-env --x ", n) + "tsc" }},
	"bundle exec":    {core.PolicyBuild, func(n int) string { return "bundle exec " + strings.Repeat("npx --x ", n) + "tsc" }},
	"yarn workspace": {core.PolicySeed, func(n int) string { return "yarn " + strings.Repeat("workspace a exec yarn ", n) + "build" }},
	"workspace":      {core.PolicySeed, func(n int) string { return "yarn " + strings.Repeat("workspace ", n) + "build" }},
	"workspaces":     {core.PolicySeed, func(n int) string { return "yarn workspaces " + strings.Repeat("recursive m ", n) + "build" }},
	"eval":           {core.PolicyOpen, func(n int) string { return strings.Repeat("eval ", n) + "ls" }},
	"env -S":         {core.PolicyOpen, func(n int) string { return strings.Repeat("env -S ", n) + "ls" }},
	"find -exec":     {core.PolicyOpen, func(n int) string { return strings.Repeat(`find -exec find \; `, n) + "-name x" }},
	"wrappers":       {core.PolicyOpen, func(n int) string { return strings.Repeat("sudo time ", n) + "ls" }},
	"watch":          {core.PolicyOpen, func(n int) string { return strings.Repeat("watch ", n) + "ls" }},
	"substitutions":  {core.PolicyOpen, func(n int) string { return strings.Repeat("echo $(", n) + strings.Repeat(")", n) }},
	"pipes":          {core.PolicyOpen, func(n int) string { return "echo x" + strings.Repeat(" | cat | sh", n) }},
	"groups":         {core.PolicyOpen, func(n int) string { return "echo x | " + strings.Repeat("{ sh; ", n) + strings.Repeat("}; ", n) }},
	"braces":         {core.PolicyOpen, func(n int) string { return strings.Repeat("eval ", n) + braces(n) }},
	"here-documents": {core.PolicyOpen, func(n int) string {
		return strings.Repeat("sh <<E\n", n) + "ls\n" + strings.Repeat("E\n", n)
	}},
}

// braces are n groups, each quoted once more than the one before, so that each eval expands another.
func braces(n int) string {
	var b strings.Builder
	for i := range min(n, 8) {
		quoted := "{1,2}{1,2}{1,2}{1,2}{1,2}"
		for range i {
			quoted = strings.NewReplacer(`\`, `\\`, "{", `\{`, ",", `\,`, "}", `\}`).Replace(quoted)
		}
		if b.Len()+len(quoted) > 8000 {
			break
		}
		b.WriteString(quoted)
	}
	return b.String()
}

// Judging takes work in proportion to the text, however it is nested: else one command could keep a worker
// busy for ever. What is counted is allocations, which do not depend on the machine.
func TestCheck_WorkGrowsWithTheTextOnly(t *testing.T) {
	for name, test := range nested {
		for _, n := range []int{8, 16, 64, 512} {
			text := test.text(n)
			if len(text) > 8192 {
				continue
			}
			per := testing.AllocsPerRun(1, func() { Check(test.policy, text) }) / float64(len(text)+200)
			if per > 200 {
				t.Errorf("%s, %d deep: %.0f allocations for each byte", name, n, per)
				break
			}
		}
	}
}

func TestCheck_NestingIsRefusedWhereItCannotBeJudged(t *testing.T) {
	t.Parallel()
	for name, test := range nested {
		for _, n := range []int{1, 2, 400} {
			_, r := Check(test.policy, test.text(n))
			if r != nil && (r.Rule != "nesting_too_deep" || n < 3 && name != "braces") {
				t.Errorf("%s, %d deep: %s", name, n, r.Rule)
			}
		}
	}
	// What stands behind is found, or the whole is refused.
	for n := range 40 {
		for _, text := range []string{strings.Repeat("npx --x ", n) + "jest", strings.Repeat("yarn workspace a exec ", n) + "npx jest"} {
			if _, r := Check(core.PolicySeed, text); r == nil {
				t.Errorf("%q is allowed", text)
			}
		}
		if _, r := Check(core.PolicyOpen, strings.Repeat("eval ", n)+"git push"); r == nil {
			t.Errorf("%d evals of git push are allowed", n)
		}
	}
	if _, r := Check(core.PolicySeed, fmt.Sprintf("yarn workspaces foreach %s run build", strings.Repeat("--include app-number-one ", 30))); r != nil {
		t.Errorf("thirty names of workspaces are refused: %s", r.Rule)
	}
}
