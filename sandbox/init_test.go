package sandbox_test

import (
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// Commands have the user of PID 1 and may try to end it. Under runc the kernel protects it; gVisor does
// not, so that the sandbox is lost: then a new container goes on with the work.
func TestAttack_EndingPID1LosesNoWork(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	before := f.store.box(t, f.claim.Session.ID)
	result, err := ws.Run(t.Context(), core.Command{Shell: `echo work > new.txt
		for s in STOP TERM HUP INT QUIT USR1 SEGV ABRT TRAP RTMIN+3 KILL; do kill -$s 1; done
		(ulimit -v 100; prlimit --pid 1 --nofile=0; renice 19 1; taskset -p 1 1; chrt -p 0 1; gdb -p 1) 2>/dev/null
		head -c 1 /proc/1/mem 2>/dev/null; (echo 1000 > /proc/1/oom_score_adj) 2>/dev/null
		sleep 0.2; echo still`})
	want := 1
	if dockertest.Runtime() == "runc" {
		if err != nil || string(result.Head) != "still\n" {
			t.Errorf("%q, %v", result.Head, err)
		}
	} else {
		wantCode(t, err, "sandbox_lost")
		want = 2
	}
	f.Release(t.Context(), f.claim, ws)
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("afterwards the file holds %q", got)
	}
	if after := f.store.box(t, f.claim.Session.ID); after.Generation != want || after.Volume != before.Volume {
		t.Errorf("afterwards %+v, want generation %d on %s", after, want, before.Volume)
	}
}

// A command that takes all memory ends alone, or with its sandbox where the kernel is in the same limit:
// then the row says why. Either way the work is there in the next turn.
func TestAttack_TakingAllMemoryLosesNoWork(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	result, err := ws.Run(t.Context(), core.Command{Shell: `echo work > new.txt; python3 -c '
x = []
while True: x.append(bytearray(8 << 20))'`})
	f.Release(t.Context(), f.claim, ws)
	box := f.store.box(t, f.claim.Session.ID)
	switch {
	case err != nil:
		wantCode(t, err, "sandbox_lost")
		if dockertest.Runtime() == "runc" || !strings.Contains(core.MessageOf(err), "memory") || box.State != core.SandboxFailed || !strings.Contains(box.FailureText, "memory") {
			t.Errorf("%v; afterwards %+v", err, box)
		}
	case !result.OOMKilled || result.MemoryLimit <= 0 || result.Exit != 137:
		t.Errorf("%+v", result)
	}
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("afterwards the file holds %q", got)
	}
}
