package sandbox

import (
	"bytes"
	"context"
	"time"

	"agent-sandboxing/core"
)

// checkout fills an empty volume: the session's base, then the last checkpoint when there is one.
func (p *provision) checkout(ctx context.Context, ws core.PlatformWorkspace) error {
	base, took, err := p.send(ctx, ws, false)
	if err != nil {
		return err
	}
	p.later = append(p.later, core.CheckoutCompleted{Branch: base.Branch, SHA: base.BaseSHA, Ms: took.Milliseconds()})
	return p.restore(ctx, ws)
}

// send brings the session's base into the workspace, where there is a repository already when only the
// base is wanted.
func (p *provision) send(ctx context.Context, ws core.PlatformWorkspace, baseOnly bool) (core.Checkout, time.Duration, error) {
	if p.base == nil { // nobody expected to need it
		p.base = p.fetch(ctx)
	}
	if err := p.base.wait(ctx); err != nil {
		return core.Checkout{}, 0, err
	}
	base, began := p.base, time.Now()
	base.spec.BaseOnly = baseOnly
	stop := context.AfterFunc(ctx, base.drop) // a producer that hangs must not hold the turn
	err := ws.Checkout(ctx, base.spec, base.pack)
	stop()
	return base.spec, base.took + time.Since(began), err
}

// begins is the event of a new container, and of the checkout when its volume needs one.
func (p *provision) begins(event core.SandboxChanged) []core.Payload {
	events := []core.Payload{event}
	if !p.box.CheckedOut && !p.announced {
		p.announced = true
		events = append(events, core.CheckoutStarted{Branch: p.claim.Session.BaseBranch, SHA: p.claim.Session.BaseSHA})
	}
	return events
}

// maxPassed bounds how many checkpoints that cannot be applied are passed over for an older one. Each may
// cost a container.
const maxPassed = 5

// restore puts back what earlier turns had changed, as the newest checkpoint has it that was not passed
// over. Without any the base has to do. One that fails may have been applied in part.
func (p *provision) restore(ctx context.Context, ws core.PlatformWorkspace) error {
	for ; p.passed < maxPassed; p.passed++ {
		last, err := p.store.Checkpoint(ctx, p.claim.Session.ID, p.passed)
		if err != nil {
			return err
		}
		if last == nil {
			break
		}
		if last.Info.BaseSHA != p.base.spec.BaseSHA {
			continue // it would be refused
		}
		if err := ws.Restore(ctx, last.Info, bytes.NewReader(last.Archive)); err != nil {
			return err
		}
		return p.save(ctx, core.SandboxRestored{
			CheckpointID: last.ID, Files: last.Info.Files, PassedOver: p.passed, Missing: last.Info.Missing,
		})
	}
	if p.passed == 0 {
		return nil // no turn has saved anything
	}
	return p.save(ctx, core.SandboxRestored{PassedOver: p.passed})
}

// passOver makes way for an older checkpoint when the last one could not be applied: the next container
// has an empty volume, and needs the base once more.
func (p *provision) passOver(ctx context.Context, failed error) bool {
	if core.CodeOf(failed) != "restore_failed" || ctx.Err() != nil {
		return false
	}
	p.log.WarnContext(ctx, "pass over a checkpoint", "error", failed, "session_id", p.claim.Session.ID, "sandbox_id", p.box.ID)
	p.passed++
	p.base.close()
	p.base, p.announced = p.fetch(ctx), false
	return true
}

// resume puts a kept workspace on the session's branch. It never resets anything: a clean tree on
// another branch is switched, a changed one is refused.
func (p *provision) resume(ctx context.Context, ws core.PlatformWorkspace) error {
	state, err := p.state(ctx, ws)
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
	name, began := "git switch", time.Now()
	if err := p.save(ctx, core.CommandStarted{Name: name}); err != nil {
		return err
	}
	failed := ws.SwitchBranch(ctx, branch)
	finished := core.CommandFinished{Name: name, Ms: time.Since(began).Milliseconds()}
	if failed != nil {
		finished.Exit = 1
	}
	if err := p.save(ctx, finished); err != nil {
		return err
	}
	return failed
}

// state reads a kept workspace. Commands may have damaged the platform's copy of the base, without which
// no turn could be begun or saved any more: then it is sent again, and the work tree stays as it is.
func (p *provision) state(ctx context.Context, ws core.PlatformWorkspace) (core.GitState, error) {
	state, err := ws.GitState(ctx)
	if err != nil && core.CodeOf(err) != "checkout_missing" || err == nil && state.Base == p.claim.Session.BaseSHA {
		return state, err
	}
	p.log.WarnContext(ctx, "the base in the workspace is damaged and sent again", "error", err, "sandbox_id", p.box.ID)
	if _, _, err := p.send(ctx, ws, true); err != nil {
		return core.GitState{}, err
	}
	return ws.GitState(ctx)
}
