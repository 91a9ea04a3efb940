package sandbox_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// withPool is a service whose pool of n is filled.
func withPool(t *testing.T, n int, change ...func(*sandbox.Options)) *fixture {
	t.Helper()
	f := setup(t, append(change, func(o *sandbox.Options) { o.Warm = n })...)
	f.tend(t)
	if got := len(f.ready(t)); got != n {
		t.Fatalf("%d members are ready, want %d", got, n)
	}
	return f
}

func (f *fixture) tend(t *testing.T) {
	t.Helper()
	if err := f.TendPool(t.Context()); err != nil {
		t.Fatalf("TendPool: %v", err)
	}
}

// ready returns the pool's members that can be claimed, by container.
func (f *fixture) ready(t *testing.T) map[string]core.PoolMember {
	t.Helper()
	host, err := f.runtime.Host(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	members, err := f.store.PoolMembers(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	ready := map[string]core.PoolMember{}
	for _, m := range members {
		if m.State == core.PoolReady {
			ready[m.RuntimeRef] = m
		}
	}
	return ready
}

// members are the pool's rows of every state.
func (f *fixture) members(t *testing.T) []core.PoolMember {
	t.Helper()
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return slices.Clone(f.store.pool)
}

// nothingLeft demands that no container and no volume is there.
func (f *fixture) nothingLeft(t *testing.T) {
	t.Helper()
	list, err := f.runtime.List(t.Context())
	if err != nil || len(list) > 0 {
		t.Errorf("containers left: %+v, %v", list, err)
	}
	volumes, err := f.runtime.Volumes(t.Context())
	if err != nil || len(volumes) > 0 {
		t.Errorf("volumes left: %+v, %v", volumes, err)
	}
}

func TestPool_RacingSessionsGetOneEachAndNoneComesBack(t *testing.T) {
	t.Parallel()
	f := withPool(t, 3)
	members := f.ready(t)
	used := map[string]bool{}
	warm := 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 5 {
		claim := f.newClaim()
		all.Go(func() {
			ws, err := f.Acquire(t.Context(), claim)
			if err != nil {
				t.Error(err)
				return
			}
			_ = run(t, ws, "cat README.md && touch used")
			f.Release(t.Context(), claim, ws)
			box := f.store.box(t, claim.Session.ID)
			mu.Lock()
			defer mu.Unlock()
			if used[box.RuntimeRef] {
				t.Errorf("container %s was given out twice", box.RuntimeRef)
			}
			used[box.RuntimeRef] = true
			if _, ok := members[box.RuntimeRef]; ok {
				warm++
			}
		})
	}
	all.Wait()
	if warm != 3 {
		t.Errorf("%d sessions got a member of the pool of 3", warm)
	}
	f.tend(t)
	for ref := range f.ready(t) {
		if used[ref] {
			t.Errorf("container %s is in the pool again", ref)
		}
	}
	if got := len(f.ready(t)); got != 3 {
		t.Errorf("%d members after the refill, want 3", got)
	}
}

func TestPool_AClaimedMemberIsTheSessionsSandbox(t *testing.T) {
	t.Parallel()
	f := withPool(t, 1)
	if out := f.turn(t, f.claim, "echo work > new.txt && cat README.md"); out != "hello" {
		t.Errorf("printed %q", out)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating", "repo_checkout_started", "repo_checkout_completed", "sandbox_ready")
	first := f.store.box(t, f.claim.Session.ID)

	next := f.reclaim(f.claim)
	if out := f.turn(t, next, "cat new.txt"); out != "work" {
		t.Errorf("the next turn saw %q", out)
	}
	if again := f.store.box(t, f.claim.Session.ID); again.RuntimeRef != first.RuntimeRef || again.Generation != 1 {
		t.Errorf("the next turn made container %s of generation %d", again.RuntimeRef, again.Generation)
	}
	f.store.own(f.claim.Session.ID, "")
	if err := f.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.runtime.Inspect(t.Context(), first.RuntimeRef); err != nil {
		t.Errorf("reconcile: %v", err)
	}

	dockertest.Docker(t, "rm", "-f", first.RuntimeRef)
	last := f.reclaim(f.claim)
	if out := f.turn(t, last, "cat new.txt"); out != "work" {
		t.Errorf("the next generation saw %q", out)
	}
	if box := f.store.box(t, f.claim.Session.ID); box.Generation != 2 || box.Volume != first.Volume || box.ID != first.ID {
		t.Errorf("rebuilt as %+v", box)
	}
}

func TestPool_AMemberOfNoUseIsReplacedByANewContainer(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, f *fixture, m core.PoolMember){
		"dead":    func(t *testing.T, _ *fixture, m core.PoolMember) { dockertest.Docker(t, "kill", m.RuntimeRef) },
		"removed": func(t *testing.T, _ *fixture, m core.PoolMember) { dockertest.Docker(t, "rm", "-f", m.RuntimeRef) },
		"frozen":  func(t *testing.T, _ *fixture, m core.PoolMember) { dockertest.Docker(t, "pause", m.RuntimeRef) },
		"a file": func(t *testing.T, _ *fixture, m core.PoolMember) {
			dockertest.Docker(t, "exec", m.RuntimeRef, "touch", "/workspace/repo/planted")
		},
		"a temporary file": func(t *testing.T, _ *fixture, m core.PoolMember) {
			dockertest.Docker(t, "exec", m.RuntimeRef, "touch", "/tmp/planted")
		},
		"a process": func(t *testing.T, _ *fixture, m core.PoolMember) {
			dockertest.Docker(t, "exec", "-d", m.RuntimeRef, "sleep", "1000")
		},
		"stale": func(_ *testing.T, f *fixture, _ core.PoolMember) {
			f.store.editPool(func(m *core.PoolMember) { m.Spec, m.Age = "of yesterday", time.Hour })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := withPool(t, 1)
			var member core.PoolMember
			for _, member = range f.ready(t) {
				spoil(t, f, member)
			}
			if out := f.turn(t, f.claim, "ls"); out != "README.md" {
				t.Errorf("printed %q", out)
			}
			box := f.store.box(t, f.claim.Session.ID)
			if box.RuntimeRef == member.RuntimeRef || box.Volume == member.Volume {
				t.Errorf("the session got %+v", member)
			}
			f.tend(t)
			if _, err := f.runtime.Inspect(t.Context(), member.RuntimeRef); core.CodeOf(err) != "sandbox_lost" {
				t.Errorf("the useless member is still there: %v", err)
			}
			if fresh := f.ready(t); len(fresh) != 1 || fresh[member.RuntimeRef].ID != "" {
				t.Errorf("the pool holds %+v", fresh)
			}
		})
	}
}

func TestPool_OtherLimitsAreAnotherSpec(t *testing.T) {
	t.Parallel()
	f := withPool(t, 1)
	restarted := sandbox.New(sandbox.Options{
		Runtime: f.runtime, Store: f.store, Source: f.source, Log: f.log(t), Warm: 1,
		Limits: sandbox.Limits{MemoryBytes: 512 << 20, CPUs: 1, PIDs: 255},
	})
	old := f.ready(t)
	f.Service = restarted
	_ = f.turn(t, f.claim, "true")
	if box := f.store.box(t, f.claim.Session.ID); old[box.RuntimeRef].ID != "" {
		t.Error("a member with other limits was given out")
	}
	f.tend(t)
	if got := f.ready(t); len(got) != 1 || old[slices.Collect(maps.Keys(got))[0]].ID == "" {
		t.Errorf("another worker's fresh member was not left alone: %+v", got)
	}
	f.store.editPool(func(m *core.PoolMember) { m.Age = time.Hour })
	f.tend(t)
	for ref := range f.ready(t) {
		if old[ref].ID != "" {
			t.Error("a member with other limits is still in the pool")
		}
	}
}

// renewed is a host whose image was replaced a moment ago.
type renewed struct {
	*docker.Runtime
	since atomic.Bool
}

func (r *renewed) Fingerprint(ctx context.Context, spec sandbox.Spec) (string, error) {
	made, err := r.Runtime.Fingerprint(ctx, spec)
	if r.since.Load() {
		made += " and newer"
	}
	return made, err
}

func TestPool_AnImageThatWasReplacedAMomentAgoIsNotServed(t *testing.T) {
	t.Parallel()
	var host renewed
	f := withPool(t, 1, func(o *sandbox.Options) {
		host.Runtime = o.Runtime.(*docker.Runtime)
		o.Runtime = &host
	})
	old := f.ready(t)
	host.since.Store(true)
	f.turn(t, f.claim, "true")
	if box := f.store.box(t, f.claim.Session.ID); old[box.RuntimeRef].ID != "" || box.Generation != 2 {
		t.Errorf("the session got %+v", box)
	}
}

func TestPool_GivesWayToSessions(t *testing.T) {
	t.Parallel()
	f := withPool(t, 2, func(o *sandbox.Options) { o.MaxRunning = 2 })
	first := f.reclaim(f.claim)
	f.turn(t, first, "echo work > new.txt")
	f.store.own(first.Session.ID, "")
	f.tend(t) // one member and one session fill the host
	if got := len(f.ready(t)); got != 1 {
		t.Fatalf("%d members beside a session, want 1", got)
	}
	// A rebuild needs a container of its own: the member goes, not the session that could be stopped.
	other := f.newClaim()
	f.store.put(core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: other.Session.ID, State: core.SandboxFailed, Generation: 1})
	f.turn(t, other, "true")
	if box := f.store.box(t, first.Session.ID); box.State != core.SandboxReady {
		t.Errorf("the idle session is %s, want ready", box.State)
	}
	f.tend(t)
	if got := len(f.ready(t)); got != 0 {
		t.Errorf("%d members on a full host", got)
	}
	if list, err := f.runtime.List(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("%d containers, %v, want those of the two sessions", len(list), err)
	}
}

