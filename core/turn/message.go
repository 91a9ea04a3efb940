package turn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"agent-sandboxing/core"
)

// How much of the past the agent is given.
const (
	conversationTexts = 10
	activityLines     = 30
	guidanceBytes     = 8 << 10
)

// codeNotQueued says that a message was taken back before it began.
const codeNotQueued = "not_queued"

// serveMessage prepares the sandbox while the message is still queued, then runs the turn.
func (p *Processor) serveMessage(ctx context.Context, claim core.Claim, log *slog.Logger) {
	msg := *claim.Message
	ws, err := p.Sandboxes.Acquire(ctx, claim)
	if err != nil {
		p.failQueued(ctx, claim, msg, err, log)
		return
	}
	defer p.Sandboxes.Release(context.WithoutCancel(ctx), claim, ws)
	if ctx.Err() != nil {
		p.failQueued(ctx, claim, msg, context.Cause(ctx), log)
		return
	}
	started, err := p.start(ctx, claim, msg)
	if err != nil {
		p.failQueued(ctx, claim, msg, err, log)
		return
	}
	p.turn(ctx, claim, started, ws, log)
}

// start makes the message a working one. A cancel in this moment must not leave open whether it works:
// nobody would write its end.
func (p *Processor) start(ctx context.Context, claim core.Claim, msg core.Message) (core.Message, error) {
	whole, done := final(ctx)
	defer done()
	return p.Store.StartMessage(whole, claim.Lease, msg.ID, p.Agent.Model())
}

// failQueued ends a message that never started. A lost lease and a shutdown leave it queued, to be
// prepared again; a cancel has ended it already.
func (p *Processor) failQueued(ctx context.Context, claim core.Claim, msg core.Message, cause error, log *slog.Logger) {
	end, done := final(ctx)
	defer done()
	if stopped := context.Cause(ctx); stopped != nil || errors.Is(cause, core.ErrLeaseLost) || core.CodeOf(cause) == codeNotQueued {
		log.InfoContext(end, "preparation stopped", "cause", cmp.Or(stopped, cause))
		return
	}
	code := core.CodeOf(cause)
	log.WarnContext(end, "preparation failed", "code", code, "error", cause)
	err := p.Store.FailQueued(end, claim.Lease, msg.ID, code, core.MessageOf(cause))
	if err != nil && !errors.Is(err, core.ErrLeaseLost) && core.CodeOf(err) != codeNotQueued {
		log.ErrorContext(end, "fail queued message", "error", err)
	}
}

// turn runs the agent on a working message and writes its end, whatever happens.
func (p *Processor) turn(ctx context.Context, claim core.Claim, msg core.Message, ws core.PlatformWorkspace, log *slog.Logger) {
	defer p.Network.Begin(claim.Session.ID, msg.ID)()
	rec := newRecorder(p, claim, msg)
	result, runErr := p.runAgent(ctx, claim, msg, ws, rec)
	partial := rec.close()

	if errors.Is(context.Cause(ctx), core.ErrLeaseLost) || errors.Is(runErr, core.ErrLeaseLost) {
		log.WarnContext(ctx, "turn lost its lease")
		return
	}
	f := outcome(context.Cause(ctx), runErr, result, partial)
	f.MessageID = msg.ID
	f.Changed = p.capture(ctx, claim, msg, ws, log)
	end, done := final(ctx) // what a sandbox that hangs has taken of the time is not taken from this
	defer done()
	p.Network.Flush(end, claim.Session.ID)
	if f.State == core.Failed {
		log.WarnContext(end, "turn failed", "code", f.FailureCode, "error", runErr)
	}
	if err := p.finish(end, claim.Lease, f); err != nil {
		log.ErrorContext(end, "finish message", "error", err)
		return
	}
	p.compact(ctx, claim, msg, f, ws, rec, log)
}

