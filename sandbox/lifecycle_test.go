package sandbox_test

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// roomy is a runtime whose host has as much space as the test says.
type roomy struct {
	sandbox.Runtime
	space sandbox.Space
}

func (r *roomy) Space(context.Context) (sandbox.Space, error) { return r.space, nil }

func TestAcquire_ReplacesAContainerThatIsTooOldOnlyBetweenTurns(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.MaxAge = time.Nanosecond })
	ws := f.acquire(t, f.claim)
	run(t, ws, "echo work > new.txt")
	if err := f.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, ws, "true") // the turn keeps it, however old it is
	f.Release(t.Context(), f.claim, ws)
	f.store.types(f.claim.Session.ID)
	old := f.store.box(t, f.claim.Session.ID)
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("the new container saw %q", got)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating too_old", "sandbox_ready")
	if now := f.store.box(t, f.claim.Session.ID); now.Generation != 2 || now.Volume != old.Volume {
		t.Errorf("replaced by %+v", now)
	}
}

func TestReconcile_KeepsNoStoppedContainerThatIsTooOld(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.Idle, o.MaxAge = time.Nanosecond, time.Millisecond })
	f.turn(t, f.claim, "echo work > new.txt")
	f.store.own(f.claim.Session.ID, "")
	if err := f.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := f.runtime.List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("containers %+v, %v", left, err)
	}
	f.store.types(f.claim.Session.ID)
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("the next turn saw %q", got)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating", "sandbox_ready")
}

func TestAcquire_AnotherImageTakesEffectAtTheNextTurnOnTheSameVolume(t *testing.T) {
	t.Parallel()
	var image string
	t.Cleanup(func() { dockertest.Docker(t, "rmi", "-f", image) }) // runs last, after the containers
	config := dockertest.Config(t)
	f := setup(t, func(o *sandbox.Options) { o.Runtime = dockertest.Open(t, config) })
	f.turn(t, f.claim, "echo work > new.txt")
	f.store.types(f.claim.Session.ID)

	config.Image = "agent-sandboxing-test/" + config.Instance
	build := exec.CommandContext(t.Context(), "docker", "build", "-q", "--network", "none", "-t", config.Image, "-")
	build.Stdin = strings.NewReader("FROM " + dockertest.Image(t) + "\nLABEL version=2")
	out, err := build.Output()
	if err != nil {
		t.Fatalf("docker build: %v", err)
	}
	image = strings.TrimSpace(string(out))
	second := setup(t, func(o *sandbox.Options) {
		o.Runtime, o.Store, o.Source = dockertest.Open(t, config), f.store, f.source
	})
	second.store, second.source = f.store, f.source
	if got := second.turn(t, second.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("the new image's container saw %q", got)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating spec_changed", "sandbox_ready")

	// An image that is gone keeps nobody from going on with the container that was made of it.
	dockertest.Docker(t, "rmi", "-f", config.Image) // it is only untagged
	if got := second.turn(t, second.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("without the image: %q", got)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID))
}

func TestAcquire_PassesOverANameThatSomethingElseHas(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string][]string{
		"container": {"create", "--network", "none", "--name"},
		"volume":    {"volume", "create"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			id := core.NewID[core.SandboxID]()
			f.store.put(core.Sandbox{ID: id, SessionID: f.claim.Session.ID, State: core.SandboxFailed, Generation: 1})
			taken := "agent-" + string(id) + "-g2"
			args := append(plant, taken)
			clean := []string{"volume", "rm", taken}
			if name == "container" {
				args, clean = append(args, dockertest.Image(t), "true"), []string{"rm", taken}
			}
			dockertest.Docker(t, args...)
			t.Cleanup(func() { dockertest.Docker(t, clean...) }) // fails unless it is still there
			if got := f.turn(t, f.claim, "cat README.md"); got != "hello" {
				t.Errorf("saw %q", got)
			}
			if box := f.store.box(t, f.claim.Session.ID); box.Generation != 3 || box.Volume == taken {
				t.Errorf("made %+v", box)
			}
		})
	}
}

