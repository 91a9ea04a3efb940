package server

import (
	"context"
	"io"

	"agent-sandboxing/sandbox/toolbox/wire"
)

func (worktree) checkout(context.Context, wire.CheckoutArgs, io.ReadCloser) error {
	return wire.Fail(wire.Failed, "")
}
func (worktree) state(context.Context) (any, error) { return nil, wire.Fail(wire.Failed, "") }
func (worktree) snapshot(context.Context, io.Writer) (any, error) {
	return nil, wire.Fail(wire.Failed, "")
}
func (worktree) checkpoint(context.Context, wire.CheckpointArgs, io.Writer) (any, error) {
	return nil, wire.Fail(wire.Failed, "")
}
func (worktree) restore(context.Context, wire.RestoreArgs, io.Reader) error {
	return wire.Fail(wire.Failed, "")
}
