package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"agent-sandboxing/core"
)

// checkout fills an empty volume: the session's base, then the last checkpoint when there is one.
func (p *provision) checkout(ctx context.Context, ws core.PlatformWorkspace) error {
	session, began := p.claim.Session, time.Now()
	err := p.save(ctx, core.CheckoutStarted{Branch: session.BaseBranch, SHA: session.BaseSHA})
	if err != nil {
		return err
	}
	again, err := p.store.CheckedOut(ctx, session.ID)
	if err != nil {
		return err
	}
	spec, pack, err := p.source.Checkout(ctx, session, again)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = pack.Close() }) // a producer that hangs must not hold the turn
	err = ws.Checkout(ctx, spec, pack)
	stop()
	_ = pack.Close() // what was read is all that counts
	if err != nil {
		return err
	}
	done := core.CheckoutCompleted{Branch: spec.Branch, SHA: spec.BaseSHA, Ms: time.Since(began).Milliseconds()}
	if err := p.save(ctx, done); err != nil {
		return err
	}
	return p.restore(ctx, ws)
}

// restore puts back what earlier turns had changed.
func (p *provision) restore(ctx context.Context, ws core.PlatformWorkspace) error {
	last, err := p.store.LatestCheckpoint(ctx, p.claim.Session.ID)
	if err != nil || last == nil {
		return err
	}
	if err := ws.Restore(ctx, last.Info, bytes.NewReader(last.Archive)); err != nil {
		return err
	}
	return p.save(ctx, core.SandboxRestored{CheckpointID: last.ID, Files: last.Info.Files, Missing: last.Info.Missing})
}

// resume puts a kept workspace on the session's branch. It never resets anything: a clean tree on
// another branch is switched, a changed one is refused.
func (p *provision) resume(ctx context.Context, ws core.PlatformWorkspace) error {
	state, err := ws.GitState(ctx)
	if err != nil {
		return err
	}
	branch := p.claim.Session.Branch
	if state.Branch == branch {
		return nil
	}
	if state.Dirty {
		return core.Fail(core.Conflict, "wrong_branch_dirty",
			"The workspace has changes on another branch than the session's, so nothing was touched. Start a new session from the base branch; the last captured diff stays readable here.")
	}
	// Without the branch, the commit that the work tree shows becomes it: the files stay as they are.
	// The repository's hooks are not the platform's business.
	const git = "git -c core.hooksPath=/dev/null switch"
	if err := p.save(ctx, core.CommandStarted{Name: "git switch"}); err != nil {
		return err
	}
	result, err := ws.Run(ctx, core.Command{Shell: fmt.Sprintf("%[1]s -- '%[2]s' || %[1]s -c '%[2]s'", git, branch)})
	if err != nil {
		return err
	}
	if err := p.save(ctx, core.CommandFinished{Name: "git switch", Exit: result.Exit, Ms: result.Duration.Milliseconds()}); err != nil {
		return err
	}
	if result.Exit != 0 {
		return core.Fail(core.Conflict, "branch_switch_failed",
			"The workspace is on another branch and git could not switch it back. Start a new session from the base branch; the last captured diff stays readable here.")
	}
	return nil
}