func TestPaused_ASandboxBetweenTwoTurnsIsStoppedAndStartsAgain(t *testing.T) {
	t.Parallel()
	for _, reconciled := range []bool{true, false} {
		f := setup(t)
		f.turn(t, f.claim, "echo work > new.txt")
		f.store.own(f.claim.Session.ID, "")
		ref := f.store.box(t, f.claim.Session.ID).RuntimeRef
		dockertest.Docker(t, "pause", ref)
		f.store.types(f.claim.Session.ID)
		if reconciled {
			if err := f.Reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
			there, err := f.runtime.Inspect(t.Context(), ref)
			if box := f.store.box(t, f.claim.Session.ID); err != nil || there.Running || box.State != core.SandboxStopped {
				t.Fatalf("row %s, container %+v, %v", box.State, there, err)
			}
			wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_stopped")
		}
		if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
			t.Errorf("after the pause: %q", got)
		}
		wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating", "sandbox_ready")
		if now := f.store.box(t, f.claim.Session.ID); now.RuntimeRef != ref {
			t.Error("another container was made")
		}
	}
}

// This is why nobody follows the daemon's events: the end of a container ends its attach, at once and
// with nothing asked of it.
func TestContainerThatDies_EndsTheAttachUnasked(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, end := range []string{"kill", "rm"} {
		claim := f.newClaim()
		ws := f.acquire(t, claim)
		args := []string{end, f.store.box(t, claim.Session.ID).RuntimeRef}
		if end == "rm" {
			args = []string{end, "-f", args[1]}
		}
		dockertest.Docker(t, args...)
		<-ws.(interface{ Done() <-chan struct{} }).Done()
		f.Release(t.Context(), claim, ws)
		if box := f.store.box(t, claim.Session.ID); box.State != core.SandboxFailed || box.FailureCode != "sandbox_lost" {
			t.Errorf("docker %s: row %+v", end, box)
		}
	}
}

func TestAcquire_SaysWhyTheToolboxDidNotStart(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	f := setup(t, func(o *sandbox.Options) { o.Runtime = r })
	f.turn(t, f.claim, "true")
	box := f.store.box(t, f.claim.Session.ID)
	dockertest.Docker(t, "rm", "-f", box.RuntimeRef)
	dockertest.Docker(t, "run", "--rm", "--network", "none", "--user", "0", "-v", box.Volume+":/v", dockertest.Image(t),
		"sh", "-c", "rm -rf /v/repo && chmod 555 /v && chown 0:0 /v")
	_, err := f.Acquire(t.Context(), f.reclaim(f.claim))
	wantCode(t, err, "start_failed")
	if message := core.MessageOf(err); !strings.Contains(message, "exit 1") || !strings.Contains(message, `permission denied`) {
		t.Errorf("message: %s", message)
	}
	if box := f.store.box(t, f.claim.Session.ID); box.State != core.SandboxFailed || box.FailureCode != "start_failed" {
		t.Errorf("row %+v", box)
	}
	poor := setup(t, func(o *sandbox.Options) { o.Runtime, o.Store = starved{r}, f.store })
	_, err = poor.Acquire(t.Context(), f.reclaim(f.claim))
	wantCode(t, err, "start_failed")
	if message := core.MessageOf(err); !strings.Contains(message, "SANDBOX_MEMORY") {
		t.Errorf("message: %s", message)
	}
}

// starved is a runtime whose containers that ended were killed for want of memory. The daemon takes no
// limit that is too low for the toolbox itself.
type starved struct{ sandbox.Runtime }

func (s starved) Inspect(ctx context.Context, ref string) (sandbox.Status, error) {
	there, err := s.Runtime.Inspect(ctx, ref)
	there.OOMKilled = !there.Running
	return there, err
}

func TestQuoted_IsOneBoundedEscapedLine(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"":                              "",
		"\n\n":                          "",
		"panic: x\ngoroutine 1":         `"panic: x"`,
		"\x1b[31mred\x07":               `"\x1b[31mred\a"`,
		"caf\u00e9 \u202eevil":          `"caf\u00e9 \u202eevil"`,
		strings.Repeat("a", 400) + "\n": `"` + strings.Repeat("a", 299) + `…"`,
		strings.Repeat("\x01", 400):     `"` + strings.Repeat(`\x01`, 74) + `\x0…"`,
	} {
		if got := sandbox.Quoted([]byte(said)); got != want {
			t.Errorf("%q is quoted as %s, want %s", said, got, want)
		}
	}
}

