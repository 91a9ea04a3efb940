package publish

import (
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
	Bot          Identity
	PublicURL    string              // of this installation, for links back
	NoreplyHost  string              // of the people's commit addresses; "" means users.noreply.github.com
	Redact       func(string) string // takes secrets out of texts; nil changes nothing
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
	bot          Identity
	publicURL    string
	noreplyHost  string
	redact       func(string) string
	log          *slog.Logger
}

// finalTime bounds the writes that record an end.
const finalTime = 15 * time.Second

// New makes a Service.
func New(o Options) *Service {
	s := &Service{
		store: o.Store, mirror: o.Mirror, tokens: o.Tokens, pullRequests: o.PullRequests, access: o.Access,
		bot: o.Bot, publicURL: o.PublicURL, noreplyHost: o.NoreplyHost, redact: o.Redact, log: o.Log,
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
// goes on from there. Errors are core.Errors; those of its own are not_github_repository,
// nothing_to_publish, remote_changed, branch_deleted, pull_request_closed, pull_request_merged,
// submodule_change_refused, workflow_permission_missing, file_too_large, too_many_files and
// publish_cancelled; the rest come from Access, Tokens, Mirror and PullRequests.
func (s *Service) Publish(ctx context.Context, claim core.Claim, p core.Publication, ws core.PlatformWorkspace) (core.PublishResult, error) {
	a := &attempt{Service: s, claim: claim, session: claim.Session, repo: claim.Session.Repository, p: p}
	result, err := a.run(ctx, ws)
	if err == nil {
		s.log.InfoContext(ctx, "published", "session_id", a.session.ID, "outcome", a.p.Outcome, "number", result.Number)
		return result, nil
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(err, core.ErrLeaseLost):
		return core.PublishResult{}, err
	case errors.Is(cause, core.ErrCancelledByUser) && a.p.Step == core.PublishRequested:
		err = core.Fail(core.Conflict, "publish_cancelled", "The publish was cancelled before anything was sent to GitHub.").Because(err)
	case cause != nil:
		return core.PublishResult{}, err
	}
	end, done := context.WithTimeout(context.WithoutCancel(ctx), finalTime)
	defer done()
	return core.PublishResult{}, errors.Join(err, s.Fail(end, claim, a.p, err))
}

// Fail records the end of an attempt that did not succeed.
func (s *Service) Fail(ctx context.Context, claim core.Claim, p core.Publication, cause error) error {
	p.Step, p.FailureCode, p.FailureText, p.FinishedAt = core.PublishFailed, core.CodeOf(cause), core.MessageOf(cause), time.Now()
	return s.store.SavePublication(ctx, claim.Lease, p, core.PublicationChanged{
		Type: core.EventPublicationFailed, PublicationID: p.ID, CommitSHA: p.CommitSHA, Code: p.FailureCode, Message: p.FailureText,
	})
}
