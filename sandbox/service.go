package sandbox

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// killWithin bounds what is spent on ending a container that may not answer, and settleWithin the
// last writes about a sandbox after its turn was cancelled.
const (
	killWithin   = 2 * time.Second
	settleWithin = 10 * time.Second
)

// codeUnavailable says that the runtime does not answer.
const codeUnavailable = "runtime_unavailable"

// Options are what a Service is made of.
type Options struct {
	Runtime Runtime
	Store   Store
	Source  Source
	Log     *slog.Logger
	Limits  Limits
	// Network carries the connections of programs in sandboxes; nil lets none out.
	Network Network
	// Idle is how long a sandbox may run unused; 0 means 30 minutes.
	Idle time.Duration
	// MaxRunning bounds the running sandboxes of this host; 0 means no bound.
	MaxRunning int
	// Warm is how many sandboxes of this host run ahead of sessions; 0 means none.
	Warm int
	// MaxAge is how old a container may be when a message comes; then a new one takes its place on the
	// same volume. 0 means 24 hours.
	MaxAge time.Duration
	// DiskReserve is what the host's disk must have left for a new workspace, in bytes; a quarter of it
	// lets a kept one go on. 0 means no reserve.
	DiskReserve int64
	// RoomWait is how long a session waits for room below that bound; 0 means 10 minutes.
	RoomWait time.Duration
}

// Service keeps one sandbox per session: it makes it, finds it again, rebuilds it when it is lost and
// stops it when nobody needs it. Several may work on one host and one database.
type Service struct {
	runtime    Runtime
	store      Store
	source     Source
	log        *slog.Logger
	limits     Limits
	network    Network
	idle       time.Duration
	maxRunning int
	warm       int
	maxAge     time.Duration
	reserve    int64
	roomWait   time.Duration
	sessions   gate
	stops      retries
	orphans    suspects
	patience   time.Duration
	heard      atomic.Pointer[heard] // nil until a sandbox was started

	claimed chan struct{} // holds one token when the pool lacks a member
	current atomic.Value  // string: what the pool's members were last to be made with
	cold    atomic.Int32  // containers that sessions wait for

	away     atomic.Bool // the runtime did not answer when it was last asked
	mu       sync.Mutex
	where    *place
	starting int // sandboxes that were given room and do not run yet
}

// place is the host as it is written into each row.
type place struct{ host, runtime string }

// New makes a Service. Run does its housekeeping.
func New(o Options) *Service {
	return &Service{
		runtime:    o.Runtime,
		store:      o.Store,
		source:     o.Source,
		log:        o.Log,
		limits:     o.Limits,
		network:    o.Network,
		idle:       cmp.Or(o.Idle, 30*time.Minute),
		maxRunning: o.MaxRunning,
		warm:       o.Warm,
		claimed:    make(chan struct{}, 1),
		maxAge:     cmp.Or(o.MaxAge, 24*time.Hour),
		reserve:    o.DiskReserve,
		roomWait:   cmp.Or(o.RoomWait, 10*time.Minute),
		patience:   orphanPatience,
		sessions:   gate{held: map[core.SessionID]chan struct{}{}},
		stops:      retries{failed: map[core.SandboxID]retry{}},
	}
}

// Acquire makes the session's sandbox ready and attaches to it. Its errors are core.Errors whose code
// ends the message, or the cause of ctx when that ended first. The row is consistent afterwards in
// every case: ready with the workspace returned, or failed with the code.
func (s *Service) Acquire(ctx context.Context, claim core.Claim) (core.PlatformWorkspace, error) {
	unlock, err := s.sessions.lock(ctx, claim.Session.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p := provision{Service: s, claim: claim, began: time.Now()}
	ws, err := p.run(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		p.fail(ctx, err)
		if core.CodeOf(err) == codeUnavailable {
			s.away.Store(true)
		}
		return nil, err
	}
	return ws, nil
}

// Answers is false from the moment at which the runtime did not answer until it does again, as Run
// finds out. What waits for a sandbox should go on waiting meanwhile.
func (s *Service) Answers() bool { return !s.away.Load() }

// ask looks whether the runtime answers.
func (s *Service) ask(ctx context.Context) (Capabilities, error) {
	offers, err := s.runtime.Capabilities(ctx)
	if ctx.Err() == nil {
		s.away.Store(core.CodeOf(err) == codeUnavailable)
	}
	return offers, err
}

// Status is what this worker shows of its sandbox host.
func (s *Service) Status(ctx context.Context) core.WorkerStatus {
	offers, err := s.ask(ctx)
	if err != nil {
		return core.WorkerStatus{Docker: core.MessageOf(err)}
	}
	status := core.WorkerStatus{Docker: "ok", Runtime: offers.Runtime, Image: offers.ImageRef}
	switch {
	case !offers.RuntimeKnown:
		status.Docker = "Docker does not know the runtime " + offers.Runtime + "."
	case !offers.ImageReady:
		status.Docker = "The sandbox image is not on the Docker host."
	}
	if status.RunningBoxes, err = s.running(ctx); err != nil {
		status.Docker = core.MessageOf(err)
	}
	return status
}

// here asks the runtime once where it is and what it runs with.
func (s *Service) here(ctx context.Context) (place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.where != nil {
		return *s.where, nil
	}
	host, err := s.runtime.Host(ctx)
	if err != nil {
		return place{}, err
	}
	offers, err := s.runtime.Capabilities(ctx)
	if err != nil {
		return place{}, err
	}
	s.where = &place{host: host, runtime: offers.Runtime}
	return *s.where, nil
}

// terms are those of a connection to a session's container. Its budget is what the toolbox holds the
// workspace to; the kernel's quota, where there is one, is the same and comes first.
func (s *Service) terms(ref string) toolbox.Options {
	return toolbox.Options{
		Budget:      toolbox.Budget{Bytes: s.limits.DiskBytes, Entries: s.limits.Inodes, MinFree: s.reserve / 8 * endEighths},
		OutOfMemory: s.memoryMet(ref),
	}
}

// memoryMet tells a toolbox what it cannot see itself: that a command was killed for want of memory.
func (s *Service) memoryMet(ref string) func(context.Context, time.Duration) int64 {
	return func(ctx context.Context, within time.Duration) int64 {
		met, err := s.runtime.OutOfMemory(ctx, ref, within)
		if err != nil {
			s.log.WarnContext(ctx, "ask why a command was killed", "error", err)
		}
		if !met {
			return 0
		}
		return s.limits.MemoryBytes
	}
}

// halt kills a container that is of no use any more, within 2 s or not at all: whatever comes next
// uses another one.
func (s *Service) halt(ctx context.Context, ref string) {
	if ref == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWithin)
	defer cancel()
	if err := s.runtime.Stop(ctx, ref); err != nil && core.CodeOf(err) != "sandbox_lost" {
		s.log.WarnContext(ctx, "stop useless container", "error", err)
	}
}

// changed is the event of a row's new state.
func changed(box core.Sandbox) core.SandboxChanged {
	return core.SandboxChanged{
		State:      box.State,
		SandboxID:  box.ID,
		Generation: box.Generation,
		Image:      box.Image,
		Runtime:    box.Runtime,
		Code:       box.FailureCode,
		Message:    box.FailureText,
	}
}