func TestAcquire_KeepsTheHostsReserveOfDisk(t *testing.T) {
	t.Parallel()
	host := &roomy{Runtime: dockertest.New(t), space: sandbox.Space{Known: true, Disk: 1 << 30, Memory: 1 << 40}}
	f := setup(t, func(o *sandbox.Options) { o.Runtime, o.DiskReserve = host, 1<<30 })
	f.turn(t, f.claim, "echo work > new.txt")

	host.space.Disk = 1<<30 - 1
	refused := f.newClaim()
	_, err := f.Acquire(t.Context(), refused)
	wantCode(t, err, "disk_low")
	wantTypes(t, f.store.types(refused.Session.ID)) // nothing was begun
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("a kept workspace: %q", got)
	}
	dockertest.Docker(t, "rm", "-f", f.store.box(t, f.claim.Session.ID).RuntimeRef)
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("a new container on a kept workspace: %q", got)
	}

	host.space.Disk = 1<<28 - 1
	dockertest.Docker(t, "kill", f.store.box(t, f.claim.Session.ID).RuntimeRef)
	before := f.store.box(t, f.claim.Session.ID)
	_, err = f.Acquire(t.Context(), f.reclaim(f.claim))
	wantCode(t, err, "disk_low")
	if now := f.store.box(t, f.claim.Session.ID); now.State != before.State || now.Volume != before.Volume {
		t.Errorf("a refusal changed the row to %+v", now)
	}
	host.space.Known = false // then the last container's word counts, and this disk has room
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("afterwards: %q", got)
	}
}

