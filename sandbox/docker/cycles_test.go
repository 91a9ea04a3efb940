package docker_test

import (
	"flag"
	"os"
	"runtime"
	"testing"
	"time"

	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/docker/dockertest"
)

var cycles = flag.Int("cycles", 6, "how many sandboxes TestCycles makes and removes")

// TestCycles_LeaveNothing makes, uses and removes one sandbox after the other: containers, volumes,
// networks and mounts of the daemon, files and goroutines of this process are then what they were.
func TestCycles_LeaveNothing(t *testing.T) { // alone: it counts what the whole process holds
	config := dockertest.Config(t)
	r := dockertest.Open(t, config)
	cycle(t, r) // what is kept for the next one
	before := counted(t, config.Instance)
	for range *cycles {
		cycle(t, r)
	}
	if after := settled(t, config.Instance, before); after.above(before) {
		t.Errorf("after %d cycles %+v, before %+v", *cycles, after, before)
	}
}

func cycle(t *testing.T, r *docker.Runtime) {
	t.Helper()
	made := spec()
	box := start(t, r, made)
	if exit, out := box.sh(t, "echo work > /workspace/repo/f; cat /workspace/repo/f"); exit != 0 || out != "work" {
		t.Fatalf("exit %d, %q", exit, out)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(t.Context(), box.ref); err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(t.Context(), box.ref, true); err != nil {
		t.Fatal(err)
	}
}

// held is what an installation and this process hold.
type held struct {
	containers, volumes, networks string
	files, goroutines             int
}

// above says that something was left. What ends a little later may be fewer.
func (h held) above(before held) bool {
	return h.containers != before.containers || h.volumes != before.volumes || h.networks != before.networks ||
		h.files > before.files || h.goroutines > before.goroutines
}

// settled counts until nothing is above before, for a few seconds at most: connections that the client
// keeps open end on goroutines of their own.
func settled(t *testing.T, instance string, before held) held {
	t.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	after := counted(t, instance)
	for deadline := time.Now().Add(10 * time.Second); after.above(before) && time.Now().Before(deadline); after = counted(t, instance) {
		<-look.C
	}
	return after
}

func counted(t *testing.T, instance string) held {
	t.Helper()
	own := "label=agent-sandboxing.instance=" + instance
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return held{
		containers: dockertest.Docker(t, "ps", "-aq", "--filter", own),
		volumes:    dockertest.Docker(t, "volume", "ls", "-q", "--filter", own),
		networks:   dockertest.Docker(t, "network", "ls", "-q"),
		files:      len(files), goroutines: runtime.NumGoroutine(),
	}
}
