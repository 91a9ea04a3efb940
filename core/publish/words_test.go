package publish_test

import (
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/mirror/mirrortest"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/store/storetest"
)

// byAgent publishes as the session's turn does.
func (w *world) byAgent(t *testing.T, s core.ChatSession, ws *mirrortest.Workspace, title, body string) {
	t.Helper()
	claim := storetest.Claim(t, w.store)
	id := core.NewID[core.PublicationID]()
	p := core.Publication{ID: id, SessionID: s.ID, MessageID: claim.Message.ID, RequestedBy: s.OwnerID, ClientKey: string(id), Title: title, Body: body, Step: core.PublishRequested}
	if _, err := publish.New(w.options).Publish(t.Context(), claim, p, ws); err != nil {
		t.Fatalf("publish: %v", err)
	}
	if err := w.store.Release(t.Context(), claim.Lease); err != nil {
		t.Fatal(err)
	}
}

// edit changes the one pull request's text as a person on GitHub does.
func (w *world) edit(t *testing.T, s core.ChatSession, text core.PullRequestText) {
	t.Helper()
	token, err := w.app.Mint(t.Context(), w.repo, core.TokenPublish)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.UpdatePullRequest(t.Context(), token, w.repo, w.pulls(t, s)[0].Number, text); err != nil {
		t.Fatal(err)
	}
}

func (w *world) wantText(t *testing.T, s core.ChatSession, title, words, list string) githubtest.PullRequest {
	t.Helper()
	p := w.pulls(t, s)[0]
	if p.Title != title || !strings.Contains(p.Body, words) || !strings.Contains(p.Body, list) {
		t.Errorf("title = %q, want %q; body lacks %q or %q:\n%s", p.Title, title, words, list, p.Body)
	}
	return p
}

func TestPublish_TheAgentKeepsWhatAPersonWrote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	w.byAgent(t, s, ws, "The agent's title", "The agent's words.")
	write(t, ws, map[string]string{"hello.txt": "hello\nagain\n"})
	w.byAgent(t, s, ws, "A better title", "Better words.")
	if p := w.wantText(t, s, "A better title", "Better words.", "+2 −0"); strings.Contains(p.Body, "The agent's words") {
		t.Errorf("the agent's earlier words stand beside the newer:\n%s", p.Body)
	}
	w.must(t, s, ws, "A person's title", "A person's words.")
	for _, lines := range []string{"1\n2\n3\n", "1\n2\n3\n4\n"} {
		write(t, ws, map[string]string{"hello.txt": lines})
		w.byAgent(t, s, ws, "The agent again", "The agent's words again.")
	}
	p := w.wantText(t, s, "A person's title", "A person's words.", "+4 −0")
	if strings.Contains(p.Body, "The agent's words") {
		t.Errorf("body = %s", p.Body)
	}
	last, err := w.store.LastPublished(t.Context(), s.ID)
	if err != nil || last.Body != "A person's words." {
		t.Errorf("the ledger says %q, %v", last.Body, err)
	}
}

func TestPublish_KeepsWordsThatWereChangedOnGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	w.byAgent(t, s, ws, "Say hello", "The agent's words.")
	w.edit(t, s, core.PullRequestText{Body: strings.Replace(w.pulls(t, s)[0].Body, "The agent's words.", "Closes #1,\r\nwritten on GitHub.", 1)})
	write(t, ws, map[string]string{"hello.txt": "hello\nagain\n"})
	w.byAgent(t, s, ws, "Say hello", "The agent's newer words.")
	w.wantText(t, s, "Say hello", "Closes #1,\nwritten on GitHub.", "+2 −0")

	// The form as it was filled changes nothing; one with other words does.
	last, err := w.store.LastPublished(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	write(t, ws, map[string]string{"hello.txt": "1\n2\n3\n"})
	w.must(t, s, ws, "Say hello", last.Body)
	w.wantText(t, s, "Say hello", "Closes #1,\nwritten on GitHub.", "+3 −0")
	write(t, ws, map[string]string{"hello.txt": "1\n2\n3\n4\n"})
	w.must(t, s, ws, "Say hello", "Written in the form.")
	if p := w.wantText(t, s, "Say hello", "Written in the form.", "+4 −0"); strings.Contains(p.Body, "on GitHub") {
		t.Errorf("body = %s", p.Body)
	}
}

func TestPublish_NamesALaterCommitAfterItsRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	claim := storetest.Claim(t, w.store)
	if _, err := w.store.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "test-model"); err != nil {
		t.Fatal(err)
	}
	storetest.Finish(t, w.store, claim, "Done.")
	w.must(t, s, ws, "Greet people", "")
	write(t, ws, map[string]string{"hello.txt": "hello again\n"})
	w.must(t, s, ws, "Greet people", "")
	write(t, ws, map[string]string{"hello.txt": "hello you\n"})
	w.must(t, s, ws, "Greet everybody", "")
	if got := w.git(t, "log", "--reverse", "--format=%s", w.base+".."+s.Branch); got != "Greet people\nSay hello\nGreet everybody" {
		t.Errorf("subjects = %q", got)
	}
}
