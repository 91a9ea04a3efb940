package sandbox_test

import (
	"testing"

	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// A worker that is restarted in order has given its sessions back: the next one goes on in the
// containers that it finds.
func TestAcquire_AnotherWorkerGoesOnInTheSameContainer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "echo work > new.txt; echo kept > /tmp/scratch")
	before := f.store.box(t, f.claim.Session.ID)
	pid := dockertest.Docker(t, "inspect", "--format", "{{.State.Pid}}", before.RuntimeRef)
	f.store.types(f.claim.Session.ID)
	f.Service = sandbox.New(sandbox.Options{
		Runtime: f.runtime, Store: f.store, Source: f.source, Log: f.log(t), Limits: sandbox.Limits{MemoryBytes: 512 << 20, CPUs: 1, PIDs: 256},
	})
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt /tmp/scratch"); got != "work\nkept" {
		t.Errorf("the next worker saw %q", got)
	}
	after := f.store.box(t, f.claim.Session.ID)
	if after.Generation != before.Generation || after.RuntimeRef != before.RuntimeRef {
		t.Errorf("from %+v to %+v", before, after)
	}
	if now := dockertest.Docker(t, "inspect", "--format", "{{.State.Pid}}", after.RuntimeRef); now != pid {
		t.Errorf("PID 1 was %s and is %s", pid, now)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID))
}
