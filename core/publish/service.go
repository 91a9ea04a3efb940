package publish

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"agent-sandboxing/core"
)

// Options of a Service.
type Options struct {
	Store        Store
	Mirror       Mirror
	Tokens       Tokens
	PullRequests PullRequests
	Access       Access
	Bot          func() Identity     // of the commits that are made now
	PublicURL    string              // of this installation, for links back
	NoreplyHost  string              // of the people's commit addresses; "" means users.noreply.github.com
	Redact       func(string) string // takes secrets out of texts; nil changes nothing
	TokenPause   time.Duration       // before a token that took the place of a refused one is used; 0 means 1.5 s
	Log          *slog.Logger
}

// Identity signs the commits.
type Identity struct {
	Name, Email string
}

// Service publishes. It is safe for concurrent use; the lease keeps one publish per session.
type Service struct {
	store        Store
	mirror       Mirror
	tokens       Tokens
	pullRequests PullRequests
	access       Access
	bot          func() Identity
	publicURL    string
	noreplyHost  string
	redact       func(string) string
	pause        time.Duration
	log          *slog.Logger
}

// maxWaits is how often one attempt waits for a rate limit, and the bounds are of one wait.
const (
	maxWaits    = 5
	minimumWait = time.Minute
	maximumWait = 70 * time.Minute
)

// tokenPause bridges the moment in which GitHub does not know a new token everywhere.
const tokenPause = 1500 * time.Millisecond

// finalTime bounds the writes that record an end.
const finalTime = 15 * time.Second

// New makes a Service.
func New(o Options) *Service {
	s := &Service{
		store: o.Store, mirror: o.Mirror, tokens: o.Tokens, pullRequests: o.PullRequests, access: o.Access,
		bot: o.Bot, publicURL: o.PublicURL, noreplyHost: o.NoreplyHost, redact: o.Redact,
		pause: cmp.Or(o.TokenPause, tokenPause), log: o.Log,
	}
	if s.noreplyHost == "" {
		s.noreplyHost = "users.noreply.github.com"
	}
	if s.redact == nil {
		s.redact = func(text string) string { return text }
	}
	return s
}

// Publish takes the attempt from the step its row says to its end, and records that end. A lost
// lease, a shutdown, or a cancel after the commit was recorded leave the row as it is: the next claim
// goes on from there. Even then Merged says what the workspace has got of others. Errors are core.Errors; those of its own are not_github_repository,
// installation_removed, nothing_to_publish, remote_changed, branch_rewritten, sync_conflict,
// branch_deleted, pull_request_closed, pull_request_merged, submodule_change_refused, workflow_permission_missing, file_too_large, too_many_files and
// publish_cancelled; the rest come from Access, Tokens, Mirror and PullRequests.
func (s *Service) Publish(ctx context.Context, claim core.Claim, p core.Publication, ws core.PlatformWorkspace) (core.PublishResult, error) {
	a := &attempt{Service: s, claim: claim, session: claim.Session, p: p}
	result, err := a.run(ctx, ws)
	if err == nil {
		s.log.InfoContext(ctx, "published", "session_id", a.session.ID, "outcome", a.p.Outcome, "number", result.Number)
		return result, nil
	}
	result = core.PublishResult{Merged: a.brought}
	switch cause := context.Cause(ctx); {
	case errors.Is(err, core.ErrLeaseLost):
		return result, err
	case errors.Is(cause, core.ErrCancelledByUser) && a.p.Step == core.PublishRequested:
		err = cancelled().Because(err)
	case errors.Is(cause, core.ErrCancelledByUser) && a.p.Step == core.PublishCommitted:
		return result, errors.Join(err, a.giveUp(ctx)) // pushed or not: the next claim looks
	case cause != nil:
		return result, err
	case core.KindOf(err) == core.RateLimited && a.p.Waits < maxWaits:
		return result, a.wait(ctx, err)
	}
	end, done := context.WithTimeout(context.WithoutCancel(ctx), finalTime)
	defer done()
	return result, errors.Join(err, s.Fail(end, claim, a.p, err))
}

func cancelled() *core.Error {
	return core.Fail(core.Conflict, "publish_cancelled", "The publish was cancelled before anything was sent to GitHub. Publish again when you like.")
}

// giveUp leaves word for the next claim that a person wanted no push. When it had been done all the same,
// the attempt is brought to its end.
func (a *attempt) giveUp(ctx context.Context) error {
	a.p.CancelRequestedAt = time.Now()
	end, done := context.WithTimeout(context.WithoutCancel(ctx), finalTime)
	defer done()
	return a.save(end, core.EventPublicationCancel)
}

// wait puts the attempt off until GitHub takes requests again; the claim of that time goes on from the
// step that it had reached. Its error says so.
func (a *attempt) wait(ctx context.Context, cause error) error {
	limit, _ := errors.AsType[*core.Error](cause)
	pause := max(minimumWait<<a.p.Waits, time.Until(limit.RetryAt)) // GitHub does not always say how long
	until := time.Now().Add(min(pause, maximumWait)).UTC().Truncate(time.Second)
	a.p.Waits++
	a.p.WaitingUntil = until
	a.p.WaitingReason = "GitHub's rate limit is used up. The publish goes on by itself after " + until.Format("15:04:05") + " UTC."
	end, done := context.WithTimeout(context.WithoutCancel(ctx), finalTime)
	defer done()
	err := a.store.SavePublication(end, a.claim.Lease, a.p, core.PublicationChanged{
		Type: core.EventPublicationWaiting, PublicationID: a.p.ID, CommitSHA: a.p.CommitSHA,
		Code: limit.Code, Message: a.p.WaitingReason, Until: &until,
	})
	waiting := core.Fail(core.RateLimited, limit.Code, a.p.WaitingReason).Because(cause)
	waiting.RetryAt = until
	return errors.Join(waiting, err)
}

// Fail records the end of an attempt that did not succeed.
func (s *Service) Fail(ctx context.Context, claim core.Claim, p core.Publication, cause error) error {
	if errors.Is(cause, core.ErrCancelledByUser) {
		cause = cancelled().Because(cause)
	}
	p.Step, p.FailureCode, p.FailureText, p.FinishedAt = core.PublishFailed, core.CodeOf(cause), core.MessageOf(cause), time.Now()
	return s.store.SavePublication(ctx, claim.Lease, p, core.PublicationChanged{
		Type: core.EventPublicationFailed, PublicationID: p.ID, CommitSHA: p.CommitSHA, Code: p.FailureCode, Message: p.FailureText,
	})
}
