package sandbox_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// TestInvariant6_NothingThatIsKilledTakesTheWork kills, in the middle of a command, each thing that a
// sandbox stands on, on a Docker daemon of the test's own. The command fails with a code and is never
// said to have ended well; the session's next turn finds the work that was done, in one container. What
// was not killed goes on: without a new generation, and with the same PID 1 where that lives.
func TestInvariant6_NothingThatIsKilledTakesTheWork(t *testing.T) {
	t.Parallel()
	d := dockertest.NewDaemon(t, dockertest.DaemonOptions{LiveRestore: true})
	r := dockertest.Open(t, d.Config(t))
	f := setup(t, func(o *sandbox.Options) { o.Runtime = r })
	f.runtime = r
	var stopping chan error
	for _, c := range []struct {
		name string
		kept string // what the next turn goes on with
		kill func(t *testing.T, ref string) error
	}{
		{"container", "volume", func(_ *testing.T, ref string) error {
			_, err := d.Run(t.Context(), "kill", ref)
			return err
		}},
		{"PID 1, behind the daemon's back", "volume", func(t *testing.T, ref string) error {
			return d.Signal(t.Context(), "KILL", d.Docker(t, "inspect", "--format", "{{.State.Pid}}", ref))
		}},
		{"shim", "volume", func(t *testing.T, ref string) error {
			pid, err := d.Shim(ref)
			if err != nil {
				return err
			}
			return d.Signal(t.Context(), "KILL", strconv.Itoa(pid))
		}},
		{"dockerd with live restore", "process", func(t *testing.T, _ string) error { return d.Kill(t.Context()) }},
		{"dockerd with live restore, back before the turn has ended", "process", func(t *testing.T, _ string) error {
			return errors.Join(d.Kill(t.Context()), d.Start(t.Context()))
		}},
		{"dockerd in order, with live restore", "process", func(t *testing.T, _ string) error {
			stopping = make(chan error, 1) // a daemon on its way down still answers
			go func() { stopping <- d.Stop(t.Context()) }()
			return nil
		}},
		{"dockerd without", "container", func(t *testing.T, _ string) error {
			if err := d.SetLiveRestore(false); err != nil {
				return err
			}
			return d.Kill(t.Context())
		}},
		{"everything on the host", "container", func(t *testing.T, _ string) error { return d.Crash(t.Context()) }},
	} {
		t.Run(c.name, func(t *testing.T) { // one after the other: they share the daemon
			stopping = nil
			f.killed(t, d, c.kept, c.kill, func() error {
				if stopping == nil {
					return nil
				}
				return <-stopping
			})
		})
	}
}

func (f *fixture) killed(t *testing.T, d *dockertest.Daemon, kept string, kill func(*testing.T, string) error, killed func() error) {
	claim := f.newClaim()
	ws := f.acquire(t, claim)
	box := f.store.box(t, claim.Session.ID)
	pid := d.Docker(t, "inspect", "--format", "{{.State.Pid}}", box.RuntimeRef)
	ended := make(chan error, 1)
	go func() {
		_, err := ws.Run(t.Context(), core.Command{Shell: "echo work > new.txt; touch done; sleep 1000"})
		ended <- err
	}()
	eventually(t, "the command has written", func() bool {
		_, err := ws.Stat(t.Context(), "done")
		return err == nil
	})
	if err := kill(t, box.RuntimeRef); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		wantCode(t, err, "sandbox_lost")
	case <-time.After(time.Minute):
		t.Error("the command does not end")
	}
	f.Release(t.Context(), claim, ws)
	if err := killed(); err != nil {
		t.Error(err)
	}
	if _, err := d.Run(t.Context(), "version"); err != nil && f.Answers() { // that it is back again, the janitor finds out
		t.Errorf("the service says that Docker answers; docker version: %v", err)
	}
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Status(t.Context()) // it asks the daemon, as the janitor does
	if got := f.turn(t, f.reclaim(claim), "cat new.txt; cat /proc/[0-9]*/comm | grep -c sleep || true"); got != "work\n0" {
		t.Errorf("the next turn found %q", got)
	}
	now := f.store.box(t, claim.Session.ID)
	goesOn := "volume"
	if now.Generation == box.Generation && now.RuntimeRef == box.RuntimeRef {
		goesOn = "container"
		if d.Docker(t, "inspect", "--format", "{{.State.Pid}}", now.RuntimeRef) == pid {
			goesOn = "process"
		}
	}
	if goesOn != kept {
		t.Errorf("the next turn goes on with the old %s, want %s", goesOn, kept)
	}
	if left := d.Docker(t, "ps", "-aq", "--filter", "label=agent-sandboxing.session="+string(claim.Session.ID)); len(left) != 12 {
		t.Errorf("the session's containers: %q, want one", left)
	}
}
