package web_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/store/storetest"
)

// session is one of owner's with a finished turn, a diff and an output.
type session struct {
	id       core.SessionID
	message  core.MessageID
	diff     core.ArtifactID
	artifact core.ArtifactID
}

const patch = "diff --git a/main.go b/main.go\nindex 1111111..2222222 100644\n--- a/main.go\n+++ b/main.go\n@@ -1 +1,2 @@\n package main\n+// <b>secret-of-the-owner</b>\n"

// finished makes such a session as a worker would.
func (b *browser) finished() session {
	t := b.t
	t.Helper()
	s := session{id: b.create("Add a comment"), diff: core.NewID[core.ArtifactID](), artifact: core.NewID[core.ArtifactID]()}
	st := b.rig.store
	claim := storetest.Claim(t, st)
	m, err := st.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "test-model")
	if err != nil {
		t.Fatal(err)
	}
	s.message = m.ID
	err = st.SaveArtifact(t.Context(), claim.Lease, core.Artifact{
		ID: s.artifact, MessageID: m.ID, Kind: core.ArtifactOutput, Name: "go test ./...", MediaType: "text/plain",
		Data: []byte("<script>alert(1)</script>\nok\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	files := []core.ChangedFile{{Path: "main.go", Status: "modified", Additions: 1}}
	err = st.SaveDiff(t.Context(), claim.Lease, core.Artifact{
		ID: s.diff, MessageID: m.ID, Kind: core.ArtifactDiff, Name: "changes", MediaType: "text/x-diff", Data: []byte(patch),
	}, files)
	if err != nil {
		t.Fatal(err)
	}
	claim.Message = &m
	err = st.FinishMessage(t.Context(), claim.Lease, core.Finish{MessageID: m.ID, State: core.Completed, Answer: "I added **a comment**.", Changed: files})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Release(t.Context(), claim.Lease); err != nil {
		t.Fatal(err)
	}
	return s
}

// reads are the addresses that show something of a session.
func (s session) reads() []string {
	base := "/chat-sessions/" + string(s.id)
	return []string{
		base, base + "/pulse", base + "/events", base + "/stream", base + "/publish", base + "/network",
		base + "/diffs/latest", base + "/diffs/" + string(s.diff), base + "/diffs/" + string(s.diff) + ".patch",
		base + "/artifacts/" + string(s.artifact), base + "/artifacts/" + string(s.artifact) + "/raw",
	}
}

// writes are the addresses that change something of a session.
func (s session) writes() map[string]url.Values {
	base := "/chat-sessions/" + string(s.id)
	return map[string]url.Values{
		base + "/messages":                                    {"text": {"x"}},
		base + "/messages/" + string(s.message):               {"text": {"x"}},
		base + "/messages/" + string(s.message) + "/remove":   {},
		base + "/messages/" + string(s.message) + "/continue": {},
		base + "/cancel":                                      {},
		base + "/publish":                                     {"title": {"x"}},
		base + "/publications/" + string(core.NewID[core.PublicationID]()) + "/resolve": {},
		base + "/publications/" + string(core.NewID[core.PublicationID]()) + "/again":   {"choice": {"new"}},
		base + "/publications/" + string(core.NewID[core.PublicationID]()) + "/cancel":  {},
		base + "/network/hosts": {"host": {"evil.example.com"}},
		base + "/stop":          {},
		base + "/archive":       {"archived": {"true"}},
		base + "/title":         {"title": {"x"}},
	}
}

// nowhere is the same address for a session that does not exist.
func nowhere(path string, s session) string {
	return strings.ReplaceAll(path, string(s.id), string(core.NewID[core.SessionID]()))
}

var requestIDs = regexp.MustCompile(`[A-Z2-7]{16}`)

// same cuts what differs between any two answers.
func same(a answer) string { return requestIDs.ReplaceAllString(a.body, "ID") }

func TestInvariant9_AForeignSessionIsNotThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.signedIn(t, owner).finished()
	foreign := r.signedIn(t, outsider)
	for _, accept := range []string{"text/html", "application/json", "text/event-stream"} {
		for _, path := range s.reads() {
			got := foreign.get(path, "Accept", accept)
			absent := foreign.get(nowhere(path, s), "Accept", accept)
			if got.status != http.StatusNotFound || absent.status != http.StatusNotFound {
				t.Errorf("GET %s as %s: %d, absent %d; want 404 for both", path, accept, got.status, absent.status)
			}
			// The address itself is in the frame of the error page.
			if a, b := strings.ReplaceAll(same(got), string(s.id), "S"), same(absent); len(a) == 0 || (accept != "text/html" && a != b) {
				t.Errorf("GET %s as %s answers\n%s\nwhich differs from what is absent\n%s", path, accept, a, b)
			}
			if strings.Contains(got.body, "secret-of-the-owner") || strings.Contains(got.body, "Add a comment") {
				t.Errorf("GET %s as %s gives the session away", path, accept)
			}
		}
	}
	for path, form := range s.writes() {
		if got := foreign.post(path, form, "Accept", "application/json"); got.status != http.StatusNotFound || got.code() != "not_found" {
			t.Errorf("POST %s: %d %s, want 404", path, got.status, got.body)
		}
	}
	events, err := r.store.EventsSince(t.Context(), s.id, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if last := events[len(events)-1]; last.Type != "message_completed" {
		t.Errorf("the foreigner's attempts left %s in the log", last.Type)
	}
}

func TestInvariant9_AnArtifactOfAnotherSessionIsNotThere(t *testing.T) {
	t.Parallel()
	b := newRig(t).signedIn(t, owner)
	mine, other := b.finished(), b.finished()
	for _, path := range []string{"/artifacts/" + string(other.artifact), "/artifacts/" + string(other.artifact) + "/raw", "/diffs/" + string(other.diff), "/diffs/" + string(mine.artifact)} {
		if a := b.get("/chat-sessions/" + string(mine.id) + path); a.status != http.StatusNotFound {
			t.Errorf("GET …%s under another session: %d, want 404", path, a.status)
		}
	}
	if a := b.post("/chat-sessions/"+string(mine.id)+"/messages/"+string(other.message), url.Values{"text": {"x"}}); a.status != http.StatusNotFound {
		t.Errorf("editing a message of another session: %d, want 404", a.status)
	}
}

func TestAccess_WhoMayDoWhat(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.signedIn(t, owner).finished()
	for login, want := range map[string]struct {
		read                                 int
		post, publish, cancel, stop, archive string // codes, "" when it went through
	}{
		colleague: {200, "not_owner", "", "not_owner", "not_owner", "not_owner"},
		reader:    {200, "not_owner", "push_required", "not_owner", "not_owner", "not_owner"},
		admin:     {200, "not_owner", "not_found", "nothing_to_cancel", "nothing_to_stop", "not_owner"},
	} {
		b := r.signedIn(t, login)
		for _, path := range s.reads() {
			if strings.HasSuffix(path, "/stream") {
				continue
			}
			if a := b.get(path); a.status != want.read && a.status != http.StatusSeeOther {
				t.Errorf("%s GET %s: %d, want %d", login, path, a.status, want.read)
			}
		}
		base := "/chat-sessions/" + string(s.id)
		for path, code := range map[string]string{
			"/messages": want.post, "/messages/" + string(s.message) + "/continue": want.post, "/publish": want.publish, "/cancel": want.cancel, "/stop": want.stop, "/archive": want.archive,
		} {
			a := b.post(base+path, url.Values{"text": {"x"}, "title": {"x"}, "archived": {"true"}, "client_key": {"same"}}, "Accept", "application/json")
			if code == "" && a.status >= 400 || code != "" && (a.status < 400 || a.code() != code) {
				t.Errorf("%s POST %s: %d %s, want %q", login, path, a.status, a.body, code)
			}
		}
	}
}

func TestAccess_EndsWithGitHubs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine := r.signedIn(t, owner)
	s := mine.finished()
	path := "/chat-sessions/" + string(s.id)
	if err := r.github.SetPermission("octo-org/web-app", colleague, githubtest.NoPermission); err != nil {
		t.Fatal(err)
	}
	if a := r.signedIn(t, colleague).get(path); a.status != http.StatusNotFound {
		t.Errorf("who lost the repository: %d, want 404", a.status)
	}
	if err := r.github.SetPermission("octo-org/web-app", owner, githubtest.NoPermission); err != nil {
		t.Fatal(err)
	}
	again := r.signedIn(t, owner) // a new sign-in forgets what was remembered
	a := again.get(path, "Accept", "application/json")
	if a.status != http.StatusForbidden || a.code() != "repository_access_lost" {
		t.Errorf("the owner who lost the repository: %d %s, want repository_access_lost", a.status, a.body)
	}
}

func TestAccess_APublicRepositoryIsNotPublicHere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.signedIn(t, owner).finished()
	if err := r.github.SetPrivate("octo-org/web-app", false); err != nil {
		t.Fatal(err)
	}
	if a := r.signedIn(t, outsider).get("/chat-sessions/" + string(s.id)); a.status != http.StatusNotFound {
		t.Errorf("somebody who can read the public repository but does not see the installation: %d, want 404", a.status)
	}
}

