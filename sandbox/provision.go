package sandbox

import (
	"cmp"
	"context"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// provision is one attempt to make a session's sandbox ready.
type provision struct {
	*Service
	claim core.Claim
	began time.Time
	place place
	box   core.Sandbox // the row as it was last saved or is about to be
}

func (p *provision) run(ctx context.Context) (*toolbox.Client, error) {
	var err error
	if p.place, err = p.here(ctx); err != nil {
		return nil, err
	}
	row, err := p.store.LiveSandbox(ctx, p.claim.Session.ID)
	if err != nil {
		return nil, err
	}
	var ws *toolbox.Client
	if row != nil {
		p.box = *row
		if ws, err = p.reuse(ctx); err != nil {
			return nil, err
		}
	}
	if row == nil {
		if ws, err = p.warmed(ctx); err != nil {
			return nil, err
		}
	}
	if ws == nil {
		if ws, err = p.rebuild(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.settle(ctx, ws); err != nil {
		_ = ws.Close()
		return nil, err
	}
	return ws, nil
}

// reuse attaches to the container that the row names, after starting it when it is stopped. Nil
// without an error means that it cannot be used.
func (p *provision) reuse(ctx context.Context) (*toolbox.Client, error) {
	kept := p.box.State == core.SandboxReady || p.box.State == core.SandboxStopped
	if !kept || !p.box.CheckedOut || p.box.Host != p.place.host {
		return nil, nil
	}
	there, err := p.runtime.Inspect(ctx, p.box.RuntimeRef)
	if err == nil {
		_, err = p.runtime.Create(ctx, p.specOf(there)) // adopts it, or says that it is outdated
	}
	var ws *toolbox.Client
	switch {
	case err != nil:
	case there.Running && p.box.State == core.SandboxReady:
		ws, err = p.attach(ctx, func(context.Context) error { return nil })
	default:
		if there.Running { // although the row says stopped
			p.halt(ctx, p.box.RuntimeRef)
		}
		p.box.State = core.SandboxCreating
		if err := p.save(ctx, changed(p.box)); err != nil {
			return nil, err
		}
		ws, err = p.start(ctx)
	}
	switch code := core.CodeOf(err); {
	case err == nil:
		return ws, nil
	case ctx.Err() != nil, code == codeUnavailable, code == "capacity":
		return nil, err
	default:
		p.log.InfoContext(ctx, "sandbox cannot be used again", "error", err, "sandbox_id", p.box.ID)
		return nil, nil
	}
}

// rebuild makes a new container: the first, or the next generation on the same volume. Without that
// volume it is an empty one, which settle fills.
func (p *provision) rebuild(ctx context.Context) (*toolbox.Client, error) {
	p.cold.Add(1)
	defer p.cold.Add(-1)
	p.clear(ctx)
	old := p.box
	p.box = core.Sandbox{
		ID:         cmp.Or(old.ID, core.NewID[core.SandboxID]()),
		SessionID:  p.claim.Session.ID,
		State:      core.SandboxCreating,
		Host:       p.place.host,
		Runtime:    p.place.runtime,
		Generation: old.Generation + 1,
		CreatedAt:  old.CreatedAt,
		LastUsedAt: time.Now(),
	}
	if old.ID == "" {
		p.box.CreatedAt = p.box.LastUsedAt
	}
	event := changed(p.box)
	switch {
	case !old.CheckedOut: // nothing of worth was lost
	case old.Host == p.place.host:
		p.box.Volume, p.box.CheckedOut = old.Volume, true
		if old.State != core.SandboxStopped { // a stopped one may go without notice: the server was restarted
			event.Code = cmp.Or(old.FailureCode, "sandbox_lost")
			event.Message = "A new container starts on the same workspace."
		}
	default:
		event.Code = "host_changed"
		event.Message = "The workspace is on another host. It is rebuilt here from the last checkpoint."
	}
	if err := p.save(ctx, event); err != nil {
		return nil, err
	}
	ref, err := p.runtime.Create(ctx, p.spec(p.box.Volume, ""))
	if core.CodeOf(err) == "volume_lost" {
		p.box.Volume, p.box.CheckedOut = "", false
		event.Code, event.Message = core.CodeOf(err), core.MessageOf(err)
		if err := p.save(ctx, event); err != nil {
			return nil, err
		}
		ref, err = p.runtime.Create(ctx, p.spec("", ""))
	}
	if err != nil {
		return nil, err
	}
	there, err := p.runtime.Inspect(ctx, ref)
	if err != nil {
		return nil, err
	}
	p.box.RuntimeRef, p.box.Volume, p.box.Image = ref, there.Volume, there.ImageID
	if err := p.save(ctx); err != nil { // a crash from here on leaves nothing unknown
		return nil, err
	}
	return p.start(ctx)
}

// clear ends and removes the containers of earlier generations, whether they answer or not, and the
// volume when no checkout was ever finished in it.
func (p *provision) clear(ctx context.Context) {
	if p.box.ID == "" || p.box.Host != p.place.host {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, killWithin)
	defer cancel()
	list, err := p.runtime.List(ctx)
	for _, old := range list {
		if old.Sandbox == p.box.ID && old.Generation <= p.box.Generation && err == nil {
			err = p.runtime.Remove(ctx, old.Ref, !p.box.CheckedOut)
		}
	}
	if err != nil { // the next reconcile removes what is left
		p.log.WarnContext(ctx, "remove old containers", "error", err, "sandbox_id", p.box.ID)
	}
}

func (p *provision) spec(volume, image string) Spec {
	return Spec{
		Session:    p.claim.Session.ID,
		Sandbox:    p.box.ID,
		Generation: p.box.Generation,
		Volume:     volume,
		Image:      image,
		Limits:     p.limits,
	}
}

// start attaches to a container and then starts it, when the host has room for it.
func (p *provision) start(ctx context.Context) (*toolbox.Client, error) {
	started, err := p.room(ctx)
	if err != nil {
		return nil, err
	}
	defer started()
	return p.attach(ctx, func(ctx context.Context) error { return p.runtime.Start(ctx, p.box.RuntimeRef) })
}

func (p *provision) attach(ctx context.Context, start func(context.Context) error) (*toolbox.Client, error) {
	stream, err := p.runtime.Attach(ctx, p.box.RuntimeRef)
	if err != nil {
		return nil, err
	}
	if err := start(ctx); err != nil {
		_ = stream.Close()
		return nil, err
	}
	return toolbox.Dial(ctx, stream, toolbox.Options{})
}

// settle brings the workspace behind the row's promise: a new volume is checked out and restored, a
// kept one is only looked at.
func (p *provision) settle(ctx context.Context, ws *toolbox.Client) error {
	kept := p.box.CheckedOut
	if !kept {
		if err := p.checkout(ctx, ws); err != nil {
			return err
		}
		p.box.CheckedOut = true
	}
	was := p.box.State
	p.box.State, p.box.LastUsedAt = core.SandboxReady, time.Now()
	p.box.FailureCode, p.box.FailureText = "", ""
	var events []core.Payload
	if was != core.SandboxReady {
		event := changed(p.box)
		event.Ms = time.Since(p.began).Milliseconds()
		events = append(events, event)
	}
	if err := p.save(ctx, events...); err != nil {
		p.box.State = was
		return err
	}
	if kept {
		return p.resume(ctx, ws)
	}
	return nil
}

func (p *provision) save(ctx context.Context, events ...core.Payload) error {
	return p.store.SaveSandbox(ctx, p.claim.Lease, p.box, events...)
}

// fail records why a sandbox that was begun did not become ready, on a context that a cancel cannot
// reach. What was not begun stays as it is.
func (p *provision) fail(ctx context.Context, cause error) {
	p.log.WarnContext(ctx, "sandbox not ready", "error", cause, "session_id", p.claim.Session.ID, "sandbox_id", p.box.ID)
	if p.box.State != core.SandboxCreating {
		return
	}
	interrupted := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	p.halt(ctx, p.box.RuntimeRef)
	p.box.State, p.box.FailureCode, p.box.FailureText = core.SandboxFailed, core.CodeOf(cause), core.MessageOf(cause)
	if interrupted {
		p.box.FailureCode, p.box.FailureText = "preparation_interrupted", "The preparation was interrupted. The next message starts it again."
	}
	if err := p.save(ctx, changed(p.box)); err != nil {
		p.log.WarnContext(ctx, "save failed sandbox", "error", err, "sandbox_id", p.box.ID)
	}
}