// finish writes the end of a turn, again while the database does not answer: a restart of it must not
// cost the answer. Should all fail, the lease runs out and the reaper ends the message.
func (p *Processor) finish(ctx context.Context, lease core.Lease, f core.Finish) error {
	again := time.NewTicker(pollTime)
	defer again.Stop()
	for {
		err := p.Store.FinishMessage(ctx, lease, f)
		if core.KindOf(err) != core.Unavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// runAgent composes the turn's context from records and runs the loop.
func (p *Processor) runAgent(ctx context.Context, claim core.Claim, msg core.Message, ws core.PlatformWorkspace, rec *recorder) (core.TurnResult, error) {
	s := claim.Session
	conversation, err := p.Store.Conversation(ctx, s.ID, msg.ID, conversationTexts)
	if err != nil {
		return core.TurnResult{}, err
	}
	activity, err := p.Store.Activity(ctx, s.ID, activityLines)
	if err != nil {
		return core.TurnResult{}, err
	}
	changed, err := p.Store.LatestDiff(ctx, s.ID)
	if err != nil {
		return core.TurnResult{}, err
	}
	state, err := p.workspaceState(ctx, s, changed)
	if err != nil {
		return core.TurnResult{}, err
	}
	if s.Summary, err = p.catchUp(ctx, claim, state); err != nil {
		return core.TurnResult{}, err
	}
	if state.GuidanceFile, state.Guidance, err = p.guidance(ctx, s); err != nil {
		return core.TurnResult{}, err
	}
	req := core.TurnRequest{
		SessionID: s.ID, MessageID: msg.ID, Profile: "main", Policy: s.BashPolicy,
		Summary: s.Summary, Conversation: conversation, Activity: activity, Request: msg.Text, Workspace: state, Limits: msg.Limits,
	}
	watched := watchedWorkspace{Workspace: ws, network: p.Network, session: s.ID}
	return p.Agent.Run(ctx, req, watched, agentPublisher{p: p, claim: claim, message: msg, workspace: ws}, rec)
}

// workspaceState is what the records say of the session's workspace.
func (p *Processor) workspaceState(ctx context.Context, s core.ChatSession, changed []core.ChangedFile) (core.WorkspaceState, error) {
	pr, err := p.Store.PullRequest(ctx, s.ID)
	return core.WorkspaceState{
		Repository: s.Repository.FullName(), Branch: s.Branch, BaseBranch: s.BaseBranch, BaseSHA: s.BaseSHA,
		Changed: changed, PullRequest: describe(pr), Network: p.policy(ctx, s),
	}, err
}

// guidance reads what the repository tells agents, at the base commit: what the session's agent writes
// there takes no effect in its own session.
func (p *Processor) guidance(ctx context.Context, s core.ChatSession) (file, text string, err error) {
	for _, file := range []string{"AGENTS.md", "CLAUDE.md"} {
		data, err := p.Mirror.ReadBase(ctx, s, file, guidanceBytes)
		if err != nil {
			return "", "", err
		}
		if len(bytes.TrimSpace(data)) > 0 {
			return file, string(data), nil
		}
	}
	return "", "", nil
}

// outcome decides the terminal state from why the context ended, then from the loop's error.
func outcome(cause, runErr error, result core.TurnResult, partial string) core.Finish {
	f := core.Finish{State: core.Completed, Answer: result.Answer, Result: result}
	if runErr == nil && cause == nil {
		return f
	}
	if f.Answer == "" {
		f.Answer = partial
	}
	switch {
	case runErr == nil: // it had finished before the cancel came
		return f
	case errors.Is(cause, core.ErrCancelledByUser):
		f.State = core.Cancelled
	case errors.Is(cause, core.ErrShutdown):
		f.State, f.FailureCode = core.Failed, "worker_stopped"
		f.FailureText = "The worker was stopped during this turn. The changes so far are kept; send a new message to continue."
	default:
		f.State, f.FailureCode, f.FailureText = core.Failed, core.CodeOf(runErr), core.MessageOf(runErr)
	}
	return f
}

// agentPublisher is the agent's whole power over GitHub, bound to its own session.
type agentPublisher struct {
	p         *Processor
	claim     core.Claim
	message   core.Message
	workspace core.PlatformWorkspace
}

// PublishPullRequest publishes the work tree as it is now.
func (a agentPublisher) PublishPullRequest(ctx context.Context, title, body string) (core.PublishResult, error) {
	a.p.Network.Flush(ctx, a.claim.Session.ID) // the pull request's text tells of it
	id := core.NewID[core.PublicationID]()
	return a.p.Publisher.Publish(ctx, a.claim, core.Publication{
		ID: id, SessionID: a.claim.Session.ID, MessageID: a.message.ID, RequestedBy: a.claim.Session.OwnerID,
		ClientKey: string(id), Title: title, Body: body, Draft: true, Step: core.PublishRequested,
	}, a.workspace)
}
