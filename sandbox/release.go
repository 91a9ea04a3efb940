package sandbox

import (
	"context"
	"errors"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// How long a sandbox may take to end its processes; how long one is looked for whose connection was cut,
// and until the second look.
const (
	quietWithin  = 3 * time.Second
	regainWithin = 4 * time.Second
	firstLook    = 100 * time.Millisecond
)

// Release ends every process in the workspace and detaches. A sandbox that does not obey is given up:
// the next Acquire makes a new container on the same volume. One whose connection was cut, as a daemon
// that is restarted cuts it, is kept while it runs, or while nobody can say whether it does. Without
// the lease nothing is touched: what the row names by then may be another worker's.
func (s *Service) Release(ctx context.Context, claim core.Claim, ws core.PlatformWorkspace) {
	client, ok := ws.(*toolbox.Client)
	if !ok || client == nil {
		return
	}
	lost := quiet(ctx, client)
	cut := client.Cut()
	_ = client.Close() // which never fails
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	log := s.log.With("session_id", claim.Session.ID)
	box, err := s.store.LiveSandbox(ctx, claim.Session.ID)
	if err == nil && (box == nil || box.State != core.SandboxReady) {
		return
	}
	if err == nil {
		err = s.store.SaveSandbox(ctx, claim.Lease, *box)
	}
	if err == nil && lost != nil && (!cut || !s.regain(ctx, box.RuntimeRef)) {
		log.WarnContext(ctx, "sandbox lost", "error", lost, "sandbox_id", box.ID, "generation", box.Generation)
		s.halt(ctx, box.RuntimeRef)
		box.State, box.FailureCode, box.FailureText = core.SandboxFailed, core.CodeOf(lost), s.explainLoss(ctx, box.RuntimeRef, lost)
		err = s.store.SaveSandbox(ctx, claim.Lease, *box, changed(*box))
	}
	if err != nil {
		log.WarnContext(ctx, "save sandbox at release", "error", err)
	}
}

// quiet ends every process in a workspace. It has a limit of its own: one that hangs must leave time to
// be given up.
func quiet(ctx context.Context, ws *toolbox.Client) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quietWithin)
	defer cancel()
	_, err := ws.KillAll(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return core.Fail(core.Unavailable, "sandbox_lost", "The sandbox did not answer at the end of the turn. The workspace is kept; send another message to go on.").Because(err)
	}
	return err
}

// regain looks after a container whose stream has ended although nobody closed it, and ends what still
// runs in it; false when it is of no use any more. While the runtime does not answer, the next Acquire
// finds that out. A daemon on its way down may still answer and cut what it has just attached.
func (s *Service) regain(ctx context.Context, ref string) bool {
	ctx, cancel := context.WithTimeout(ctx, regainWithin)
	defer cancel()
	for wait := firstLook; ; wait *= 2 {
		there, err := s.runtime.Inspect(ctx, ref)
		if err == nil && (!there.Running || there.Paused) {
			return false
		}
		if err == nil {
			err = s.clean(ctx, ref)
		}
		switch {
		case err == nil:
			return true
		case core.CodeOf(err) == codeUnavailable:
			s.away.Store(true)
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// clean ends everything in a container that nobody is attached to.
func (s *Service) clean(ctx context.Context, ref string) error {
	ws, err := Attach(ctx, s.runtime, ref, toolbox.Options{HelloTimeout: helloWithin})
	if err != nil {
		return err
	}
	defer func() { _ = ws.Close() }()
	_, err = ws.KillAll(ctx)
	return err
}

// explainLoss says why a sandbox was lost, when its container can tell. Under gVisor a command that takes
// all memory may end the whole sandbox.
func (s *Service) explainLoss(ctx context.Context, ref string, lost error) string {
	if there, err := s.runtime.Inspect(ctx, ref); err == nil && there.OOMKilled {
		return "A command used all of the sandbox's memory, so that it ended. The next message goes on in a new one on the same workspace."
	}
	return core.MessageOf(lost)
}
