package store_test

import (
	"context"
	"sync"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
)

func TestTimeline_HoldsTheWholePage(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	queued := post(t, s, claim.Session, "Next")
	box := core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: id, State: core.SandboxReady, Host: "h", Generation: 1}
	must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
	diff := core.Artifact{ID: core.NewID[core.ArtifactID](), Data: []byte("patch")}
	must(t, s.SaveDiff(t.Context(), claim.Lease, diff, []core.ChangedFile{{Path: "a", Status: "added"}}))
	must(t, s.FinishMessage(t.Context(), claim.Lease, core.Finish{MessageID: claim.Message.ID, State: core.Completed, Answer: "Done."}))
	p := core.Publication{ID: core.NewID[core.PublicationID](), Step: core.PublishDone, Outcome: core.PublishOpened}
	must(t, s.FinishPublication(t.Context(), claim.Lease, p, core.PullRequest{Number: 3, State: "open"}))

	tl, err := s.Timeline(t.Context(), id, 0, 0)
	must(t, err)
	if tl.Session.ID != id || tl.Owner.ID != claim.Owner.ID || tl.Sandbox.ID != box.ID || tl.PullRequest.Number != 3 || tl.Publication.ID != p.ID ||
		tl.Diff.ID != diff.ID || tl.Diff.Data != nil || len(tl.Changed) != 1 || tl.Earlier {
		t.Errorf("timeline = %+v", tl)
	}
	if len(tl.Messages) != 3 || tl.Messages[0].ID != claim.Message.ID || tl.Messages[1].ReplyTo != claim.Message.ID || tl.Messages[2].ID != queued.ID {
		t.Errorf("messages = %+v, want question, answer, next question", tl.Messages)
	}
	if n := int64(len(tl.Events)); n == 0 || tl.Session.LastSequence != n || tl.Events[0].Sequence != 1 || tl.Events[n-1].Sequence != n {
		t.Errorf("%d events, last sequence %d", len(tl.Events), tl.Session.LastSequence)
	}
	part, err := s.Timeline(t.Context(), id, 5, 3)
	must(t, err)
	if len(part.Events) != 3 || part.Events[0].Sequence != 2 || part.Events[2].Sequence != 4 || !part.Earlier {
		t.Errorf("3 events before 5 = %+v, earlier = %v", part.Events, part.Earlier)
	}
	if _, err := s.Timeline(t.Context(), core.NewID[core.SessionID](), 0, 0); core.KindOf(err) != core.NotFound {
		t.Errorf("of no session: %v", err)
	}
}

// While a writer works, each timeline is of one moment: the log ends at the session's counter.
func TestTimeline_IsOneSnapshot(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			if err := s.Append(ctx, claim.Lease, core.ByAgent, "", core.CommandStarted{Name: "x"}); err != nil && ctx.Err() == nil {
				t.Errorf("Append: %v", err)
				return
			}
		}
	})
	for range 50 {
		tl, err := s.Timeline(t.Context(), claim.Session.ID, 0, 5)
		must(t, err)
		if last := tl.Events[len(tl.Events)-1].Sequence; last != tl.Session.LastSequence {
			t.Errorf("the log ends at %d, the session's counter says %d", last, tl.Session.LastSequence)
		}
	}
	stop()
	writer.Wait()
}