// auditOf is the actions on record for a session.
func auditOf(t *testing.T, r *rig, id core.SessionID) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	rows, err := conn.Query(t.Context(), `SELECT action FROM audit_log WHERE session_id = $1 ORDER BY id`, id)
	if err != nil {
		t.Fatal(err)
	}
	actions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return actions
}

func TestAccess_AnAdminsLookIsWrittenDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.signedIn(t, owner).finished()
	b := r.signedIn(t, admin)
	b.get("/chat-sessions/" + string(s.id))
	b.get("/chat-sessions/" + string(s.id) + "/diffs/" + string(s.diff))
	b.post("/chat-sessions/"+string(s.id)+"/stop", nil)
	b.post("/chat-sessions/"+string(s.id)+"/publications/"+string(core.NewID[core.PublicationID]())+"/cancel", nil)
	got := map[string]bool{}
	for _, e := range auditOf(t, r, s.id) {
		got[e] = true
	}
	for _, want := range []string{"session_view", "diff_view", "sandbox_stop", "publish_cancel"} {
		if !got[want] {
			t.Errorf("the audit log has no %s: %v", want, got)
		}
	}
}

func TestAccess_GitHubDownSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	r.github.Fail(githubtest.Fault{Pattern: "GET /api/v3/user/installations/{id}/repositories", Status: http.StatusServiceUnavailable})
	fresh := r.signedIn(t, owner)
	a := fresh.get("/chat-sessions/"+string(s.id), "Accept", "application/json")
	if a.status != http.StatusServiceUnavailable || a.code() != "github_unavailable" {
		t.Errorf("%d %s, want github_unavailable", a.status, a.body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.store.Session(ctx, s.id); err != nil {
		t.Errorf("the session itself: %v", err)
	}
}