// One session cannot take from the others the room that their kept workspaces start with.
func TestRun_EndsWhileKeptWorkspacesCanStillStart(t *testing.T) {
	t.Parallel()
	docker := dockertest.New(t)
	look := setup(t, func(o *sandbox.Options) { o.Runtime = docker })
	free, err := strconv.ParseInt(look.turn(t, look.claim, "echo $(( $(stat -f -c '%a * %S' .) ))"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	host := &roomy{Runtime: docker, space: sandbox.Space{Known: true, Disk: 1 << 60, Memory: 1 << 40}}
	f := setup(t, func(o *sandbox.Options) { o.Runtime, o.DiskReserve = host, 3*free })
	ws := f.acquire(t, f.claim)
	res, err := ws.Run(t.Context(), core.Command{Shell: "yes | head -c 3000000000 > big"})
	if err != nil || !res.HostFull {
		t.Errorf("with a third of the reserve left: %+v, %v", res, err)
	}
	f.Release(t.Context(), f.claim, ws)
	host.space.Disk = free
	f.turn(t, f.reclaim(f.claim), "rm big")
}

// A host that cannot be seen is known by what its containers say of the disk below their workspaces.
func TestAcquire_KeepsTheReserveOfAHostThatCannotBeSeen(t *testing.T) {
	t.Parallel()
	host := &roomy{Runtime: dockertest.New(t)}
	f := setup(t, func(o *sandbox.Options) { o.Runtime, o.DiskReserve = host, 1<<60 })
	f.turn(t, f.claim, "true") // nobody knows yet
	_, err := f.Acquire(t.Context(), f.newClaim())
	wantCode(t, err, "disk_low")
	fits := setup(t, func(o *sandbox.Options) { o.Runtime, o.DiskReserve = host, 1 })
	fits.turn(t, fits.claim, "true")
	fits.turn(t, fits.newClaim(), "true")
}

func TestAcquire_WaitsForMemoryAndMakesSomeFree(t *testing.T) {
	t.Parallel()
	host := &roomy{Runtime: dockertest.New(t), space: sandbox.Space{Known: true, Disk: 1 << 40, Memory: 1 << 40}}
	f := setup(t, func(o *sandbox.Options) { o.Runtime, o.RoomWait = host, time.Millisecond })
	f.turn(t, f.claim, "true")
	f.store.own(f.claim.Session.ID, "")
	host.space.Memory = 200 << 20
	second := f.newClaim()
	f.turn(t, second, "true")
	if box := f.store.box(t, f.claim.Session.ID); box.State != core.SandboxStopped {
		t.Errorf("the unused sandbox is %s", box.State)
	}
	_, err := f.Acquire(t.Context(), f.newClaim()) // the second is in use
	wantCode(t, err, "capacity")
}

func TestReconcile_RemovesWhatBelongsToNobodyOnceThatLasts(t *testing.T) {
	t.Parallel()
	config := dockertest.Config(t)
	r := dockertest.Open(t, config)
	f := setup(t, func(o *sandbox.Options) { o.Runtime = r })
	f.LosePatience()
	f.turn(t, f.claim, "echo work > new.txt")
	f.store.own(f.claim.Session.ID, "")
	purged := f.newClaim()
	f.turn(t, purged, "true")
	foreign := dockertest.New(t)
	foreignVolume := made(t, foreign)
	half := "half-" + config.Instance // made by a step whose next one never came
	dockertest.Docker(t, "volume", "create", "--label", "agent-sandboxing.instance="+config.Instance, "--label", "agent-sandboxing.sandbox="+core.NewID[string](), half)
	unlabelled := "unlabelled-" + config.Instance
	dockertest.Docker(t, "volume", "create", unlabelled)
	t.Cleanup(func() { dockertest.Docker(t, "volume", "rm", unlabelled) })
	helper := dockertest.Docker(t, "create", "--network", "none", "--label", "agent-sandboxing.instance="+config.Instance,
		"--label", "agent-sandboxing.purpose=helper", dockertest.Image(t), "true")

	gone := f.store.box(t, purged.Session.ID).Volume
	f.store.drop(purged.Session.ID)
	f.store.own(purged.Session.ID, "")
	for range 3 { // the first removes the purged session's container, two more look at its volume
		if there := volumes(t); !there[half] && !there[gone] {
			t.Error("a volume was removed before it was seen twice")
		}
		if err := f.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	there := volumes(t)
	for name, want := range map[string]bool{
		half: false, gone: false, foreignVolume: true, unlabelled: true, f.store.box(t, f.claim.Session.ID).Volume: true,
	} {
		if there[name] != want {
			t.Errorf("volume %s is there: %v", name, there[name])
		}
	}
	if _, err := r.Inspect(t.Context(), helper); core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("a helper's container is left: %v", err)
	}
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("the session saw %q", got)
	}
}

func TestReconcile_TakesTheVolumeOfAnArchivedSessionAndTheCheckpointBringsItBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.LosePatience()
	ws := f.acquire(t, f.claim)
	run(t, ws, "echo work > new.txt")
	f.checkpoint(t, ws)
	f.Release(t.Context(), f.claim, ws)
	f.store.change(f.claim.Session.ID, func(box *core.Sandbox) { box.State = core.SandboxStopped })
	f.store.own(f.claim.Session.ID, "")
	f.store.archived = map[core.SessionID]bool{f.claim.Session.ID: true}
	for range 3 {
		if err := f.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.runtime.List(t.Context())
	left, volumeErr := f.runtime.Volumes(t.Context())
	if err != nil || volumeErr != nil || len(list)+len(left) != 0 {
		t.Errorf("containers %+v, volumes %+v, %v, %v", list, left, err, volumeErr)
	}
	f.store.archived = nil
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("taken up again: %q", got)
	}
}

func made(t *testing.T, r *docker.Runtime) (volume string) {
	t.Helper()
	ref, err := r.Create(t.Context(), sandbox.Spec{Session: core.NewID[core.SessionID](), Sandbox: core.NewID[core.SandboxID](), Generation: 1})
	if err != nil {
		t.Fatal(err)
	}
	status, err := r.Inspect(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return status.Volume
}

func volumes(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	for _, name := range strings.Fields(dockertest.Docker(t, "volume", "ls", "-q")) {
		there[name] = true
	}
	return there
}

func TestSuspects_OnlyWhatLastsIsDue(t *testing.T) {
	t.Parallel()
	var s sandbox.Suspects
	at := time.Now()
	look := func(after time.Duration, want string, nobodys ...string) {
		t.Helper()
		if got := strings.Join(s.Lasting(at.Add(after), time.Minute, nobodys), " "); got != want {
			t.Errorf("after %v: %q, want %q", after, got, want)
		}
	}
	look(0, "", "a", "b")
	look(59*time.Second, "", "a", "b", "c")
	look(60*time.Second, "a", "a", "c") // b had an owner meanwhile
	look(119*time.Second, "c", "b", "c")
	look(120*time.Second, "", "b") // seen again one second before
}
