package turn

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"agent-sandboxing/core"
)

// frozen is a sandbox that answers nothing, not even to be told to end its processes.
type frozen struct{ core.PlatformWorkspace }

func (frozen) KillAll(ctx context.Context) (int, error) {
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

// ends is a store that keeps how a turn ended.
type ends struct {
	Store
	failed   []core.Payload
	finished []core.Finish
}

func (*ends) Conversation(context.Context, core.SessionID, core.MessageID, int) ([]core.TurnText, error) {
	return nil, nil
}

func (*ends) Activity(context.Context, core.SessionID, int) ([]core.ToolActivity, error) {
	return nil, nil
}

func (*ends) LatestDiff(context.Context, core.SessionID) ([]core.ChangedFile, error) { return nil, nil }

func (*ends) PullRequest(context.Context, core.SessionID) (*core.PullRequest, error) { return nil, nil }

func (*ends) Unsummarised(context.Context, core.SessionID) ([]core.EndedTurn, error) { return nil, nil }

func (*ends) SaveSummary(context.Context, core.Lease, core.MessageID, core.Compaction) error {
	return nil
}

func (e *ends) Append(ctx context.Context, _ core.Lease, _ core.Producer, _ core.MessageID, events ...core.Payload) error {
	if ctx.Err() == nil {
		e.failed = append(e.failed, events...)
	}
	return ctx.Err()
}

func (e *ends) FinishMessage(ctx context.Context, _ core.Lease, f core.Finish) error {
	if ctx.Err() == nil {
		e.finished = append(e.finished, f)
	}
	return ctx.Err()
}

type answers struct{ Agent }

func (answers) Run(context.Context, core.TurnRequest, core.Workspace, core.Publisher, core.TurnRecorder) (core.TurnResult, error) {
	return core.TurnResult{Answer: "Done."}, nil
}

func (answers) Compact(context.Context, core.CompactionRequest, core.Workspace, core.TurnRecorder) core.Compaction {
	return core.Compaction{}
}

type noFiles struct{ Mirror }

func (noFiles) ReadBase(context.Context, core.ChatSession, string, int64) ([]byte, error) {
	return nil, nil
}

// A sandbox that hangs while the turn is captured costs the diff, and neither the answer nor its end.
func TestTurn_AFrozenSandboxDoesNotTakeTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &ends{}
		p := &Processor{Options: Options{Store: store, Agent: answers{}, Mirror: noFiles{}, Network: noNetwork{}}}
		p.turn(t.Context(), core.Claim{}, core.Message{ID: "m"}, frozen{}, slog.New(slog.DiscardHandler))
		if len(store.finished) != 1 || store.finished[0].State != core.Completed || store.finished[0].Answer != "Done." {
			t.Errorf("the turn ended as %+v", store.finished)
		}
		if len(store.failed) != 1 || store.failed[0].EventType() != "capture_failed" {
			t.Errorf("events %+v", store.failed)
		}
	})
}