func TestPool_NothingReachesOutOfAMember(t *testing.T) {
	t.Parallel()
	f := withPool(t, 1)
	for ref := range f.ready(t) {
		links := dockertest.Docker(t, "exec", ref, "bash", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1")
		if strings.TrimSpace(links) != "lo" {
			t.Errorf("interfaces %q", links)
		}
		out := dockertest.Docker(t, "exec", ref, "bash", "-c", "timeout 3 bash -c 'exec 3<>/dev/tcp/example.com/80' 2>/dev/null; echo $?")
		if out == "0" {
			t.Error("a member that nobody claimed reached example.com")
		}
	}
}

func TestPool_IsKeptFullWhileAWorkerRunsAndDrainedAtItsEnd(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.Warm = 1 })
	ctx, end := context.WithCancel(t.Context())
	var worker sync.WaitGroup
	worker.Go(func() { f.Run(ctx) })
	defer worker.Wait()
	defer end()
	eventually(t, "the pool is filled", func() bool { return len(f.ready(t)) == 1 })
	first := f.ready(t)
	f.turn(t, f.claim, "true")
	if box := f.store.box(t, f.claim.Session.ID); first[box.RuntimeRef].ID == "" {
		t.Error("the session did not get the member")
	}
	eventually(t, "the pool is filled again", func() bool { return len(f.ready(t)) == 1 })
	end()
	worker.Wait()
	if got := f.members(t); len(got) != 0 {
		t.Errorf("rows left: %+v", got)
	}
	list, err := f.runtime.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Ref != f.store.box(t, f.claim.Session.ID).RuntimeRef {
		t.Errorf("containers left: %+v, %v, want the session's", list, err)
	}
}
