package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/docker/dockertest"
)

func TestAcquire_MakesACheckedOutSandbox(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	if got, want := run(t, ws, "git branch --show-current; git status --porcelain; cat README.md; git remote -v | head -1"),
		f.claim.Session.Branch+"\nhello\norigin\thttps://github.example/octo/demo.git (fetch)"; got != want {
		t.Errorf("workspace:\n%s\nwant:\n%s", got, want)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating", "repo_checkout_started", "repo_checkout_completed", "sandbox_ready")
	box := f.store.box(t, f.claim.Session.ID)
	if box.State != core.SandboxReady || box.Generation != 1 || !box.CheckedOut || box.RuntimeRef == "" || box.Volume == "" ||
		box.Image == "" || box.Runtime != dockertest.Runtime() || box.Host == "" || box.LastUsedAt.IsZero() {
		t.Errorf("row %+v", box)
	}
}

func TestAcquire_ReusesTheContainerAndReleaseEndsItsProcesses(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "echo work > new.txt; setsid sleep 1000 >/dev/null 2>&1 &")
	before := f.store.box(t, f.claim.Session.ID)
	f.store.types(f.claim.Session.ID)

	next := f.reclaim(f.claim)
	if got := f.turn(t, next, "cat new.txt; cat /proc/[0-9]*/comm | grep -c sleep || true"); got != "work\n0" {
		t.Errorf("second turn saw %q", got)
	}
	after := f.store.box(t, f.claim.Session.ID)
	if after.RuntimeRef != before.RuntimeRef || after.Generation != before.Generation {
		t.Errorf("container changed: %+v then %+v", before, after)
	}
	if !after.LastUsedAt.After(before.LastUsedAt) {
		t.Error("the turn did not count as use")
	}
	wantTypes(t, f.store.types(f.claim.Session.ID))
}

func TestRelease_EndsWhatStillRuns(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = ws.Run(t.Context(), core.Command{Shell: "touch started; sleep 1000"}) // it ends either way
	}()
	eventually(t, "the command runs", func() bool {
		_, err := ws.Stat(t.Context(), "started")
		return err == nil
	})
	f.Release(t.Context(), f.claim, ws)
	<-ended
	box := f.store.box(t, f.claim.Session.ID)
	if left := dockertest.Programs(t, box.RuntimeRef); !slices.Equal(left, []string{"toolboxd"}) {
		t.Errorf("after the release these run: %q", left)
	}
	if box.State != core.SandboxReady {
		t.Errorf("row is %s", box.State)
	}
}

func TestAcquire_StartsAStoppedSandboxWithItsWork(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.Idle = time.Nanosecond })
	f.turn(t, f.claim, "echo work > new.txt")
	f.store.own(f.claim.Session.ID, "")
	if err := f.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped := f.store.box(t, f.claim.Session.ID)
	there, err := f.runtime.Inspect(t.Context(), stopped.RuntimeRef)
	if err != nil || there.Running || stopped.State != core.SandboxStopped {
		t.Fatalf("after an idle stop: row %s, container %+v, %v", stopped.State, there, err)
	}
	f.store.types(f.claim.Session.ID)

	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("after the start: %q", got)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating", "sandbox_ready")
	if box := f.store.box(t, f.claim.Session.ID); box.Generation != 1 || box.RuntimeRef != stopped.RuntimeRef {
		t.Errorf("another container was made: %+v", box)
	}
}

func TestAcquire_ContainerKilledMidCommandKeepsTheWork(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	ref := f.store.box(t, f.claim.Session.ID).RuntimeRef
	failed := make(chan error, 1)
	go func() {
		_, err := ws.Run(t.Context(), core.Command{Shell: "echo work > new.txt; sleep 1000"})
		failed <- err
	}()
	eventually(t, "the command has written", func() bool {
		_, err := ws.Stat(t.Context(), "new.txt")
		return err == nil
	})
	dockertest.Docker(t, "kill", ref)
	wantCode(t, <-failed, "sandbox_lost")
	f.Release(t.Context(), f.claim, ws)
	box := f.store.box(t, f.claim.Session.ID)
	if box.State != core.SandboxFailed || box.FailureCode != "sandbox_lost" {
		t.Errorf("row after the loss: %+v", box)
	}
	f.store.types(f.claim.Session.ID)

	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("after recovery: %q", got)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating sandbox_lost", "sandbox_ready")
	if now := f.store.box(t, f.claim.Session.ID); now.Generation != 2 || now.Volume != box.Volume {
		t.Errorf("recovered as %+v, from %+v", now, box)
	}
}

