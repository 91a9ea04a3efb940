// Package policy_test runs what the shell policy allows in a real sandbox.
package policy_test

import (
	_ "embed"
	"flag"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/agent/bashpolicy"
	"agent-sandboxing/agent/bashpolicy/policytest"
	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/toolbox"
)

//go:embed testdata/tree.sh
var treeScript string

//go:embed testdata/judge.sh
var judgeScript string

// An image with every command is too large for each test run: scripts/policy-check has one made.
var every = flag.Bool("every", false, "fail when the image lacks a command of the corpus")

const corpus = "../../agent/bashpolicy/testdata/"

// start opens a sandbox of its own.
func start(t testing.TB) *toolbox.Client {
	t.Helper()
	r := dockertest.New(t)
	ref, err := r.Create(t.Context(), sandbox.Spec{
		Session: core.NewID[core.SessionID](), Sandbox: core.NewID[core.SandboxID](), Generation: 1,
		Limits: sandbox.Limits{MemoryBytes: 1 << 30, CPUs: 2, PIDs: 256},
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := sandbox.Launch(t.Context(), r, ref, toolbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// run runs a command that may fail and returns how it ended.
func run(t testing.TB, ws core.Workspace, command core.Command) core.CommandResult {
	t.Helper()
	if command.Timeout == 0 {
		command.Timeout = time.Minute
	}
	result, err := ws.Run(t.Context(), command)
	if err != nil {
		t.Fatalf("%q: %v", command.Shell, err)
	}
	return result
}

func output(r core.CommandResult) string { return string(r.Head) + string(r.Tail) }

// What was judged runs as its canonical text. Each allowed line, as it was written in bash and as it was
// rendered in a POSIX shell, prints the same, exits the same and leaves the same files.
func TestPolicy_CanonicalTextMeansTheSame(t *testing.T) {
	t.Parallel()
	ws := start(t)
	if r := run(t, ws, core.Command{Shell: treeScript}); r.Exit != 0 {
		t.Fatalf("exit %d: %s", r.Exit, output(r))
	}
	missing := absent(t, ws)
	if *every && len(missing) > 0 {
		t.Errorf("the image is to have every command and lacks %v", slices.Sorted(maps.Keys(missing)))
	}
	judge := func(shell, text string) string {
		r := run(t, ws, core.Command{Shell: judgeScript, Env: append(offline(), "TEXT="+text, "SHELL_NAME="+shell), KeepHead: 40 << 10})
		if r.TimedOut || r.Omitted > 0 || r.Survivors > 0 {
			t.Errorf("%s: %q: timed out %v, %d bytes left out, %d survivors", shell, text, r.TimedOut, r.Omitted, r.Survivors)
		}
		return steady(output(r))
	}
	ran, timed, lacking, wrong := 0, 0, 0, 0
	for _, line := range policytest.Read(t, corpus+"allow.txt") {
		canonical, refused := bashpolicy.Check(line.Policy, line.Command)
		if refused != nil {
			t.Errorf("%s: %q is refused by %s", line.Policy, line.Command, refused.Rule)
			wrong++
			continue
		}
		there, shell := !names(missing, canonical), "dash"
		if missing["time"] && strings.HasPrefix(canonical, "time ") {
			there, shell = true, "bash" // where it is a word of the shell and no program
		}
		compare := func() (want, got string) {
			want, got = judge("bash", line.Command), judge(shell, canonical)
			if !there { // two shells that do not find it, in words of their own, which may lie in a file
				want, got = ended.FindString(want), ended.FindString(got)
			}
			return want, got
		}
		want, got := compare()
		if want != got { // some programs say more when they run for the first time
			want, got = compare()
		}
		if want != got {
			t.Errorf("%q\n in bash: %q\nas %q\n in %s: %q", line.Command, want, canonical, shell, got)
			wrong++
		}
		switch {
		case !there:
			lacking++
		case shell == "bash":
			timed++
		default:
			ran++
		}
	}
	refusals := policytest.Read(t, corpus+"deny.txt")
	for _, line := range refusals {
		if _, r := bashpolicy.Check(line.Policy, line.Command); r == nil || r.Rule != line.Rule {
			t.Errorf("%s: %q: %v, want %s", line.Policy, line.Command, r, line.Rule)
			wrong++
		}
	}
	t.Logf("the image lacks %v", slices.Sorted(maps.Keys(missing)))
	t.Logf("differential: %d ran in bash and dash, %d of time in bash only, %d name a program that the image lacks", ran, timed, lacking)
	t.Logf("policy: %d allowed, %d refused, %d wrong", ran+timed+lacking, len(refusals), wrong)
}

// offline keeps package managers from waiting for a network that is not there.
func offline() []string {
	return []string{
		"npm_config_fetch_retries=0", "npm_config_update_notifier=false", "PIP_RETRIES=0", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"CARGO_NET_OFFLINE=true", "GRADLE_OPTS=-Dorg.gradle.daemon=false", "GOFLAGS=-mod=mod", "GOPROXY=off",
	}
}

var ended = regexp.MustCompile(`(?m)^exit \d+$`)

// steady takes out of an output what differs between two runs of the same command.
func steady(out string) string {
	for _, change := range changing {
		out = change.what.ReplaceAllString(out, change.with)
	}
	return out
}

var changing = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?m)^(/bin/)?(bash|dash|sh): (line )?\d+: `), "shell: "}, // how a shell begins what it says itself
	// time is a word of bash and a program of other shells; they report in forms of their own.
	{regexp.MustCompile(`(?m)^\n?real\s.*\nuser\s.*\nsys\s.*\n|^\S+user \S+system .*\n.*pagefaults .*\n`), "times\n"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d[:_]\d\d[:_]\d\d[._]\d+Z`), "now"},
	{regexp.MustCompile(`\bduration_ms [\d.]+`), "duration"},
	{regexp.MustCompile(`\b[\d.]+ ?(ms|m?s|secs?|seconds?)\b`), "a while"},
}

// absent are the commands of the corpus that the image does not have.
func absent(t *testing.T, ws core.Workspace) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	for _, line := range policytest.Read(t, corpus+"allow.txt") {
		canonical, _ := bashpolicy.Check(line.Policy, line.Command)
		for _, name := range firstWords(canonical) {
			words[name] = true
		}
	}
	list := strings.Join(slices.Sorted(maps.Keys(words)), " ")
	r := run(t, ws, core.Command{Shell: "dash -c 'for name in " + list + "; do command -v $name > /dev/null || echo $name; done'"})
	missing := map[string]bool{}
	for name := range strings.FieldsSeq(output(r)) {
		missing[name] = true
	}
	return missing
}

// A canonical text quotes every argument, so what is bare at the start of a command is its name.
var commandName = regexp.MustCompile(`(?:^|&& |\|\| |\| |! )(?:(time) )?(?:-p )?(?:[A-Za-z_]\w*='[^']*' )*([a-z0-9]+)`)

var quoted = regexp.MustCompile(`'[^']*'`)

func firstWords(canonical string) []string {
	var names []string
	for _, m := range commandName.FindAllStringSubmatch(quoted.ReplaceAllString(canonical, "''"), -1) {
		names = append(names, m[2])
		if m[1] != "" {
			names = append(names, m[1])
		}
	}
	return names
}

func names(missing map[string]bool, canonical string) bool {
	return slices.ContainsFunc(firstWords(canonical), func(name string) bool { return missing[name] })
}
