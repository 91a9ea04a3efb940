package handlers

import (
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
)

// published is a session whose first turn changed a file and whose pull request a person opened a
// minute later.
func published(t *testing.T) *story {
	s := newStory(t)
	s.say("m1", core.Completed)
	s.event("m1", core.MessageQueued{}, core.MessageWorking{}, call("c1", "edit", "a.go"), result("c1", "ok", "+1 −0"),
		core.DiffUpdated{ArtifactID: "d1", Files: 1, Additions: 1}, core.MessageCompleted{})
	s.line.Diff = &core.Artifact{ID: "d1", MessageID: "m1", CreatedAt: start.Add(6 * time.Second)}
	s.line.Changed = []core.ChangedFile{{Path: "a.go", Status: "modified", Additions: 1}}
	s.line.PullRequest = &core.PullRequest{Number: 41, State: "open", Title: "A change"}
	s.line.Publication = &core.Publication{
		Step: core.PublishDone, Outcome: core.PublishOpened, Number: 41,
		CreatedAt: start.Add(6500 * time.Millisecond), FinishedAt: start.Add(6800 * time.Millisecond),
	}
	return s
}

// TestPull_OffersAnUpdateOnlyForNewWork: the button leads while there is something to publish, and
// what the last publish said disappears with it.
func TestPull_OffersAnUpdateOnlyForNewWork(t *testing.T) {
	t.Parallel()
	s := published(t)
	v := s.view()
	if p := v.pull(); p.Update || !p.CanPublish || p.Outcome != "Pull request #41 is open." || v.head().CanPublish {
		t.Errorf("right after the publish: %+v", p)
	}

	// A question changes nothing, though its turn captures a diff of its own.
	s.say("m2", core.Completed)
	s.event("m2", core.MessageQueued{}, core.MessageWorking{}, call("c2", "read", "a.go"), result("c2", "ok", ""),
		core.DiffUpdated{ArtifactID: "d2", Files: 1, Additions: 1}, core.MessageCompleted{})
	s.line.Diff = &core.Artifact{ID: "d2", MessageID: "m2", CreatedAt: start.Add(12 * time.Second)}
	v = s.view()
	if p := v.pull(); p.Update || p.Outcome == "" {
		t.Errorf("after a question: %+v", p)
	}
	if r := v.turn(v.line.turns[1]).Records; !r.NoChange || r.DiffURL != "" || len(r.Files) != 0 {
		t.Errorf("records of a question = %+v", r)
	}

	s.say("m3", core.Completed)
	s.event("m3", core.MessageQueued{}, core.MessageWorking{}, call("c3", "bash", "gofmt -w ."), result("c3", "ok", "exit 0"),
		core.DiffUpdated{ArtifactID: "d3", Files: 1, Additions: 1}, core.MessageCompleted{})
	s.line.Diff = &core.Artifact{ID: "d3", MessageID: "m3", CreatedAt: start.Add(18 * time.Second)}
	v = s.view()
	if p := v.pull(); !p.Update || p.Outcome != "" || !v.head().CanPublish {
		t.Errorf("after newer work: %+v", p)
	}

	// The agent publishes in the turn that made the work; the diff is captured after it.
	s.line.Publication = &core.Publication{
		MessageID: "m3", Step: core.PublishDone, Outcome: core.PublishUpdated, Number: 41,
		CreatedAt: start.Add(16 * time.Second), FinishedAt: start.Add(17 * time.Second),
	}
	if p := s.view().pull(); p.Update || p.Outcome != "Pull request #41 is updated." {
		t.Errorf("after the agent published: %+v", p)
	}
}

func TestPull_OffersCancelToWhoAskedForThePublish(t *testing.T) {
	t.Parallel()
	s := published(t)
	s.line.Publication = &core.Publication{ID: "p1", RequestedBy: "reviewer", Step: core.PublishRequested, CreatedAt: start.Add(7 * time.Second)}
	for name, c := range map[string]struct {
		rights chat.Rights
		want   bool
	}{
		"who asked":     {chat.Rights{Person: "reviewer", Push: true}, true},
		"the owner":     {chat.Rights{Person: "owner", Owner: true}, true},
		"somebody else": {chat.Rights{Person: "other", Push: true}, false},
		"an admin":      {chat.Rights{Person: "admin", Admin: true}, true},
	} {
		v := s.view()
		v.Rights = c.rights
		if got := v.pull().CancelURL != ""; got != c.want {
			t.Errorf("%s: cancel offered: %v, want %v", name, got, c.want)
		}
	}
}

func TestPull_SaysWhatHasToEndFirst(t *testing.T) {
	t.Parallel()
	for state, want := range map[core.MessageState]string{
		core.Queued: "A message waits", core.Working: "The agent is working",
	} {
		s := published(t)
		s.say("m2", state)
		v := s.view()
		if got := v.publishBlocked(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}

func TestDetails_OfferOnlyWhatWorksNow(t *testing.T) {
	t.Parallel()
	s := published(t)
	s.line.Sandbox = &core.Sandbox{State: core.SandboxReady}
	if d := s.view().details(); !d.CanStop || !d.CanArchive {
		t.Errorf("at rest: %+v", d)
	}
	s.line.Sandbox.StopRequestedAt = start
	if d := s.view().details(); d.CanStop || d.Sandbox != "stopping" {
		t.Errorf("once a stop was asked for: %+v", d)
	}
	s.line.Sandbox.StopRequestedAt = time.Time{}
	s.say("m2", core.Working)
	if d := s.view().details(); d.CanStop || d.CanArchive {
		t.Errorf("at work: %+v", d)
	}
}

func TestRecent_HasThisSessionWithItsState(t *testing.T) {
	t.Parallel()
	s := published(t)
	v := s.view()
	if got := v.recent(nil); len(got) != 1 || !got[0].Here || got[0].State != "completed" {
		t.Errorf("recent = %+v", got)
	}
	s.line.PullRequest = nil
	if got := s.view().mark(); got != "review" {
		t.Errorf("with changes that nobody published: %q", got)
	}
	s.say("m2", core.Working)
	if got := s.view().mark(); got != "working" {
		t.Errorf("at work: %q", got)
	}
}

func TestFailure_OffersToSendAgainToWhoMayWrite(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	v := s.view()
	if f := v.failure("model_unavailable", "x", "m1"); f.Resends != "m1" || !strings.Contains(f.ActionURL, "resend=m1") {
		t.Errorf("to the owner: %+v", f)
	}
	for name, take := range map[string]func(*sessionView){
		"a reader":            func(v *sessionView) { v.Rights.Owner = false },
		"an owner who reads":  func(v *sessionView) { v.Rights.Push = false },
		"an archived session": func(v *sessionView) { v.Session.Archived = true },
	} {
		v := s.view()
		take(&v)
		if f := v.failure("model_unavailable", "x", "m1"); f.ActionURL != "" || f.Resends != "" {
			t.Errorf("to %s: %+v", name, f)
		}
	}
}

func TestBody_ProposesTheFirstRequestAndWhatTheTitleDoesNotSay(t *testing.T) {
	t.Parallel()
	s := published(t)
	s.line.Messages[0].Text = "A  change\n"
	s.say("m2", core.Completed).Text = "A change"
	s.say("m3", core.Completed).Text = "And a test.\nPlease."
	if got := s.view().body(); got != "> A  change\n\n> And a test.\n> Please." {
		t.Errorf("body = %q", got)
	}
}
