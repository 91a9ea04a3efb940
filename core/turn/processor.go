package turn

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"agent-sandboxing/core"
)

// Times of the queue: a lease outlives three missed heartbeats.
const (
	leaseTime     = 20 * time.Second
	heartbeatTime = 5 * time.Second
	reapTime      = 5 * time.Second
	pollTime      = time.Second
	// finalTime bounds the writes after a turn, which no cancellation reaches.
	finalTime = 90 * time.Second
)

// Options are the processor's dependencies; all but Network, Budgets and Ready are required.
type Options struct {
	Store     Store
	Sandboxes Sandboxes
	Agent     Agent
	Mirror    Mirror
	Publisher Publisher
	Signals   Signals
	Redactor  Redactor
	// Network is nil where sandboxes reach nothing.
	Network Network
	// Budgets cap the money of sessions and of persons; none by default.
	Budgets core.Budgets
	// Worker is how this process appears in the table; its Capacity, how many sessions are served at
	// once, is fixed, its host may become known later.
	Worker func() core.Worker
	// Ready says whether a turn could run at all. While it cannot, nothing is claimed and messages stay
	// queued; nil means always.
	Ready func() bool
	Log   *slog.Logger
}

// Processor claims sessions and serves what waits in them.
type Processor struct {
	Options
	slots  chan struct{}
	served sync.WaitGroup
}

// NewProcessor makes a processor; Run starts it.
func NewProcessor(o Options) *Processor {
	if o.Network == nil {
		o.Network = noNetwork{}
	}
	return &Processor{Options: o, slots: make(chan struct{}, max(1, o.Worker().Capacity))}
}

// Run serves until ctx ends, then lets every turn write its end and returns.
func (p *Processor) Run(ctx context.Context) error {
	defer p.served.Wait()
	p.served.Go(func() { p.reap(ctx) })
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		p.claimAll(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
		case <-p.Signals.Work():
		}
	}
}

// claimAll fills the free slots with sessions until none is waiting.
func (p *Processor) claimAll(ctx context.Context) {
	for ctx.Err() == nil && (p.Ready == nil || p.Ready()) {
		select {
		case p.slots <- struct{}{}:
		default:
			return
		}
		claim, err := p.Store.Claim(ctx, p.Worker(), leaseTime, p.Budgets)
		if err != nil {
			<-p.slots
			if !errors.Is(err, core.ErrNoWork) && ctx.Err() == nil {
				p.Log.ErrorContext(ctx, "claim", "error", err)
			}
			return
		}
		if p.Ready != nil && !p.Ready() { // it went away meanwhile: the message waits like those after it
			p.giveBack(ctx, claim)
			<-p.slots
			return
		}
		p.served.Go(func() {
			defer func() { <-p.slots }()
			p.serve(ctx, claim)
		})
	}
}

// giveBack ends the lease of a session.
func (p *Processor) giveBack(ctx context.Context, claim core.Claim) {
	end, done := final(ctx)
	defer done()
	if err := p.Store.Release(end, claim.Lease); err != nil && !errors.Is(err, core.ErrLeaseLost) {
		p.Log.ErrorContext(end, "release", "error", err, "session_id", claim.Session.ID)
	}
}

// serve does the one thing that was claimed and gives the session back.
func (p *Processor) serve(parent context.Context, claim core.Claim) {
	log := p.Log.With("session_id", claim.Session.ID)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	defer cancel(nil)
	stopWatching := context.AfterFunc(parent, func() { cancel(core.ErrShutdown) })
	defer stopWatching()

	var beat sync.WaitGroup
	quiet, stopBeat := context.WithCancel(context.WithoutCancel(parent))
	beat.Go(func() { p.heartbeat(quiet, claim.Lease, cancel) })
	defer func() {
		stopBeat()
		beat.Wait()
		p.giveBack(ctx, claim)
	}()

	switch {
	case claim.Publication != nil:
		p.servePublication(ctx, claim, log)
	case claim.Message != nil:
		p.serveMessage(ctx, claim, log.With("message_id", claim.Message.ID))
	}
}

// heartbeat keeps the lease and watches for a cancel, until ctx ends.
func (p *Processor) heartbeat(ctx context.Context, lease core.Lease, cancel context.CancelCauseFunc) {
	changed, stop := p.Signals.Changed(lease.SessionID)
	defer stop()
	beat, poll := time.NewTicker(heartbeatTime), time.NewTicker(pollTime)
	defer beat.Stop()
	defer poll.Stop()
	for {
		var cancelled bool
		var err error
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			cancelled, err = p.Store.Heartbeat(ctx, lease, leaseTime)
		case <-poll.C:
			cancelled, err = p.Store.CancelRequested(ctx, lease)
		case <-changed:
			cancelled, err = p.Store.CancelRequested(ctx, lease)
		}
		switch {
		case errors.Is(err, core.ErrLeaseLost):
			cancel(core.ErrLeaseLost)
			return
		case cancelled:
			cancel(core.ErrCancelledByUser)
		}
	}
}

// reap ends the leases that dead workers left, until ctx ends.
func (p *Processor) reap(ctx context.Context) {
	tick := time.NewTicker(reapTime)
	defer tick.Stop()
	for {
		if n, err := p.Store.Reap(ctx); err != nil && ctx.Err() == nil {
			p.Log.ErrorContext(ctx, "reap", "error", err)
		} else if n > 0 {
			p.Log.WarnContext(ctx, "reaped expired leases", "sessions", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// servePublication performs a publish that a person asked for.
func (p *Processor) servePublication(ctx context.Context, claim core.Claim, log *slog.Logger) {
	ws, err := p.Sandboxes.Acquire(ctx, claim)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, core.ErrLeaseLost) || errors.Is(cause, core.ErrShutdown) {
			return // the row keeps its step; the next claim goes on from there
		}
		end, done := final(ctx)
		defer done()
		log.WarnContext(end, "publish", "code", core.CodeOf(err), "error", err)
		if err := p.Publisher.Fail(end, claim, *claim.Publication, errors.Join(context.Cause(ctx), err)); err != nil {
			log.ErrorContext(end, "record failed publish", "error", err)
		}
		return
	}
	defer p.Sandboxes.Release(context.WithoutCancel(ctx), claim, ws)
	result, err := p.Publisher.Publish(ctx, claim, *claim.Publication, ws)
	if err != nil {
		log.WarnContext(ctx, "publish", "code", core.CodeOf(err), "error", err)
	}
	if result.Merged == 0 || errors.Is(context.Cause(ctx), core.ErrLeaseLost) {
		return
	}
	end, done := final(ctx) // what others pushed is in the work tree now, or will be
	defer done()
	if _, err := p.captureDiff(end, claim, core.Message{}, ws); err != nil {
		p.captureFailed(end, claim, core.Message{}, "diff", err, log)
	}
}

// final is a context for the writes that end something: cancellation does not reach it, time does.
func final(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), finalTime)
}
