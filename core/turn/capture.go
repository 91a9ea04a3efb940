package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"agent-sandboxing/core"
)

// capture records what the work tree looks like now: the diff, then a checkpoint. Both are best
// effort: a failure is an event, and the turn ends as it would have. It returns the changed files.
func (p *Processor) capture(ctx context.Context, claim core.Claim, msg core.Message, ws core.PlatformWorkspace, log *slog.Logger) []core.ChangedFile {
	ctx, done := final(ctx)
	defer done()
	if _, err := ws.KillAll(ctx); err != nil {
		p.captureFailed(ctx, claim, msg, "diff", err, log)
		return nil
	}
	files, err := p.captureDiff(ctx, claim, msg, ws)
	if err != nil {
		p.captureFailed(ctx, claim, msg, "diff", err, log)
	}
	if err := p.checkpoint(ctx, claim, msg, ws); err != nil {
		p.captureFailed(ctx, claim, msg, "checkpoint", err, log)
	}
	return files
}

func (p *Processor) captureDiff(ctx context.Context, claim core.Claim, msg core.Message, ws core.PlatformWorkspace) ([]core.ChangedFile, error) {
	diff, err := p.Mirror.Capture(ctx, claim.Session, ws)
	if err != nil {
		return nil, err
	}
	patch, redactions := p.Redactor.Bytes(diff.Patch)
	return diff.Files, p.Store.SaveDiff(ctx, claim.Lease, core.Artifact{
		ID: core.NewID[core.ArtifactID](), SessionID: claim.Session.ID, MessageID: msg.ID,
		Kind: core.ArtifactDiff, Name: "changes.patch", MediaType: "text/x-diff; charset=utf-8",
		Truncated: diff.Truncated, Redactions: redactions, Data: patch,
	}, diff.Files)
}

func (p *Processor) checkpoint(ctx context.Context, claim core.Claim, msg core.Message, ws core.PlatformWorkspace) error {
	var archive bytes.Buffer
	info, err := ws.Checkpoint(ctx, &archive, core.MaxCheckpoint)
	if err != nil {
		return err
	}
	return p.Store.SaveCheckpoint(ctx, claim.Lease, core.Checkpoint{
		ID: core.NewID[core.CheckpointID](), SessionID: claim.Session.ID, MessageID: msg.ID,
		Info: info, Archive: archive.Bytes(),
	})
}

func (p *Processor) captureFailed(ctx context.Context, claim core.Claim, msg core.Message, what string, cause error, log *slog.Logger) {
	ctx, done := final(ctx)
	defer done()
	log.WarnContext(ctx, "capture failed", "what", what, "code", core.CodeOf(cause), "error", cause)
	err := p.Store.Append(ctx, claim.Lease, core.ByPlatform, msg.ID, core.CaptureFailed{What: what, Code: core.CodeOf(cause), Message: core.MessageOf(cause)})
	if err != nil && !errors.Is(err, core.ErrLeaseLost) {
		log.ErrorContext(ctx, "record failed capture", "error", err)
	}
}

func describe(pr *core.PullRequest) string {
	if pr == nil {
		return ""
	}
	return fmt.Sprintf("#%d %s", pr.Number, pr.State)
}
