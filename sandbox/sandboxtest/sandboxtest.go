// Package sandboxtest is the contract of a workspace as tests: every runtime passes the same cases.
package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
)

// Capability is something that not every runtime has.
type Capability string

const (
	// CommandsReal: commands are real processes, with bash, coreutils, procps-free /proc and git.
	CommandsReal Capability = "commands-real"
	// Contained: the workspace is a sandbox of its own, with the toolbox as its first process and
	// limits on memory and on the number of processes. What attacks it reaches nothing else.
	Contained Capability = "contained"
	// ExhaustionContained: a command that takes all memory is killed, the sandbox goes on, and the toolbox
	// can read that it was for want of memory. gVisor's kernel is in the sandbox's own limits, so that
	// the sandbox may end, and it counts nothing.
	ExhaustionContained Capability = "exhaustion-contained"
	// InitProtected: nothing that a command does ends the toolbox or shows anything of it. gVisor's first
	// process is like any other: an attack may end it, and then it has to be sandbox_lost.
	InitProtected Capability = "init-protected"
	// NativeFiles: a hundred thousand calls to the file system take seconds, not minutes.
	NativeFiles Capability = "native-files"
)

// Open makes a new, empty workspace that is cleaned up with the test.
type Open func(t *testing.T) core.PlatformWorkspace

// box is what a case works with.
type box struct {
	core.PlatformWorkspace
	open   Open // for a second workspace
	mortal bool // an attack may end it
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
	var count tally
	for _, c := range slices.Concat(commandCases(), processCases(), fileCases(), boundaryCases(), findCases(), checkoutCases(), snapshotCases(), checkpointCases(), kernelCases(), bugCases()) {
		if !count.runs(c.needs, have) {
			continue
		}
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.run(t, box{PlatformWorkspace: open(t), open: open})
		})
	}
	count.log(t, "sandboxtest")
}

// Attacks does what a hostile repository or model may try, in a few sandboxes. Behind every attack the
// sandbox has to work as before.
func Attacks(t *testing.T, open Open, have ...Capability) {
	t.Helper()
	var count tally
	for _, g := range []struct {
		name     string
		checkout bool // the attacks begin in one
		cases    []testCase
	}{
		{"files", false, fileAttacks()},
		{"init", false, initAttacks()},
		{"processes", false, processAttacks()},
		{"output", false, outputAttacks()},
		{"poison", true, poisonAttacks()},
		{"git", false, gitAttacks()},
	} {
		cases := slices.DeleteFunc(g.cases, func(c testCase) bool { return !count.runs(c.needs, have) })
		if len(cases) == 0 {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			ws := box{PlatformWorkspace: open(t), open: open, mortal: !slices.Contains(have, InitProtected)}
			if g.checkout {
				ws.checkout(t, newFixture(t))
			}
			for _, c := range cases {
				ended := false
				t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
					c.run(t, ws)
					if ended = ws.lost(t); !ended {
						ws.unharmed(t)
					}
				})
				if ended {
					ws.PlatformWorkspace = open(t)
				}
			}
		})
	}
	count.log(t, "attacks")
}

// lost says that an attack has ended the sandbox, as it may.
func (ws box) lost(t *testing.T) bool {
	return ws.mortal && core.CodeOf(ws.Ping(t.Context())) == "sandbox_lost"
}

// unharmed fails when the sandbox does not work as it did.
func (ws box) unharmed(t *testing.T) {
	t.Helper()
	if err := ws.Ping(t.Context()); err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	if got := ws.must(t, "echo well; ls -d /proc/[0-9]* | wc -l | awk '{print ($1 < 12)}'"); got != "well\n1\n" {
		t.Errorf("afterwards: output %q", got)
	}
}

// tally counts the cases that run and those that lack something.
type tally struct {
	ran     int
	lacking map[Capability]int
}

func (c *tally) runs(needs, have []Capability) bool {
	if i := slices.IndexFunc(needs, func(n Capability) bool { return !slices.Contains(have, n) }); i >= 0 {
		if c.lacking == nil {
			c.lacking = map[Capability]int{}
		}
		c.lacking[needs[i]]++
		return false
	}
	c.ran++
	return true
}

// log prints the line that sums a suite up.
func (c *tally) log(t *testing.T, suite string) {
	line := fmt.Sprintf("%s: %d run", suite, c.ran)
	for _, capability := range slices.Sorted(maps.Keys(c.lacking)) {
		line += fmt.Sprintf(", %d need %s", c.lacking[capability], capability)
	}
	t.Log(line)
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

// within is the result of a command that has to be over before limit.
func (ws box) within(t *testing.T, limit time.Duration, cmd core.Command) (core.CommandResult, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("it is not over in time"))
	defer cancel()
	res, err := ws.Run(ctx, cmd)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return res, err
}

// soon is what comes out of ch, which has to be before limit.
func soon[T any](t *testing.T, ch <-chan T, limit time.Duration) (out T) {
	t.Helper()
	select {
	case out = <-ch:
	case <-time.After(limit):
		t.Errorf("not over after %v", limit)
		out = <-ch
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
