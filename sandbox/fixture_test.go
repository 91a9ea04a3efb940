package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/sandboxtest"
)

// fixture is a service on real Docker with one session that a worker has claimed.
type fixture struct {
	*sandbox.Service
	runtime *docker.Runtime
	store   *rows
	source  *source
	claim   core.Claim
}

func setup(t testing.TB, change ...func(*sandbox.Options)) *fixture {
	t.Helper()
	f := &fixture{runtime: dockertest.New(t), store: newRows(), source: newSource(t)}
	options := sandbox.Options{
		Runtime: f.runtime,
		Store:   f.store,
		Source:  f.source,
		Log:     f.log(t),
		Limits:  sandbox.Limits{MemoryBytes: 512 << 20, CPUs: 1, PIDs: 256},
	}
	for _, c := range change {
		c(&options)
	}
	f.Service = sandbox.New(options)
	f.claim = f.newClaim()
	return f
}

func (f *fixture) log(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// newClaim leases a session of its own.
func (f *fixture) newClaim() core.Claim {
	id := core.NewID[core.SessionID]()
	return f.reclaim(core.Claim{Session: core.ChatSession{ID: id, Branch: core.BranchFor(id), BaseBranch: "main", BaseSHA: f.source.head}})
}

// reclaim leases the claim's session to another owner, as the next message would.
func (f *fixture) reclaim(claim core.Claim) core.Claim {
	claim.Lease = core.Lease{SessionID: claim.Session.ID, Owner: core.NewID[string]()}
	f.store.own(claim.Session.ID, claim.Lease.Owner)
	return claim
}

func (f *fixture) acquire(t *testing.T, claim core.Claim) core.PlatformWorkspace {
	t.Helper()
	ws, err := f.Acquire(t.Context(), claim)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	t.Cleanup(func() { _ = ws.(io.Closer).Close() }) // for tests that do not release it themselves
	return ws
}

// turn acquires, runs one shell text and releases; it returns what the command printed.
func (f *fixture) turn(t *testing.T, claim core.Claim, shell string) string {
	t.Helper()
	ws := f.acquire(t, claim)
	out := run(t, ws, shell)
	f.Release(t.Context(), claim, ws)
	return out
}

func run(t testing.TB, ws core.Workspace, shell string) string {
	t.Helper()
	result, err := ws.Run(t.Context(), core.Command{Shell: shell})
	if err != nil {
		t.Fatalf("run %q: %v", shell, err)
	}
	if result.Exit != 0 {
		t.Fatalf("run %q: exit %d: %s%s", shell, result.Exit, result.Head, result.Tail)
	}
	return strings.TrimSpace(string(result.Head) + string(result.Tail))
}

// rows is a sandbox.Store in memory with the promises of the real one.
type rows struct {
	mu         sync.Mutex
	boxes      map[core.SessionID]core.Sandbox
	owners     map[core.SessionID]string
	log        map[core.SessionID][]core.Payload
	used, made map[core.SessionID]time.Time
	pool       []core.PoolMember
	checkpoint map[core.SessionID][]core.Checkpoint // the newest last
	checkedOut map[core.SessionID]bool
	archived   map[core.SessionID]bool // nil in most tests
}

func newRows() *rows {
	return &rows{
		boxes: map[core.SessionID]core.Sandbox{}, owners: map[core.SessionID]string{}, log: map[core.SessionID][]core.Payload{},
		used: map[core.SessionID]time.Time{}, made: map[core.SessionID]time.Time{},
		checkpoint: map[core.SessionID][]core.Checkpoint{}, checkedOut: map[core.SessionID]bool{},
	}
}

// read is a row with its times; the caller holds mu.
func (r *rows) read(box core.Sandbox) core.Sandbox {
	box.LastUsedAt, box.Unused = r.used[box.SessionID], time.Since(r.used[box.SessionID])
	box.Age = time.Since(r.made[box.SessionID])
	return box
}

func (r *rows) LiveSandbox(_ context.Context, id core.SessionID) (*core.Sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if box, ok := r.boxes[id]; ok {
		box = r.read(box)
		return &box, nil
	}
	return nil, nil
}

func (r *rows) SaveSandbox(ctx context.Context, lease core.Lease, box core.Sandbox, events ...core.Payload) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[lease.SessionID] != lease.Owner {
		return core.ErrLeaseLost
	}
	if box.State == core.SandboxCreating || box.State == core.SandboxReady {
		r.used[box.SessionID] = time.Now()
	}
	return r.write(box, events)
}

func (r *rows) MarkSandbox(_ context.Context, box core.Sandbox, events ...core.Payload) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[box.SessionID] != "" {
		return false, nil
	}
	return true, r.write(box, events)
}

func (r *rows) write(box core.Sandbox, events []core.Payload) error {
	old := r.boxes[box.SessionID]
	if old.Generation > box.Generation {
		return core.Fail(core.Conflict, "sandbox_superseded", "A newer sandbox has taken this one's place.")
	}
	if old.Generation != box.Generation {
		r.made[box.SessionID] = time.Now()
	}
	box.StopRequestedAt = time.Time{}
	if box.Generation == old.Generation && (box.State == core.SandboxReady || box.State == core.SandboxCreating) {
		box.StopRequestedAt = old.StopRequestedAt
	}
	r.boxes[box.SessionID] = box
	r.log[box.SessionID] = append(r.log[box.SessionID], events...)
	for _, e := range events {
		if e.EventType() == (core.CheckoutCompleted{}).EventType() {
			r.checkedOut[box.SessionID] = true
		}
	}
	return nil
}

