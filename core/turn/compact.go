package turn

import (
	"context"
	"errors"
	"log/slog"

	"agent-sandboxing/core"
)

// compact rewrites the session's summary after a turn's end, while the session is still leased: the
// next message is to find it. It takes at most a minute; a lost lease and a shutdown cut it short.
func (p *Processor) compact(ctx context.Context, claim core.Claim, msg core.Message, f core.Finish, ws core.PlatformWorkspace, rec *recorder, log *slog.Logger) {
	made, err := p.compaction(ctx, claim, msg, f, ws, rec)
	end, done := final(ctx)
	defer done()
	p.Network.Flush(end, claim.Session.ID) // the page looks at it again with the event that follows
	if err == nil {
		err = p.Store.SaveSummary(end, claim.Lease, msg.ID, made)
	}
	switch {
	case errors.Is(err, core.ErrLeaseLost):
	case err != nil:
		log.ErrorContext(end, "save summary", "error", err)
	case made.Code != "":
		log.WarnContext(end, "the model's summary was not taken", "code", made.Code)
	}
}

func (p *Processor) compaction(ctx context.Context, claim core.Claim, msg core.Message, f core.Finish, ws core.PlatformWorkspace, rec *recorder) (core.Compaction, error) {
	// The reads are short and a cancel of the turn that has just ended is no reason to lose them.
	read, done := final(ctx)
	defer done()
	activity, err := p.Store.Activity(read, claim.Session.ID, activityLines)
	if err != nil {
		return core.Compaction{}, err
	}
	state, err := p.workspaceState(read, claim.Session, f.Changed)
	if err != nil {
		return core.Compaction{}, err
	}
	return p.Agent.Compact(ctx, core.CompactionRequest{
		Previous: claim.Session.Summary, Request: msg.Text, Activity: activity, Finish: f, Workspace: state,
	}, ws, rec), nil
}

// catchUp adds to the session's summary the turns whose worker was lost before it could, and returns it.
func (p *Processor) catchUp(ctx context.Context, claim core.Claim, state core.WorkspaceState) (string, error) {
	summary := claim.Session.Summary
	turns, err := p.Store.Unsummarised(ctx, claim.Session.ID)
	for _, t := range turns {
		made := p.Agent.Compact(ctx, core.CompactionRequest{
			Previous: summary, Request: t.Request, Finish: t.Finish, Workspace: state, LineOnly: true,
		}, nil, nil)
		if err := p.Store.SaveSummary(ctx, claim.Lease, t.Finish.MessageID, made); err != nil {
			return "", err
		}
		summary = made.Summary
	}
	return summary, err
}
