package sandbox_test

import (
	"flag"
	"os"
	"runtime"
	"testing"
	"time"

	"agent-sandboxing/sandbox"
)

var cycles = flag.Int("cycles", 3, "lives of TestSoak_EverythingComesBackToWhereItWas")

// A session's whole life, again and again: made, used, stopped, used, purged. Nothing is left of it, on
// the Docker host and in this process.
func TestSoak_EverythingComesBackToWhereItWas(t *testing.T) {
	f := setup(t, func(o *sandbox.Options) { o.Idle = time.Nanosecond }) // not parallel: it counts
	f.LosePatience()
	life := func() {
		claim := f.newClaim()
		f.turn(t, claim, "echo work > new.txt")
		f.store.own(claim.Session.ID, "")
		if err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := f.turn(t, f.reclaim(claim), "cat new.txt"); got != "work" {
			t.Fatalf("saw %q", got)
		}
		f.store.drop(claim.Session.ID)
		f.store.own(claim.Session.ID, "")
		for range 3 {
			if err := f.Reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	life() // what is made once is made
	goroutines, descriptors := counts(t)
	for range *cycles {
		life()
	}
	list, err := f.runtime.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := f.runtime.Volumes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list)+len(volumes) != 0 {
		t.Errorf("left: %d containers, %d volumes", len(list), len(volumes))
	}
	eventually(t, "goroutines and descriptors are as before", func() bool {
		now, open := counts(t)
		return now <= goroutines && open <= descriptors
	})
	t.Logf("%d lives: %d goroutines, %d descriptors", *cycles, goroutines, descriptors)
}

func counts(t *testing.T) (goroutines, descriptors int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(open)
}
