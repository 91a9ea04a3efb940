package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

// reap expires the session's lease and expects exactly that one to be ended.
func reap(t *testing.T, s *store.Store, id core.SessionID) {
	t.Helper()
	storetest.Expire(t, s, id)
	if n, err := s.Reap(t.Context()); n != 1 || err != nil {
		t.Fatalf("Reap = %d, %v, want 1", n, err)
	}
}

func TestReap_FailsTheWorkingMessageAndKeepsItsWords(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	next := post(t, s, claim.Session, "Next")
	must(t, s.SetPartial(t.Context(), claim.Lease, claim.Message.ID, "I have begun"))
	if n, err := s.Reap(t.Context()); n != 0 || err != nil {
		t.Fatalf("Reap of a living lease = %d, %v", n, err)
	}
	reap(t, s, claim.Session.ID)

	m := message(t, s, *claim.Message)
	if m.State != core.Failed || m.FailureCode != "worker_lost" || m.FailureText == "" || m.PartialText != "" || m.Model != "test-model" {
		t.Errorf("message = %+v, want failed(worker_lost)", m)
	}
	tl, err := s.Timeline(t.Context(), claim.Session.ID, 0, 0)
	must(t, err)
	if len(tl.Messages) != 3 || tl.Messages[1].Text != "I have begun" || tl.Messages[1].ReplyTo != m.ID {
		t.Errorf("messages = %+v, want what had been written as the answer", tl.Messages)
	}
	wantTypes(t, s, claim.Session.ID, "message_failed")
	if c := storetest.Claim(t, s); c.Message.ID != next.ID {
		t.Errorf("after the reaper: %s, want the next message", c.Message.ID)
	}
}

func TestReap_ThirdLostPreparationFailsTheMessage(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	other := post(t, s, session, "Other")
	var first core.Message
	for losses := 1; losses <= 2; losses++ {
		claim := storetest.Claim(t, s)
		first = *claim.Message
		reap(t, s, session.ID)
		if m := message(t, s, first); m.State != core.Queued || m.Preparations != losses {
			t.Fatalf("after loss %d: %s with %d preparations, want queued", losses, m.State, m.Preparations)
		}
		wantTypes(t, s, session.ID, "message_preparing", "message_requeued")
	}
	storetest.Claim(t, s)
	reap(t, s, session.ID)
	if m := message(t, s, first); m.State != core.Failed || m.FailureCode != "worker_lost" {
		t.Errorf("after the third loss: %s %s, want failed(worker_lost)", m.State, m.FailureCode)
	}
	wantTypes(t, s, session.ID, "message_preparing", "message_failed")
	if m := message(t, s, other); m.State != core.Queued || m.Preparations != 0 {
		t.Errorf("the other message: %s with %d preparations, want untouched", m.State, m.Preparations)
	}
}

func TestReap_FailsARunningSandboxAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ state, want core.SandboxState }{
		{core.SandboxCreating, core.SandboxFailed},
		{core.SandboxReady, core.SandboxFailed},
		{core.SandboxStopping, core.SandboxStopping},
		{core.SandboxStopped, core.SandboxStopped},
	} {
		t.Run(string(c.state), func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			claim := storetest.Working(t, s)
			box := core.Sandbox{
				ID: core.NewID[core.SandboxID](), SessionID: claim.Session.ID, State: c.state, Host: "host-1",
				Generation: 3, Volume: "vol", CheckedOut: true,
			}
			must(t, s.SaveSandbox(t.Context(), claim.Lease, box))
			reap(t, s, claim.Session.ID)
			got, err := s.LiveSandbox(t.Context(), claim.Session.ID)
			must(t, err)
			if got.State != c.want || got.Generation != 3 || got.Volume != "vol" || !got.CheckedOut {
				t.Errorf("sandbox = %+v, want %s with its volume", got, c.want)
			}
			if c.want == core.SandboxFailed {
				wantTypes(t, s, claim.Session.ID, "message_failed", "sandbox_failed")
				if got.FailureCode != "worker_lost" {
					t.Errorf("code = %q", got.FailureCode)
				}
			}
		})
	}
}

func TestReap_LeavesAPublicationAtItsStep(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	storetest.Finish(t, s, claim, "ok")
	_, err := s.RequestPublish(t.Context(), core.Publication{SessionID: claim.Session.ID, Title: "T"}, nil)
	must(t, err)
	claim = storetest.Claim(t, s)
	p := *claim.Publication
	p.Step, p.CommitSHA = core.PublishCommitted, storetest.BaseSHA
	must(t, s.SavePublication(t.Context(), claim.Lease, p))
	queued := post(t, s, claim.Session, "Meanwhile")
	reap(t, s, claim.Session.ID)

	again := storetest.Claim(t, s)
	if again.Publication == nil || again.Publication.Step != core.PublishCommitted || again.Publication.CommitSHA != storetest.BaseSHA {
		t.Errorf("claim = %+v, want the publication where it stood", again)
	}
	if m := message(t, s, queued); m.Preparations != 0 {
		t.Errorf("a message that nobody prepared counts %d lost preparations", m.Preparations)
	}
}

func TestReap_FailsAPublicationAtTheThirdLoss(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	storetest.Finish(t, s, claim, "ok")
	session := claim.Session
	p, err := s.RequestPublish(t.Context(), core.Publication{SessionID: session.ID, Title: "T"}, nil)
	must(t, err)
	queued := post(t, s, session, "Meanwhile")
	for range 3 {
		if claim = storetest.Claim(t, s); claim.Publication == nil {
			t.Fatal("the publication was given up early")
		}
		reap(t, s, session.ID)
	}
	p, err = s.Publication(t.Context(), session.ID, p.ID)
	if err != nil || p.Step != core.PublishFailed || p.FailureCode != "publish_worker_lost" || p.FailureText == "" || p.FinishedAt.IsZero() {
		t.Errorf("after the third loss: %+v, %v", p, err)
	}
	wantTypes(t, s, session.ID, "publication_failed")
	if claim = storetest.Claim(t, s); claim.Message == nil || claim.Message.ID != queued.ID {
		t.Errorf("claim = %+v, want the message that waited behind it", claim)
	}
}

func TestReap_EndsTheCallThatNobodyAnswered(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	must(t, s.Append(t.Context(), claim.Lease, core.ByAgent, claim.Message.ID,
		core.AgentToolCall{CallID: "1", Tool: "ls", Object: "."}, core.AgentToolResult{CallID: "1", Tool: "ls", Object: ".", Outcome: "ok"},
		core.AgentToolCall{CallID: "2", Tool: "bash", Object: "npm ci"}))
	reap(t, s, claim.Session.ID)
	got, err := s.Activity(t.Context(), claim.Session.ID, 10)
	must(t, err)
	want := []core.ToolActivity{{Tool: "ls", Object: ".", Outcome: "ok"}, {Tool: "bash", Object: "npm ci", Outcome: "interrupted"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("activity (-want +got):\n%s", diff)
	}
}
