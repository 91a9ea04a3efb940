package turn

import (
	"context"

	"agent-sandboxing/core"
)

// Network knows what sandboxes may reach and what they did reach.
type Network interface {
	// EgressPolicy is what a session's sandbox may reach now.
	EgressPolicy(ctx context.Context, id core.SessionID) (core.EgressPolicy, error)
	// Begin says that what a session's sandbox reaches belongs to a turn, until end is called.
	Begin(session core.SessionID, message core.MessageID) (end func())
	// Watch collects what a session's sandbox is refused from now on, until stop returns it.
	Watch(session core.SessionID) (stop func() []core.EgressRefusal)
	// Flush writes down what was seen of a session. A failure is its own to log.
	Flush(ctx context.Context, session core.SessionID)
}

// noNetwork is where sandboxes reach nothing.
type noNetwork struct{}

func (noNetwork) EgressPolicy(context.Context, core.SessionID) (core.EgressPolicy, error) {
	return core.EgressPolicy{Mode: core.EgressNone}, nil
}
func (noNetwork) Begin(core.SessionID, core.MessageID) func() { return func() {} }
func (noNetwork) Watch(core.SessionID) func() []core.EgressRefusal {
	return func() []core.EgressRefusal { return nil }
}
func (noNetwork) Flush(ctx context.Context, session core.SessionID) {}

// watchedWorkspace tells of each command which hosts it was refused, and writes them down before the
// command's result is: the page shows both in their order.
type watchedWorkspace struct {
	core.Workspace
	network Network
	session core.SessionID
}

// Run is the workspace's own, with the refusals.
func (w watchedWorkspace) Run(ctx context.Context, cmd core.Command) (core.CommandResult, error) {
	stop := w.network.Watch(w.session)
	result, err := w.Workspace.Run(ctx, cmd)
	result.Refused = stop()
	w.network.Flush(ctx, w.session)
	return result, err
}

// policy is what the agent is told about the network. Without an answer it is the mode that the
// session began with: a turn does not fail for a sentence.
func (p *Processor) policy(ctx context.Context, s core.ChatSession) core.EgressPolicy {
	policy, err := p.Network.EgressPolicy(ctx, s.ID)
	if err != nil {
		p.Log.WarnContext(ctx, "read network policy", "session_id", s.ID, "error", err)
		return core.EgressPolicy{Mode: s.EgressMode}
	}
	return policy
}
