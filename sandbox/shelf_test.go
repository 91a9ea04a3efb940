package sandbox_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/toolbox/server"
)

// shelf is a Runtime whose containers are toolboxes in this process, on folders: quick enough for
// hundreds of races, and it fails when it is told to. Its promises are those of sandbox.Runtime.
type shelf struct {
	dir string

	mu         sync.Mutex
	containers map[string]*shelved
	volumes    map[string]sandbox.Volume
	refuse     func(verb, ref string) error // nil refuses nothing
	mixed      int                          // attaches while another was open
	most       map[core.SessionID]int       // how many containers of a session ran at once
	space      sandbox.Space
	slow       func() // before and after each verb
}

// shelved is one container. work is held while it is started or stopped, one after the other.
type shelved struct {
	work   sync.Mutex
	status sandbox.Status
	stdio  *stdio
	stop   context.CancelFunc
	ended  chan struct{}
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{dir: t.TempDir(), containers: map[string]*shelved{}, volumes: map[string]sandbox.Volume{}, most: map[core.SessionID]int{}, slow: func() {}}
	t.Cleanup(func() {
		for _, c := range s.list() {
			_ = s.Stop(context.Background(), c.Ref)
		}
	})
	return s
}

// setRefuse makes verbs fail from now on.
func (s *shelf) setRefuse(refuse func(verb, ref string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

func (s *shelf) failing(verb, ref string) error {
	if s.refuse == nil {
		return nil
	}
	return s.refuse(verb, ref)
}

func gone() error { return core.Fail(core.Unavailable, "sandbox_lost", "Gone.") }

func (s *shelf) Host(context.Context) (string, error) { return "shelf", nil }

func (s *shelf) Capabilities(context.Context) (sandbox.Capabilities, error) {
	return sandbox.Capabilities{Runtime: "shelf", RuntimeKnown: true, ImageReady: true, DiskBudget: sandbox.BudgetSampled}, nil
}

func (s *shelf) Space(context.Context) (sandbox.Space, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.space, nil
}

func (s *shelf) Fingerprint(context.Context, sandbox.Spec) (string, error) { return "shelf", nil }

func (s *shelf) Create(ctx context.Context, spec sandbox.Spec) (string, error) {
	s.slow()
	defer s.slow()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failing("create", ""); err != nil {
		return "", err
	}
	ref := string(spec.Sandbox) + "-" + string(rune('a'+spec.Generation))
	if c := s.containers[ref]; c != nil {
		return ref, nil
	}
	name := spec.Volume
	if name == "" {
		name = ref
		s.volumes[name] = sandbox.Volume{Name: name, Session: spec.Session, Sandbox: spec.Sandbox}
		if err := os.MkdirAll(filepath.Join(s.dir, name), 0o755); err != nil {
			return "", err
		}
	} else if _, ok := s.volumes[name]; !ok {
		return "", core.Fail(core.Unavailable, "volume_lost", "Gone.")
	}
	s.containers[ref] = &shelved{stdio: newStdio(), status: sandbox.Status{
		Ref: ref, Session: spec.Session, Sandbox: spec.Sandbox, Generation: spec.Generation, Purpose: sandbox.PurposeSession, Volume: name,
	}}
	return ref, nil
}

func (s *shelf) Attach(_ context.Context, ref string) (sandbox.Stream, error) {
	s.slow()
	defer s.slow()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[ref]
	if c == nil {
		return nil, gone()
	}
	ours, theirs := net.Pipe()
	wire := c.stdio
	if !wire.plug(theirs) {
		s.mixed++
	}
	return attached{Conn: ours, detach: func() { wire.unplug(theirs) }}, nil
}

// container is one with its work taken, unless it is gone or the verb is to fail.
func (s *shelf) container(verb, ref string) (*shelved, error) {
	s.mu.Lock()
	c, err := s.containers[ref], s.failing(verb, ref)
	s.mu.Unlock()
	if c == nil {
		return nil, gone()
	}
	if err != nil {
		return nil, err
	}
	c.work.Lock()
	return c, nil
}

func (s *shelf) Start(ctx context.Context, ref string) error {
	s.slow()
	defer s.slow()
	c, err := s.container("start", ref)
	if err != nil {
		return err
	}
	defer c.work.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.status.Running || s.containers[ref] != c {
		return nil
	}
	tmp := filepath.Join(s.dir, "tmp-"+ref)
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	files, err := server.OpenFiles(server.Layout{Workspace: filepath.Join(s.dir, c.status.Volume), Tmp: tmp})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop, c.ended, c.status.Running = stop, make(chan struct{}), true
	running := 0
	for _, other := range s.containers {
		if other.status.Running && other.status.Session == c.status.Session {
			running++
		}
	}
	s.most[c.status.Session] = max(s.most[c.status.Session], running)
	stream := c.stdio
	go func() {
		defer close(c.ended)
		_ = server.Serve(run, stream, files, programs{}, nil) // however it ends
		_ = files.Close()
	}()
	return nil
}

func (s *shelf) Stop(_ context.Context, ref string) error {
	s.slow()
	defer s.slow()
	c, err := s.container("stop", ref)
	if err != nil {
		return err
	}
	defer c.work.Unlock()
	s.mu.Lock()
	was := c.status.Running
	c.status.Running = false
	s.mu.Unlock()
	if was {
		c.stop()
		<-c.ended
		s.mu.Lock()
		c.stdio = newStdio()
		s.mu.Unlock()
	}
	return nil
}

func (s *shelf) Remove(ctx context.Context, ref string, volume bool) error {
	if err := s.Stop(ctx, ref); core.CodeOf(err) == "sandbox_lost" {
		return nil
	} else if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[ref]
	if c == nil {
		return nil
	}
	if c.status.Running { // started between the two
		return core.Fail(core.Internal, "runtime_failed", "It runs.")
	}
	delete(s.containers, ref)
	if volume {
		delete(s.volumes, c.status.Volume)
	}
	return nil
}

func (s *shelf) Inspect(_ context.Context, ref string) (sandbox.Status, error) {
	s.slow()
	defer s.slow()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.containers[ref]; c != nil {
		return c.status, nil
	}
	return sandbox.Status{}, gone()
}

func (*shelf) OutOfMemory(context.Context, string, time.Duration) (bool, error) { return false, nil }

func (s *shelf) List(context.Context) ([]sandbox.Status, error) {
	s.slow()
	defer s.slow()
	return s.list(), nil
}

func (s *shelf) list() []sandbox.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []sandbox.Status
	for _, c := range s.containers {
		list = append(list, c.status)
	}
	return list
}

func (s *shelf) Volumes(context.Context) ([]sandbox.Volume, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []sandbox.Volume
	for _, v := range s.volumes {
		list = append(list, v)
	}
	return list, nil
}

func (s *shelf) RemoveVolume(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes, name)
	return nil
}

