package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// helloWithin is how long a toolbox that runs already may take to answer. A new container is made in less
// than anybody would wait for one that is stuck.
const helloWithin = 2 * time.Second

var (
	errUsed  = errors.New("something is in a pool member that nobody has used")
	errStale = errors.New("a new container would be made otherwise than the pool member was")
)

// warmed gives the session a sandbox that was started ahead. Nil without an error means that a new
// container is needed; a member that turned out to be of no use is then the generation before it.
func (p *provision) warmed(ctx context.Context) (*toolbox.Client, error) {
	if p.warm == 0 {
		return nil, nil
	}
	spec, err := p.expected(ctx)
	if err != nil { // the way to a new container meets it too, and records it
		return nil, nil //nolint:nilerr // see above
	}
	var now string // what a new container would be made with; the daemon is asked meanwhile
	var unknown error
	var look sync.WaitGroup
	look.Go(func() { now, unknown = p.runtime.Fingerprint(ctx, p.poolSpec("")) })
	defer look.Wait()
	box, err := p.store.ClaimMember(ctx, p.claim.Lease, spec, core.Sandbox{
		SessionID:  p.claim.Session.ID,
		State:      core.SandboxCreating,
		Host:       p.place.host,
		Runtime:    p.place.runtime,
		Generation: 1,
	}, func(box core.Sandbox) []core.Payload { return p.begins(changed(box)) })
	if err != nil || box == nil {
		return nil, err
	}
	p.box = *box
	ws, err := p.greet(ctx)
	look.Wait()
	if err == nil && (unknown != nil || now != spec) {
		_ = ws.Close()
		p.current.Store(now) // the next session need not find out again
		err = errors.Join(errStale, unknown)
	}
	if err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "pool member cannot be used", "error", err, "sandbox_id", box.ID)
		return nil, nil
	}
	return ws, err
}

// expected is what members are made with: as the pool was last tended, or as the daemon says.
func (s *Service) expected(ctx context.Context) (string, error) {
	if spec, ok := s.current.Load().(string); ok {
		return spec, nil
	}
	return s.runtime.Fingerprint(ctx, s.poolSpec(""))
}

// greet attaches to a claimed member, which must answer and must be as it was made: no process but
// the toolbox, no file.
func (p *provision) greet(ctx context.Context) (*toolbox.Client, error) {
	o := p.terms(p.box.RuntimeRef)
	o.HelloTimeout = helloWithin
	ws, err := Attach(ctx, p.runtime, p.box.RuntimeRef, o)
	if err != nil {
		return nil, err
	}
	if err := unused(ctx, ws); err != nil {
		_ = ws.Close()
		return nil, err
	}
	return ws, nil
}

func unused(ctx context.Context, ws *toolbox.Client) error {
	killed, err := ws.KillAll(ctx)
	if err != nil {
		return err
	}
	var files [2]core.Listing
	var looks errgroup.Group
	for i, dir := range []string{core.RepoDir, "/tmp"} {
		looks.Go(func() (err error) { files[i], err = ws.List(ctx, dir, 1); return err })
	}
	if err := looks.Wait(); err != nil {
		return err
	}
	if killed+len(files[0].Entries)+len(files[1].Entries) > 0 {
		return errUsed
	}
	return nil
}

// refill tells the pool that it lacks one.
func (s *Service) refill() {
	select {
	case s.claimed <- struct{}{}:
	default:
	}
}

// specOf is what the row's container was made with: one from the pool names no session.
func (p *provision) specOf(there Status, image string) Spec {
	spec := p.spec(p.box.Volume, image)
	if there.Purpose == PurposePool {
		spec.Session, spec.Purpose = "", PurposePool
	}
	return spec
}
