package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
)

// stopped is a session whose only turn a limit has stopped, with its message.
func (b *browser) stopped(limits core.TurnLimits) (core.SessionID, core.MessageID) {
	b.t.Helper()
	id := b.create("A long task")
	claim := storetest.Claim(b.t, b.rig.store)
	b.stop(claim, limits)
	return id, claim.Message.ID
}

func (b *browser) stop(claim core.Claim, limits core.TurnLimits) {
	b.t.Helper()
	st := b.rig.store
	if _, err := st.StartMessage(b.t.Context(), claim.Lease, claim.Message.ID, "m"); err != nil {
		b.t.Fatal(err)
	}
	if err := st.FinishMessage(b.t.Context(), claim.Lease, core.Finish{
		MessageID: claim.Message.ID, State: core.Failed, FailureCode: core.CodeLimitReached, FailureText: "The agent stopped at a limit: 60 steps.",
		Result: core.TurnResult{Steps: limits.Steps, Limits: limits},
	}); err != nil {
		b.t.Fatal(err)
	}
	if err := st.Release(b.t.Context(), claim.Lease); err != nil {
		b.t.Fatal(err)
	}
}

func TestContinue_WithoutJavaScriptAsksForTwiceTheLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id, message := b.stopped(core.TurnLimits{Steps: 60, Minutes: 30})
	base := "/chat-sessions/" + string(id)
	page := b.get(base)
	if text := page.html().Find(`[data-testid="continue"]`).Text(); !strings.Contains(text, "Up to 120 steps and 60 minutes.") {
		t.Errorf("the card says %q", text)
	}
	action, values := formOf(page, `[data-testid="continue"]`)
	if action != base+"/messages/"+string(message)+"/continue" {
		t.Fatalf("the form posts to %q", action)
	}
	posted := b.post(action, values)
	if posted.status != http.StatusSeeOther || !strings.HasPrefix(posted.location(), base+"#msg-") {
		t.Fatalf("continue: %d to %q: %s", posted.status, posted.location(), posted.body)
	}
	if again := b.post(action, values); again.location() != posted.location() {
		t.Errorf("a second press went to %q, want %q", again.location(), posted.location())
	}
	if b.get(base).html().Find(`[data-testid="continue"]`).Length() != 0 {
		t.Error("the card still offers to go on although a message does")
	}
	claim := storetest.Claim(t, r.store)
	if want := (core.TurnLimits{Steps: 120, Minutes: 60}); claim.Message.Limits != want || claim.Message.Text != "Continue where you stopped." {
		t.Errorf("the worker gets %q under %+v, want %+v", claim.Message.Text, claim.Message.Limits, want)
	}
}

func TestContinue_JSONDoublesUpToTheCeiling(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id, message := b.stopped(core.TurnLimits{Steps: 60, Minutes: 30})
	path := func(m core.MessageID) string {
		return "/chat-sessions/" + string(id) + "/messages/" + string(m) + "/continue"
	}
	for _, want := range []core.TurnLimits{{Steps: 120, Minutes: 60}, {Steps: 240, Minutes: 120}, {Steps: 240, Minutes: 240}} {
		a := b.json(http.MethodPost, path(message), nil)
		var m struct {
			ID          core.MessageID
			State, Text string
			Limits      core.TurnLimits
		}
		if a.into(&m); a.status != http.StatusCreated || m.State != "queued" || m.Limits != want {
			t.Fatalf("continue: %d %s, want limits %+v", a.status, a.body, want)
		}
		message = m.ID
		b.stop(storetest.Claim(t, r.store), m.Limits)
	}
	if a := b.json(http.MethodPost, path(message), nil); a.status != http.StatusConflict || a.code() != "limits_highest" {
		t.Errorf("at the ceiling: %d %s", a.status, a.body)
	}
	if n := b.get("/chat-sessions/" + string(id)).html().Find(`[data-testid="continue"]`).Length(); n != 0 {
		t.Error("the page offers what would be refused")
	}
}

func TestContinue_OnlyAfterALimitAndOnlyInItsOwnSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	done := b.finished()
	stopped, message := b.stopped(core.TurnLimits{Steps: 60, Minutes: 30})
	for name, test := range map[string]struct {
		session core.SessionID
		message core.MessageID
		code    string
	}{
		"a message that was completed": {done.id, done.message, "not_continuable"},
		"a message of another session": {done.id, message, "not_found"},
		"a message that is not there":  {stopped, core.NewID[core.MessageID](), "not_found"},
	} {
		path := "/chat-sessions/" + string(test.session) + "/messages/" + string(test.message) + "/continue"
		if a := b.json(http.MethodPost, path, nil); a.code() != test.code {
			t.Errorf("%s: %d %s, want %s", name, a.status, a.body, test.code)
		}
	}
	path := "/chat-sessions/" + string(stopped)
	for _, login := range []string{colleague, admin} {
		other := r.signedIn(t, login)
		if a := other.json(http.MethodPost, path+"/messages/"+string(message)+"/continue", nil); a.status != http.StatusForbidden || a.code() != "not_owner" {
			t.Errorf("%s: %d %s, want not_owner", login, a.status, a.body)
		}
		if other.get(path).html().Find(`[data-testid="continue"]`).Length() != 0 {
			t.Errorf("%s is offered what is the owner's", login)
		}
	}
	if err := r.store.ArchiveSession(t.Context(), stopped, true); err != nil {
		t.Fatal(err)
	}
	if a := b.post(path+"/messages/"+string(message)+"/continue", url.Values{}, "Accept", "application/json"); a.code() != "session_archived" {
		t.Errorf("archived: %d %s", a.status, a.body)
	}
}