func TestAcquire_ContainerRemovedByAnAdminKeepsTheWork(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "echo work > new.txt")
	dockertest.Docker(t, "rm", "-f", f.store.box(t, f.claim.Session.ID).RuntimeRef)
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("after recovery: %q", got)
	}
}

func TestAcquire_OtherSettingsAreANewContainerOnTheSameWorkspace(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "echo work > new.txt")
	old := f.store.box(t, f.claim.Session.ID)
	f.Service = sandbox.New(sandbox.Options{ // an operator has changed SANDBOX_PIDS
		Runtime: f.runtime, Store: f.store, Source: f.source, Log: f.log(t), Limits: sandbox.Limits{MemoryBytes: 512 << 20, CPUs: 1, PIDs: 200},
	})
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("new container saw %q", got)
	}
	if now := f.store.box(t, f.claim.Session.ID); now.Generation != old.Generation+1 || now.Volume != old.Volume {
		t.Errorf("from %+v to %+v", old, now)
	}
	if _, err := f.runtime.Inspect(t.Context(), old.RuntimeRef); core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("the old container is still there: %v", err)
	}
}

func TestAcquire_WorkerLostFencesTheOldContainer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	run(t, ws, "echo work > new.txt")
	old := f.store.box(t, f.claim.Session.ID)
	f.store.change(f.claim.Session.ID, func(box *core.Sandbox) {
		box.State, box.FailureCode = core.SandboxFailed, "worker_lost"
	})
	f.store.types(f.claim.Session.ID)

	next := f.acquire(t, f.reclaim(f.claim))
	if got := run(t, next, "cat new.txt"); got != "work" {
		t.Errorf("new generation saw %q", got)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating worker_lost", "sandbox_ready")
	if _, err := f.runtime.Inspect(t.Context(), old.RuntimeRef); core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("the old container is still there: %v", err)
	}
	_, err := ws.Stat(t.Context(), "new.txt")
	wantCode(t, err, "sandbox_lost")
	f.Release(t.Context(), f.claim, ws) // the late worker changes nothing any more
	if box := f.store.box(t, f.claim.Session.ID); box.State != core.SandboxReady || box.Generation != 2 {
		t.Errorf("a lost worker wrote %+v", box)
	}
	run(t, next, "true") // nor does it end what is not its own
}

func TestAcquire_RebuildsALostVolumeFromTheCheckpoint(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	run(t, ws, "echo work > new.txt; rm README.md")
	f.checkpoint(t, ws)
	f.Release(t.Context(), f.claim, ws)
	box := f.store.box(t, f.claim.Session.ID)
	dockertest.Docker(t, "rm", "-f", box.RuntimeRef)
	dockertest.Docker(t, "volume", "rm", box.Volume)
	f.store.types(f.claim.Session.ID)

	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt; ls"); got != "work\nnew.txt" {
		t.Errorf("rebuilt workspace: %q", got)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating sandbox_lost", "sandbox_creating volume_lost",
		"repo_checkout_started", "repo_checkout_completed", "sandbox_restored", "sandbox_ready")
}

func TestAcquire_RebuildsOnAnotherHostAndSaysSo(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	run(t, ws, "echo work > new.txt")
	f.checkpoint(t, ws)
	f.Release(t.Context(), f.claim, ws)
	old := f.store.box(t, f.claim.Session.ID)
	f.store.change(f.claim.Session.ID, func(box *core.Sandbox) { box.Host = "another" })
	f.store.types(f.claim.Session.ID)

	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("rebuilt workspace: %q", got)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating host_changed",
		"repo_checkout_started", "repo_checkout_completed", "sandbox_restored", "sandbox_ready")
	if now := f.store.box(t, f.claim.Session.ID); now.Volume == old.Volume || now.Host == "another" {
		t.Errorf("rebuilt as %+v", now)
	}
}

func TestAcquire_TellsTheSourceOfARebuildEvenAfterOneFailed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "true")
	f.store.change(f.claim.Session.ID, func(box *core.Sandbox) { box.Host = "another" })
	f.source.refuse = core.Fail(core.Unavailable, "github_unavailable", "No answer.")
	_, err := f.Acquire(t.Context(), f.reclaim(f.claim))
	wantCode(t, err, "github_unavailable")
	f.source.refuse = nil
	f.turn(t, f.reclaim(f.claim), "true")
	if want := []bool{false, true, true}; !slices.Equal(f.source.again, want) {
		t.Errorf("checkouts were told %v, want %v", f.source.again, want)
	}
}

