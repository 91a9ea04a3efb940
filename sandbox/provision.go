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
	unfit error        // why the container of the row could not be used again

	base      *fetch         // nil when no checkout is expected
	announced bool           // that a checkout begins
	passed    int            // checkpoints, the newest first, that could not be applied
	later     []core.Payload // goes with the next save
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
	if row == nil || !row.CheckedOut || row.Host != p.place.host {
		p.base = p.fetch(ctx)
	}
	defer func() { p.base.close() }()
	if row == nil {
		defer p.refill() // not before this session has what it needs
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
	for {
		if ws == nil {
			if ws, err = p.rebuild(ctx); err != nil {
				return nil, err
			}
		}
		if err = p.letOut(ctx, ws); err == nil {
			err = p.settle(ctx, ws)
		}
		if err == nil {
			return ws, nil
		}
		_ = ws.Close()
		if !p.passOver(ctx, err) {
			return nil, err
		}
		ws = nil
	}
}

// reuse attaches to the container that the row names, after starting it when it is stopped. Nil
// without an error means that it cannot be used.
func (p *provision) reuse(ctx context.Context) (*toolbox.Client, error) {
	kept := p.box.State == core.SandboxReady || p.box.State == core.SandboxStopped
	if !kept || !p.box.CheckedOut || p.box.Host != p.place.host {
		return nil, nil
	}
	ws, err := p.again(ctx)
	switch code := core.CodeOf(err); {
	case err == nil:
		return ws, nil
	case ctx.Err() != nil, code == codeUnavailable, code == "capacity", code == "disk_low":
		return nil, err
	default:
		p.log.InfoContext(ctx, "sandbox cannot be used again", "error", err, "sandbox_id", p.box.ID)
		p.unfit = err
		return nil, nil
	}
}

func (p *provision) again(ctx context.Context) (*toolbox.Client, error) {
	there, err := p.runtime.Inspect(ctx, p.box.RuntimeRef)
	if err != nil {
		return nil, err
	}
	if p.box.Age > p.maxAge {
		return nil, core.Fail(core.Conflict, "too_old", "The container was old. A new one starts on the same workspace.")
	}
	ref, err := p.runtime.Create(ctx, p.specOf(there, "")) // adopts it, or says that it is outdated
	if core.CodeOf(err) == "image_missing" {               // the container goes on with what it was made of
		ref, err = p.runtime.Create(ctx, p.specOf(there, p.box.Image))
	}
	if err == nil && ref != p.box.RuntimeRef { // somebody gave its name to another
		err = core.Fail(core.Conflict, "spec_changed", "The container has lost its name. It has to be made again on the same workspace.")
	}
	if err != nil {
		return nil, err
	}
	if there.Running && !there.Paused && p.box.State == core.SandboxReady {
		return Attach(ctx, p.runtime, p.box.RuntimeRef, p.terms(p.box.RuntimeRef))
	}
	if err := p.admit(ctx, false); err != nil {
		return nil, err
	}
	if there.Running { // although the row says stopped, or frozen
		p.halt(ctx, p.box.RuntimeRef)
	}
	p.box.State = core.SandboxCreating
	if err := p.save(ctx, changed(p.box)); err != nil {
		return nil, err
	}
	return p.start(ctx)
}

// start launches the row's container, when the host has room for it.
func (p *provision) start(ctx context.Context) (*toolbox.Client, error) {
	started, err := p.room(ctx)
	if err != nil {
		return nil, err
	}
	defer started()
	ws, err := Launch(ctx, p.runtime, p.box.RuntimeRef, p.terms(p.box.RuntimeRef))
	if err == nil {
		p.hear(ctx, ws)
	}
	return ws, err
}

// rebuild makes a new container: the first, or the next generation on the same volume. Without that
// volume it is an empty one, which settle fills.
func (p *provision) rebuild(ctx context.Context) (*toolbox.Client, error) {
	old := p.box
	keeps := old.CheckedOut && old.Host == p.place.host
	if err := p.admit(ctx, !keeps); err != nil {
		return nil, err
	}
	p.cold.Add(1)
	defer p.cold.Add(-1)
	p.clear(ctx)
	p.box = core.Sandbox{
		ID:         cmp.Or(old.ID, core.NewID[core.SandboxID]()),
		SessionID:  p.claim.Session.ID,
		State:      core.SandboxCreating,
		Host:       p.place.host,
		Runtime:    p.place.runtime,
		Generation: old.Generation + 1,
		Unsaved:    keeps && old.Unsaved,
	}
	event := changed(p.box)
	switch {
	case !old.CheckedOut: // nothing of worth was lost
	case keeps:
		p.box.Volume, p.box.CheckedOut = old.Volume, true
		event.Code, event.Message = p.because(old)
	default:
		event.Code = "host_changed"
		event.Message = "The workspace is on another host. It is rebuilt here from the last checkpoint."
	}
	if err := p.save(ctx, p.begins(event)...); err != nil {
		return nil, err
	}
	ref, err := p.create(ctx)
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

// because says why a new container takes the place of one on the same volume. A stopped one may go
// without notice: the server was restarted.
func (p *provision) because(old core.Sandbox) (code, message string) {
	code = core.CodeOf(p.unfit)
	switch {
	case p.unfit != nil && code != "sandbox_lost" && code != "internal":
		return code, "A new container starts on the same workspace."
	case old.State == core.SandboxStopped:
		return "", ""
	default:
		return cmp.Or(old.FailureCode, "sandbox_lost"), "A new container starts on the same workspace."
	}
}

// maxTaken bounds how many generations are passed over because something else has their name.
const maxTaken = 3

// create makes the container of the row's generation. A name that something else has is left to it: the
// next generation has another. Without the kept volume an empty one is made.
func (p *provision) create(ctx context.Context) (ref string, err error) {
	for range maxTaken {
		ref, err = p.runtime.Create(ctx, p.spec(p.box.Volume, ""))
		event := changed(p.box)
		switch core.CodeOf(err) {
		case "volume_lost":
			if err := p.admit(ctx, true); err != nil {
				return "", err
			}
			p.box.Volume, p.box.CheckedOut, p.box.Unsaved = "", false, false
			event.Code, event.Message = core.CodeOf(err), core.MessageOf(err)
		case "spec_changed":
			p.box.Generation++
			event.Generation = p.box.Generation
		default:
			return ref, err
		}
		if err := p.save(ctx, p.begins(event)...); err != nil {
			return "", err
		}
	}
	return ref, err
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

// letOut lets the programs of a sandbox out that is the session's by now: one of the pool is not.
func (p *provision) letOut(ctx context.Context, ws *toolbox.Client) error {
	if p.network == nil {
		return nil
	}
	return ws.ServeEgress(ctx, p.network.Session(p.claim.Session.ID))
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
	p.box.State, p.box.Unsaved = core.SandboxReady, true // whoever is given it may change it
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
	err := p.store.SaveSandbox(ctx, p.claim.Lease, p.box, append(p.later, events...)...)
	if err == nil {
		p.later = nil
	}
	return err
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