func (r *rows) CheckedOut(_ context.Context, id core.SessionID) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkedOut[id], nil
}

func (r *rows) Checkpoint(_ context.Context, id core.SessionID, back int) (*core.Checkpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if list := r.checkpoint[id]; back < len(list) {
		return &list[len(list)-1-back], nil
	}
	return nil, nil
}

func (r *rows) SaveCheckpoint(_ context.Context, lease core.Lease, c core.Checkpoint) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[lease.SessionID] != lease.Owner {
		return core.ErrLeaseLost
	}
	r.checkpoint[lease.SessionID] = append(r.checkpoint[lease.SessionID], c)
	box := r.boxes[lease.SessionID]
	box.Unsaved = false
	r.boxes[lease.SessionID] = box
	r.log[lease.SessionID] = append(r.log[lease.SessionID], core.CheckpointSaved{CheckpointID: c.ID, Missing: c.Info.Missing})
	return nil
}

func (r *rows) SandboxesOn(_ context.Context, host string) ([]core.Sandbox, error) {
	return r.list(func(box core.Sandbox) bool {
		return box.Host == host && box.State != core.SandboxFailed && box.State != core.SandboxStopped
	}), nil
}

func (r *rows) SandboxesByID(_ context.Context, ids []core.SandboxID) ([]core.Sandbox, error) {
	return r.list(func(box core.Sandbox) bool { return slices.Contains(ids, box.ID) }), nil
}

func (r *rows) DispensableVolumes(_ context.Context, host string) ([]core.Sandbox, error) {
	return r.list(func(box core.Sandbox) bool { return box.Host == host && r.archived[box.SessionID] && box.Volume != "" }), nil
}

func (r *rows) list(which func(core.Sandbox) bool) []core.Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []core.Sandbox
	for _, box := range r.boxes {
		if which(box) {
			list = append(list, r.read(box))
		}
	}
	slices.SortFunc(list, func(a, b core.Sandbox) int { return a.LastUsedAt.Compare(b.LastUsedAt) })
	return list
}

func (r *rows) HoldSession(_ context.Context, id core.SessionID, _ time.Duration) (core.Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[id] != "" {
		return core.Lease{}, core.ErrNoWork
	}
	r.owners[id] = core.NewID[string]()
	return core.Lease{SessionID: id, Owner: r.owners[id]}, nil
}

func (r *rows) Release(_ context.Context, lease core.Lease) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[lease.SessionID] != lease.Owner {
		return core.ErrLeaseLost
	}
	r.owners[lease.SessionID] = ""
	return nil
}

func (r *rows) own(id core.SessionID, owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[id] = owner
}

// change edits a row behind the service's back.
func (r *rows) change(id core.SessionID, edit func(*core.Sandbox)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	box := r.boxes[id]
	edit(&box)
	r.boxes[id] = box
}

func (r *rows) box(t *testing.T, id core.SessionID) core.Sandbox {
	t.Helper()
	box, err := r.LiveSandbox(t.Context(), id)
	if err != nil || box == nil {
		t.Fatalf("no sandbox row (%v)", err)
	}
	return *box
}

// types lists the session's events since the last call, with the code of those that have one.
func (r *rows) types(id core.SessionID) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var types []string
	for _, payload := range r.log[id] {
		text := string(payload.EventType())
		if change, ok := payload.(core.SandboxChanged); ok && change.Code != "" {
			text += " " + change.Code
		}
		types = append(types, text)
	}
	r.log[id] = nil
	return types
}

// source gives the one commit of a small repository, as the mirror would.
type source struct {
	dir, head string
	pack      []byte
	index     int64 // bytes of pack that are its index
	refuse    error
	hang      bool

	mu    sync.Mutex
	again []bool // what each checkout was told
}

func newSource(t testing.TB) *source {
	t.Helper()
	s := &source{dir: t.TempDir()}
	s.git(t, "init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(s.dir, "README.md"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.commit(t)
	return s
}

func (s *source) commit(t testing.TB) {
	t.Helper()
	s.git(t, "add", ".")
	s.git(t, "-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "files")
	s.head = strings.TrimSpace(s.git(t, "rev-parse", "HEAD"))
	s.pack, s.index = sandboxtest.Pack(t, s.dir, s.head)
}

func (s *source) git(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", s.dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *source) Checkout(_ context.Context, session core.ChatSession, again bool) (core.Checkout, io.ReadCloser, error) {
	s.mu.Lock()
	s.again = append(s.again, again)
	s.mu.Unlock()
	if s.refuse != nil {
		return core.Checkout{}, nil, s.refuse
	}
	spec := core.Checkout{BaseSHA: s.head, Branch: session.Branch, BaseRef: "main", RemoteURL: "https://github.example/octo/demo.git", IndexBytes: s.index}
	if s.hang {
		r, _ := io.Pipe()
		return spec, r, nil
	}
	return spec, io.NopCloser(bytes.NewReader(s.pack)), nil
}

// eventually waits until something outside this process is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if e, ok := errors.AsType[*core.Error](err); !ok || e.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
}

func wantTypes(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("events\n got %q\nwant %q", got, want)
	}
}

// all are the session's events since types was called.
func (r *rows) all(id core.SessionID) []core.Payload {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log[id])
}