func (f *fixture) checkpoint(t *testing.T, ws core.PlatformWorkspace) {
	t.Helper()
	var archive bytes.Buffer
	info, err := ws.Checkpoint(t.Context(), &archive, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.SaveCheckpoint(t.Context(), f.claim.Lease, core.Checkpoint{
		ID: core.NewID[core.CheckpointID](), SessionID: f.claim.Session.ID, Info: info, Archive: archive.Bytes(),
	}); err != nil {
		t.Fatal(err)
	}
}

func TestAcquire_NeverResetsAWorkspace(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "git -c user.name=T -c user.email=t@example.com commit -q --allow-empty -m more; git switch -q -c elsewhere; echo work > new.txt; git add .")
	_, err := f.Acquire(t.Context(), f.reclaim(f.claim))
	wantCode(t, err, "wrong_branch_dirty")
	box := f.store.box(t, f.claim.Session.ID)
	if box.State != core.SandboxReady {
		t.Errorf("a refusal changed the sandbox to %s", box.State)
	}
	if got := dockertest.Docker(t, "exec", box.RuntimeRef, "cat", "/workspace/repo/new.txt", "/workspace/repo/.git/HEAD"); got != "work\nref: refs/heads/elsewhere" {
		t.Errorf("a refusal changed the workspace to %q", got)
	}
}

func TestAcquire_SwitchesACleanTreeBack(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]string{
		"other branch":  "git switch -q -c elsewhere",
		"detached":      "git switch -q --detach",
		"branch gone":   "git switch -q --detach; git branch -q -D -- \"$(git branch --list 'agent/*' | tr -d ' *')\"",
		"hostile hooks": "git switch -q -c elsewhere; mkdir -p .git/hooks; printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.turn(t, f.claim, leave)
			if got := f.turn(t, f.reclaim(f.claim), "git branch --show-current; cat README.md"); got != f.claim.Session.Branch+"\nhello" {
				t.Errorf("resumed on %q", got)
			}
		})
	}
}

func TestAcquire_CancelLeavesAConsistentRow(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.source.hang = true
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := f.Acquire(ctx, f.claim)
		failed <- err
	}()
	eventually(t, "the checkout has begun", func() bool {
		box, _ := f.store.LiveSandbox(t.Context(), f.claim.Session.ID)
		if box == nil || box.RuntimeRef == "" {
			return false
		}
		there, err := f.runtime.Inspect(t.Context(), box.RuntimeRef)
		return err == nil && there.Running
	})
	cancel(core.ErrCancelledByUser)
	if err := <-failed; !errors.Is(err, core.ErrCancelledByUser) {
		t.Errorf("Acquire: %v, want the cause of the cancel", err)
	}
	box := f.store.box(t, f.claim.Session.ID)
	there, err := f.runtime.Inspect(t.Context(), box.RuntimeRef)
	if box.State != core.SandboxFailed || box.FailureCode != "preparation_interrupted" || err != nil || there.Running {
		t.Errorf("after a cancel: row %+v, container %+v, %v", box, there, err)
	}

	f.source.hang = false
	if got := f.turn(t, f.reclaim(f.claim), "cat README.md"); got != "hello" {
		t.Errorf("after the next message: %q", got)
	}
}

func TestAcquire_FailsWithTheCodeOfTheCause(t *testing.T) {
	t.Parallel()
	moved := core.Fail(core.Conflict, "base_moved", "The base branch has moved. Start a new session from its new head.")
	t.Run("source", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		f.source.refuse = moved
		_, err := f.Acquire(t.Context(), f.claim)
		wantCode(t, err, "base_moved")
		wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating", "repo_checkout_started", "sandbox_failed base_moved")
	})
	t.Run("image", func(t *testing.T) {
		t.Parallel()
		config := dockertest.Config(t)
		config.Image = "agent-sandboxing/sandbox:not-here"
		f := setup(t, func(o *sandbox.Options) { o.Runtime = dockertest.Open(t, config) })
		_, err := f.Acquire(t.Context(), f.claim)
		wantCode(t, err, "image_missing")
		wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating", "repo_checkout_started", "sandbox_failed image_missing")
	})
	t.Run("daemon", func(t *testing.T) {
		t.Parallel()
		down, err := docker.New(docker.Config{Host: "unix:///nonexistent/docker.sock", Image: "any", Instance: "test"})
		if err != nil {
			t.Fatal(err)
		}
		f := setup(t, func(o *sandbox.Options) { o.Runtime = down })
		_, err = f.Acquire(t.Context(), f.claim)
		wantCode(t, err, "runtime_unavailable")
		wantTypes(t, f.store.types(f.claim.Session.ID)) // nothing was begun
		if f.Answers() {
			t.Error("the next session would try it too")
		}
	})
}
