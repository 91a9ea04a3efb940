// Package policy_test runs what the shell policy allows in a real sandbox.
package policy_test

import (
	_ "embed"
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

const corpus = "../../agent/bashpolicy/testdata/"

// start opens a sandbox of its own on the small image.
func start(t *testing.T) *toolbox.Client {
	t.Helper()
	r := dockertest.New(t)
	ref, err := r.Create(t.Context(), sandbox.Spec{
		Session: core.NewID[core.SessionID](), Sandbox: core.NewID[core.SandboxID](), Generation: 1,
		Limits: sandbox.Limits{MemoryBytes: 512 << 20, CPUs: 2, PIDs: 256},
	})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := r.Attach(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	client, err := toolbox.Dial(t.Context(), stream, toolbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// run runs a command that may fail and returns how it ended.
func run(t *testing.T, ws core.Workspace, command core.Command) core.CommandResult {
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
	judge := func(shell, text string) string {
		r := run(t, ws, core.Command{Shell: judgeScript, Env: []string{"TEXT=" + text, "SHELL_NAME=" + shell}, KeepHead: 40 << 10})
		if r.TimedOut || r.Omitted > 0 || r.Survivors > 0 {
			t.Errorf("%s: %q: timed out %v, %d bytes left out, %d survivors", shell, text, r.TimedOut, r.Omitted, r.Survivors)
		}
		return shellMessage.ReplaceAllString(output(r), "shell: ")
	}
	ran, lacking, timed, wrong := 0, 0, 0, 0
	for _, line := range policytest.Read(t, corpus+"allow.txt") {
		canonical, refused := bashpolicy.Check(line.Policy, line.Command)
		if refused != nil {
			t.Errorf("%s: %q is refused by %s", line.Policy, line.Command, refused.Rule)
			wrong++
			continue
		}
		other := "dash"
		switch {
		case strings.HasPrefix(canonical, "time "):
			other = "bash" // a word of bash; elsewhere it is a program that the image lacks
			timed++
		case names(missing, canonical):
			lacking++
		default:
			ran++
		}
		want, got := judge("bash", line.Command), judge(other, canonical)
		if other == "bash" {
			want, got = clock.ReplaceAllString(want, "0s"), clock.ReplaceAllString(got, "0s")
		}
		if names(missing, canonical) {
			// Two shells that do not find it, in words of their own, which may lie in a file.
			want, got = ended.FindString(want), ended.FindString(got)
		}
		if want != got {
			t.Errorf("%q\n in bash: %q\nas %q\n in %s: %q", line.Command, want, canonical, other, got)
			wrong++
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
	t.Logf("differential: %d ran in bash and dash, %d with a program that the image lacks, %d of time in bash only", ran, lacking, timed)
	t.Logf("policy: %d allowed, %d refused, %d wrong", ran+lacking+timed, len(refusals), wrong)
}

var (
	// shellMessage is how a shell begins what it says itself.
	shellMessage = regexp.MustCompile(`(?m)^(/bin/)?(bash|dash|sh): (line )?\d+: `)
	ended        = regexp.MustCompile(`(?m)^exit \d+$`)
	clock        = regexp.MustCompile(`\d+m?[\d.]+s?`)
)

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
	r := run(t, ws, core.Command{Shell: "for name in " + list + "; do type $name > /dev/null 2>&1 || echo $name; done"})
	missing := map[string]bool{}
	for name := range strings.FieldsSeq(output(r)) {
		missing[name] = true
	}
	return missing
}

// A canonical text quotes every argument, so what is bare at the start of a command is its name.
var commandName = regexp.MustCompile(`(?:^|&& |\|\| |\| |! )(?:time )?(?:-p )?(?:[A-Za-z_]\w*='[^']*' )*([a-z0-9]+)`)

var quoted = regexp.MustCompile(`'[^']*'`)

func firstWords(canonical string) []string {
	var names []string
	for _, m := range commandName.FindAllStringSubmatch(quoted.ReplaceAllString(canonical, "''"), -1) {
		names = append(names, m[1])
	}
	return names
}

func names(missing map[string]bool, canonical string) bool {
	return slices.ContainsFunc(firstWords(canonical), func(name string) bool { return missing[name] })
}
