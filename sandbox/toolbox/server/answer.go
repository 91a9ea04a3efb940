package server

import (
	"context"
	"encoding/json"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxAnswer bounds a result, which is cut before its JSON could exceed wire.MaxResult. Bytes, as
// encodedSize estimates them.
const maxAnswer = 3 << 20

// encodedSize is about what bytes of a name or line, with the numbers beside them, take as JSON.
func encodedSize(b []byte) int { return len(b)*4/3 + 64 }

// answer performs one request. A result may come with an error: what a cancelled command had written.
func (s *server) answer(ctx context.Context, head wire.Call[json.RawMessage], c *call) (any, error) {
	switch head.Verb {
	case wire.VerbPing:
		return struct{}{}, nil
	case wire.VerbSpace:
		left, err := space(s.files.layout.Workspace)
		return wire.SpaceResult{Free: left.bytes}, err
	case wire.VerbRun:
		return with(head, func(a wire.RunArgs) (any, error) { return s.run(ctx, a) })
	case wire.VerbRead:
		return with(head, func(a wire.ReadArgs) (any, error) { return s.files.Read(ctx, a, c.writer(ctx)) })
	case wire.VerbWrite:
		return with(head, func(a wire.WriteArgs) (any, error) { return s.files.Write(a, c.body(ctx)) })
	case wire.VerbStat:
		return with(head, func(a wire.StatArgs) (any, error) { return s.files.Stat(a) })
	case wire.VerbList:
		return with(head, func(a wire.ListArgs) (any, error) { return s.files.List(a) })
	case wire.VerbFind:
		return with(head, func(a wire.FindArgs) (any, error) { return s.files.Find(ctx, a) })
	case wire.VerbSearch:
		return with(head, func(a wire.SearchArgs) (any, error) { return s.files.Search(ctx, a) })
	case wire.VerbKillAll:
		killed := s.commands.KillAll()
		s.network.reset()
		return wire.KillResult{Killed: killed}, nil
	case wire.VerbNetwork:
		return with(head, func(a wire.NetworkArgs) (any, error) { return struct{}{}, s.network.open(c.session, a) })
	case wire.VerbCheckout, wire.VerbGitState, wire.VerbSwitch, wire.VerbSnapshot, wire.VerbCheckpoint, wire.VerbRestore:
		return s.platform(ctx, head, c)
	}
	return nil, wire.Fail(wire.BadRequest, string(head.Verb))
}

// platform performs a request that needs the work tree to itself.
func (s *server) platform(ctx context.Context, head wire.Call[json.RawMessage], c *call) (any, error) {
	if err := s.lockPrograms(ctx); err != nil {
		return nil, err
	}
	defer s.unlockPrograms()
	s.commands.KillAll()
	tree := worktree{files: s.files, commands: s.commands}
	switch head.Verb {
	case wire.VerbCheckout:
		return with(head, func(a wire.CheckoutArgs) (any, error) { return struct{}{}, tree.checkout(ctx, a, c.body(ctx)) })
	case wire.VerbGitState:
		return tree.state(ctx)
	case wire.VerbSwitch:
		return with(head, func(a wire.SwitchArgs) (any, error) { return struct{}{}, tree.switchTo(ctx, a) })
	case wire.VerbSnapshot:
		return tree.snapshot(ctx, c.writer(ctx))
	case wire.VerbCheckpoint:
		return with(head, func(a wire.CheckpointArgs) (any, error) { return tree.checkpoint(ctx, a, c.writer(ctx)) })
	default: // restore
		return with(head, func(a wire.RestoreArgs) (any, error) { return struct{}{}, tree.restore(ctx, a, c.body(ctx)) })
	}
}

// with decodes a request's arguments.
func with[A any](head wire.Call[json.RawMessage], do func(A) (any, error)) (any, error) {
	var args A
	if json.Unmarshal(head.Args, &args) != nil {
		return nil, wire.Fail(wire.BadRequest, string(head.Verb))
	}
	return do(args)
}

func (s *server) lockPrograms(ctx context.Context) error {
	select {
	case s.programs <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unlockPrograms comes when what ran is dead; its connections are too.
func (s *server) unlockPrograms() {
	s.network.reset()
	<-s.programs
}
