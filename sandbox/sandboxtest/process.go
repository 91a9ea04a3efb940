package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agent-sandboxing/core"
)

// real is what a case of processes needs.
var real = []Capability{CommandsReal}

func processCases() []testCase {
	return []testCase{
		{name: "a background child does not hold the command", needs: real, run: backgroundChild},
		{name: "no process survives its command however it detached", needs: real, run: detachedChildren},
		{name: "invariant 7 no process of the turn lives two seconds after a cancel", needs: real, run: cancelLeavesNothing},
		{name: "a timeout kills the tree that ignores TERM", needs: real, run: timeoutKillsTree},
		{name: "kill all ends a running command", needs: real, run: killAllEndsCommand},
		{name: "death by a signal has its name", needs: real, run: deathBySignal},
		{name: "a flood of output is counted and cut", needs: real, run: outputFlood},
		{name: "a child cannot signal the toolbox away", needs: real, run: signalsToToolbox},
	}
}

var markers atomic.Int64

// marker is an argument of sleep that no other test uses: how a process is found again.
func marker() string {
	return fmt.Sprintf("3600.%d%06d", time.Now().UnixNano()%1e9, markers.Add(1))
}

// alive counts the processes that have the marker among their arguments.
func (ws box) alive(t *testing.T, mark string) string {
	t.Helper()
	// The brackets keep the pattern from matching the shell that holds it.
	pattern := "[" + mark[:1] + "]" + mark[1:]
	return strings.TrimSpace(ws.must(t, `n=0; for p in /proc/[0-9]*; do if cat $p/cmdline 2>/dev/null | tr '\0' ' ' | grep -q '`+pattern+`'; then n=$((n+1)); fi; done; echo $n`))
}

func backgroundChild(t *testing.T, ws box) {
	mark := marker()
	res, err := ws.within(t, quickly, core.Command{Shell: "sleep " + mark + " & echo done"})
	if err != nil || string(res.Head) != "done\n" || res.Exit != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if res.Survivors != 1 {
		t.Errorf("%d survivors, want 1", res.Survivors)
	}
	if n := ws.alive(t, mark); n != "0" {
		t.Errorf("%s processes alive", n)
	}
}

func detachedChildren(t *testing.T, ws box) {
	mark := marker()
	res, err := ws.Run(t.Context(), core.Command{Shell: `
		setsid sleep ` + mark + ` < /dev/null > /dev/null 2>&1 &
		( setsid bash -c '(sleep ` + mark + ` &) ; exit' > /dev/null 2>&1 & )
		(trap "" TERM HUP INT; sleep ` + mark + ` > /dev/null 2>&1) &
		until [ $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -c '^` + mark + `$') -ge 3 ]; do :; done
		echo done`})
	if err != nil || !strings.Contains(string(res.Head), "done") {
		t.Fatalf("%+v, %v", res, err)
	}
	if res.Survivors < 3 {
		t.Errorf("%d survivors, want 3 or more", res.Survivors)
	}
	if n := ws.alive(t, mark); n != "0" {
		t.Errorf("%s processes alive", n)
	}
}

func cancelLeavesNothing(t *testing.T, ws box) {
	mark := marker()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := ws.Run(ctx, core.Command{Shell: `trap '' TERM HUP INT
			setsid sleep ` + mark + ` > /dev/null 2>&1 &
			(setsid bash -c 'trap "" TERM; sleep ` + mark + `; sleep ` + mark + `' &) > /dev/null 2>&1
			touch started; sleep ` + mark + `; sleep ` + mark})
		ended <- err
	}()
	waitFor(t, func() bool { _, err := ws.Stat(t.Context(), "started"); return err == nil })
	cancel()
	if err := soon(t, ended, cancelLimit); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's", err)
	}
	if n := ws.alive(t, mark); n != "0" {
		t.Errorf("%s processes alive", n)
	}
}

func timeoutKillsTree(t *testing.T, ws box) {
	mark := marker()
	res, err := ws.Run(t.Context(), core.Command{
		Shell:   `trap '' TERM; (trap '' TERM; sleep ` + mark + `; sleep ` + mark + `) & sleep ` + mark + `; sleep ` + mark,
		Timeout: 2 * time.Second, // long enough to set the trap on a busy machine
	})
	if err != nil || !res.TimedOut || res.Exit != 137 || res.Signal != "KILL" {
		t.Errorf("%+v, %v", res, err)
	}
	if n := ws.alive(t, mark); n != "0" {
		t.Errorf("%s processes alive", n)
	}
}

func killAllEndsCommand(t *testing.T, ws box) {
	ended := make(chan core.CommandResult, 1)
	go func() {
		res, err := ws.Run(t.Context(), core.Command{Shell: "touch started; sleep 3600 & exec sleep 3600"})
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	waitFor(t, func() bool { _, err := ws.Stat(t.Context(), "started"); return err == nil })
	n, err := ws.KillAll(t.Context())
	if err != nil || n == 0 {
		t.Errorf("KillAll = %d, %v", n, err)
	}
	if res := <-ended; res.Exit != 137 || res.Signal != "KILL" || res.TimedOut {
		t.Errorf("%+v", res)
	}
	if n, err := ws.KillAll(t.Context()); n != 0 || err != nil {
		t.Errorf("second KillAll = %d, %v", n, err)
	}
}

func deathBySignal(t *testing.T, ws box) {
	for signal, exit := range map[string]int{"KILL": 137, "TERM": 143, "SEGV": 139} {
		res, err := ws.Run(t.Context(), core.Command{Shell: "kill -" + signal + " $$"})
		if err != nil || res.Exit != exit || res.Signal != signal || res.TimedOut {
			t.Errorf("%s: %+v, %v", signal, res, err)
		}
	}
}

func outputFlood(t *testing.T, ws box) {
	const size = 64 << 20
	res, err := ws.Run(t.Context(), core.Command{Shell: fmt.Sprintf("yes | head -c %d", size), LogName: "flood.log"})
	if err != nil || res.Total != size || res.Lines != size/2 {
		t.Fatalf("total %d, lines %d, %v", res.Total, res.Lines, err)
	}
	if len(res.Head) != 10<<10 || len(res.Tail) != 40<<10 || res.Omitted != size-50<<10 {
		t.Errorf("head %d, tail %d, omitted %d", len(res.Head), len(res.Tail), res.Omitted)
	}
	if stat, err := ws.Stat(t.Context(), res.LogPath); err != nil || stat.Size != 10<<20 {
		t.Errorf("log: %+v, %v, want 10 MiB", stat, err)
	}
}

func signalsToToolbox(t *testing.T, ws box) {
	// Every signal but KILL and STOP, which nothing can take; PID 1 is immune to them anyway.
	ws.must(t, `for s in HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM CHLD CONT TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS; do kill -$s $PPID || exit 1; done`)
	if err := ws.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ws.must(t, "echo still"); got != "still\n" {
		t.Errorf("output %q", got)
	}
}

// waitFor polls until ok, at most 30 s.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(2 * time.Millisecond); !ok(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the condition never held")
		}
	}
}