// attached is the service's end of an attach.
type attached struct {
	net.Conn
	detach func()
}

func (a attached) Close() error {
	a.detach()
	return a.Conn.Close()
}

func (attached) Stderr() []byte { return nil }

// stdio is a container's standard input and output: it outlives the attaches, one at a time.
type stdio struct {
	mu      sync.Mutex
	changed *sync.Cond
	conn    net.Conn // of the open attach
	closed  bool
}

func newStdio() *stdio {
	s := &stdio{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// plug makes conn the attach; false when another was open, which is cut off.
func (s *stdio) plug(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.conn
	s.conn = conn
	s.changed.Broadcast()
	if old == nil {
		return true
	}
	_ = old.SetDeadline(time.Now())
	return false
}

func (s *stdio) unplug(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		s.conn = nil
	}
	_ = conn.Close()
}

func (s *stdio) Read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		for s.conn == nil && !s.closed {
			s.changed.Wait()
		}
		conn, closed := s.conn, s.closed
		s.mu.Unlock()
		if closed {
			return 0, io.EOF
		}
		if n, err := conn.Read(p); err == nil {
			return n, nil
		}
		s.unplug(conn) // detached; the next attach may come
	}
}

// Write sends to the attach, or nowhere.
func (s *stdio) Write(p []byte) (int, error) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		if _, err := conn.Write(p); err != nil {
			s.unplug(conn)
		}
	}
	return len(p), nil
}

func (s *stdio) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.conn != nil {
		_ = s.conn.Close()
	}
	s.changed.Broadcast()
	return nil
}

// programs runs the platform's own programs on the host, and no commands.
type programs struct{}

func (programs) Run(context.Context, server.Shell, io.Writer) (server.Exit, error) {
	return server.Exit{}, errors.New("no commands here")
}

func (programs) Program(ctx context.Context, p server.Program) (server.Exit, error) {
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout = p.Dir, append([]string{"PATH=" + os.Getenv("PATH")}, p.Env...), p.Stdout
	if p.Stdin != nil {
		cmd.Stdin = p.Stdin
	}
	err := cmd.Run()
	if p.Stdin != nil {
		_ = p.Stdin.Close()
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok || err == nil {
		return server.Exit{Code: cmd.ProcessState.ExitCode(), Interrupted: ctx.Err() != nil}, nil
	}
	return server.Exit{}, err
}

func (programs) KillAll() int { return 0 }
