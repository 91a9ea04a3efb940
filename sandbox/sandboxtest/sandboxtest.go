// Package sandboxtest is the contract of a workspace as tests: every runtime passes the same cases.
package sandboxtest

import (
	"slices"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// Capability is something that not every runtime has.
type Capability string

const (
	// CommandsReal: commands are real processes, with bash, coreutils, procps-free /proc and git.
	CommandsReal Capability = "commands-real"
	// Contained: commands run in a container, whose kernel refuses them what ours shall not do.
	Contained Capability = "contained"
)

// Open makes a new, empty workspace that is cleaned up with the test.
type Open func(t *testing.T) core.PlatformWorkspace

// box is what a case works with.
type box struct {
	core.PlatformWorkspace
	open Open // for a second workspace
}

// testCase is one rule. It runs where all that it needs is there.
type testCase struct {
	name  string
	needs []Capability
	run   func(t *testing.T, ws box)
}

// Run runs every case that have allows, each in a workspace of its own, and says how many it could
// not run for want of what.
func Run(t *testing.T, open Open, have ...Capability) {
	t.Helper()
	lacking := map[Capability]int{}
	ran := 0
	for _, c := range slices.Concat(commandCases(), processCases(), fileCases(), boundaryCases(), findCases(), checkoutCases(), snapshotCases(), checkpointCases(), kernelCases()) {
		if i := slices.IndexFunc(c.needs, func(n Capability) bool { return !slices.Contains(have, n) }); i >= 0 {
			lacking[c.needs[i]]++
			continue
		}
		ran++
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.run(t, box{PlatformWorkspace: open(t), open: open})
		})
	}
	t.Logf("sandboxtest: %d run", ran)
	for capability, n := range lacking {
		t.Logf("sandboxtest: %d need %s", n, capability)
	}
}

// must runs a command that has to succeed and returns its output.
func (ws box) must(t *testing.T, shell string) string {
	t.Helper()
	res, err := ws.Run(t.Context(), core.Command{Shell: shell})
	if err != nil {
		t.Fatalf("%s: %v", shell, err)
	}
	out := string(res.Head) + string(res.Tail)
	if res.Exit != 0 || res.Omitted != 0 {
		t.Fatalf("%s: exit %d, %d bytes omitted, output %q", shell, res.Exit, res.Omitted, out)
	}
	return out
}

// write makes files that have to be writable.
func (ws box) write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if _, err := ws.Write(t.Context(), core.WriteFile{Path: name, Data: []byte(text)}); err != nil {
			t.Fatalf("write %q: %v", name, err)
		}
	}
}

// read returns a file that has to be there.
func (ws box) read(t *testing.T, name string) string {
	t.Helper()
	data, err := ws.Read(t.Context(), name, 0, 0)
	if err != nil {
		t.Fatalf("read %q: %v", name, err)
	}
	return string(data.Data)
}

// wantCode fails unless err has the code.
func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	if err == nil || core.CodeOf(err) != code {
		t.Errorf("%s: err = %v, want code %s", what, err, code)
	}
}
