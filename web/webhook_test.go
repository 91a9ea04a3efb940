package web_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/webhook"
)

// delivered sends a delivery from the stand-in to the server, as GitHub does.
func (r *rig) delivered(t *testing.T, event string, payload map[string]any) int {
	t.Helper()
	r.github.SetWebhook(r.url+"/github/webhook", webhookSecret)
	status, err := r.github.Deliver(t.Context(), event, payload)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// reread is what a worker does about stale rows.
func (r *rig) reread(t *testing.T) {
	t.Helper()
	config := r.github.Config()
	bases, err := github.NewBases(r.githubURL)
	if err != nil {
		t.Fatal(err)
	}
	app, err := github.NewApp(github.AppConfig{Bases: bases, AppID: config.AppID, PrivateKey: config.PrivateKey, Now: r.github.Now})
	if err != nil {
		t.Fatal(err)
	}
	reader := webhook.Reader{Records: r.store, App: app, People: r.chat, Log: slog.New(slog.DiscardHandler)}
	if err := reader.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
}

type object = map[string]any

func TestWebhook_RevokedSignsOutEverywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, second, other := r.signedIn(t, owner), r.signedIn(t, owner), r.signedIn(t, colleague)
	me := struct{ ID core.GitHubUserID }{r.person(t, owner).GitHubID}
	revoked := object{"action": "revoked", "sender": object{"id": me.ID, "login": owner}}

	// A delivery alone proves nothing: the token still works, so it stays.
	if status := r.delivered(t, "github_app_authorization", revoked); status != http.StatusAccepted {
		t.Fatalf("delivery: %d", status)
	}
	r.reread(t)
	if a := first.get("/me"); a.status != http.StatusOK {
		t.Errorf("a hint that is not true signed out: %d", a.status)
	}
	if err := r.github.RevokeUser(owner); err != nil {
		t.Fatal(err)
	}
	r.delivered(t, "github_app_authorization", revoked)
	r.reread(t)
	for _, b := range []*browser{first, second} {
		if a := b.get("/me", "Accept", "application/json"); a.status != http.StatusUnauthorized || a.code() != "signed_out" {
			t.Errorf("after it: %d %s", a.status, a.body)
		}
	}
	if a := other.get("/me"); a.status != http.StatusOK {
		t.Errorf("somebody else: %d", a.status)
	}
	if _, err := r.store.UserToken(t.Context(), r.person(t, owner).ID); core.CodeOf(err) != "reauth_required" {
		t.Errorf("the token is kept: %v", err)
	}
}

func TestWebhook_InstallationsAreFollowedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	path := "/chat-sessions/" + string(b.finished().id)
	installation := object{"id": r.installation}
	code := func() string {
		a := b.get(path, "Accept", "application/json")
		if a.status == http.StatusOK {
			return ""
		}
		return a.code()
	}
	if err := r.github.SetSuspended(r.installation, true); err != nil {
		t.Fatal(err)
	}
	if got := code(); got != "" {
		t.Fatalf("within the minute: %s", got)
	}
	// NOTIFY makes the process forget what it remembered; the stand-in's own order is out of step on purpose.
	r.delivered(t, "installation", object{"action": "unsuspend", "installation": installation})
	r.forgotten(t, func() bool { return code() == "installation_suspended" })
	r.reread(t)
	if in, err := r.store.Installation(t.Context(), core.InstallationID(r.installation)); err != nil || !in.Suspended {
		t.Errorf("what is on record follows the delivery and not GitHub: %+v, %v", in, err)
	}
	if err := r.github.SetSuspended(r.installation, false); err != nil {
		t.Fatal(err)
	}
	r.delivered(t, "installation", object{"action": "unsuspend", "installation": installation})
	r.forgotten(t, func() bool { return code() == "" })
	if err := r.github.RemoveInstallation(r.installation); err != nil {
		t.Fatal(err)
	}
	r.delivered(t, "installation", object{"action": "deleted", "installation": installation})
	r.reread(t)
	r.forgotten(t, func() bool { return code() == "installation_removed" })
	if page := b.get(path); !strings.Contains(page.html().Text(), "no longer installed on octo-org") {
		t.Errorf("the page: %d %s", page.status, page.html().Find("main").Text())
	}
}

func TestWebhook_ARenamedRepositoryKeepsItsSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id := b.finished().id
	if err := r.github.RenameRepository("octo-org/web-app", "web-shop"); err != nil {
		t.Fatal(err)
	}
	r.delivered(t, "repository", object{"action": "renamed", "installation": object{"id": r.installation}, "repository": object{"id": r.repository}})
	r.reread(t)
	s, err := r.store.Session(t.Context(), id)
	if err != nil || s.Repository.FullName() != "octo-org/web-shop" {
		t.Errorf("the session's repository: %s, %v", s.Repository.FullName(), err)
	}
	// Without a webhook the next look finds the new name.
	if err := r.github.RenameRepository("octo-org/web-shop", "web-store"); err != nil {
		t.Fatal(err)
	}
	r.chat.AccessChanged(0)
	if page := b.get("/chat-sessions/" + string(id)); page.status != http.StatusOK || !strings.Contains(page.body, "web-store") {
		t.Errorf("page: %d", page.status)
	}
	if s, err = r.store.Session(t.Context(), id); err != nil || s.Repository.Name != "web-store" {
		t.Errorf("the session's repository: %s, %v", s.Repository.FullName(), err)
	}
}

func TestWebhook_EndpointAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser(t)
	if status := r.delivered(t, "ping", object{"zen": "Keep it logically awesome."}); status != http.StatusAccepted {
		t.Errorf("ping: %d, want 202", status)
	}
	r.github.SetWebhook(r.url+"/github/webhook", "another secret than the server's")
	if status, err := r.github.Deliver(t.Context(), "ping", object{}); err != nil || status != http.StatusForbidden {
		t.Errorf("another secret: %d, %v, want 403", status, err)
	}
	body := strings.Repeat(" ", 3<<20) + "{}" // more than a form may have, less than GitHub's bound
	if status := r.delivered(t, "ping", object{"x": body}); status != http.StatusAccepted {
		t.Errorf("3 MiB: %d, want 202", status)
	}
	if a := b.do(http.MethodPost, "/github/webhook", strings.NewReader(strings.Repeat("x", webhook.MaxBody+1)), "X-GitHub-Delivery", "1"); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("26 MiB: %d, want 413", a.status)
	}
	off := newRig(t, withoutWebhooks)
	if status := off.delivered(t, "ping", object{}); status != http.StatusNotFound {
		t.Errorf("with webhooks off: %d, want 404", status)
	}
}

// A delivery that comes twice answers 200 the second time; the sweep's redelivery is such a one.
func TestWebhook_TheSweepBringsWhatGotLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.delivered(t, "ping", object{})
	r.github.SetWebhook("http://127.0.0.1:1/nobody", webhookSecret)
	if status, err := r.github.Deliver(t.Context(), "installation", object{"action": "created", "installation": object{"id": r.installation}}); err != nil || status != 0 {
		t.Fatalf("lost delivery: %d, %v", status, err)
	}
	r.github.SetWebhook(r.url+"/github/webhook", webhookSecret)
	config := r.github.Config()
	bases, err := github.NewBases(r.githubURL)
	if err != nil {
		t.Fatal(err)
	}
	app, err := github.NewApp(github.AppConfig{Bases: bases, AppID: config.AppID, PrivateKey: config.PrivateKey, Now: r.github.Now})
	if err != nil {
		t.Fatal(err)
	}
	sweeper := webhook.Sweeper{Hooks: app, Received: r.store, Now: r.github.Now, Log: slog.New(slog.DiscardHandler)}
	for i, want := range []int{1, 0} {
		if asked, err := sweeper.Sweep(t.Context()); err != nil || asked != want {
			t.Errorf("sweep %d asked for %d, %v, want %d", i+1, asked, err, want)
		}
	}
}

func TestSetup_NeverBelievesTheAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stranger, b := r.browser(t), r.signedIn(t, owner)
	for _, query := range []string{"", "?installation_id=1&setup_action=install", "?setup_action=request", "?installation_id=99&setup_action=update&state=x", "?installation_id='--&setup_action=<b>"} {
		a := stranger.get("/github/setup" + query)
		if a.status != http.StatusOK || strings.Contains(a.body, "<b>") {
			t.Errorf("%q without a login: %d", query, a.status)
		}
		if wants := strings.Contains(query, "request"); strings.Contains(a.html().Text(), "waits for an owner") != wants {
			t.Errorf("%q says %s", query, a.html().Find("h1").Text())
		}
	}
	if a := b.get("/github/setup?installation_id=424242&setup_action=install"); a.status != http.StatusSeeOther || a.location() != "/installations?stay=1&did=installed" {
		t.Errorf("signed in: %d to %q", a.status, a.location())
	}
	if a := b.get("/github/setup?setup_action=request"); a.status != http.StatusOK || !strings.Contains(a.html().Text(), "waits for an owner") {
		t.Errorf("asked for: %d", a.status)
	}
	page := b.get("/installations?stay=1")
	if n := page.html().Find(`[data-testid="installations"] li`).Length(); n != 1 || strings.Contains(page.body, "424242") {
		t.Errorf("%d accounts, want the one that GitHub lists", n)
	}
}

// Installing on another account leads back here, and the new account is in the list at once.
func TestSetup_AnInstallationLeadsBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.github.SetSetupURL(r.url + "/github/setup")
	b := r.signedIn(t, owner)
	if n := b.get("/installations?stay=1").html().Find(`[data-testid="installations"] li`).Length(); n != 1 {
		t.Fatalf("%d accounts before", n)
	}
	back := b.do(http.MethodPost, r.githubURL+"/apps/"+r.github.Config().AppSlug+"/installations/new", strings.NewReader("account="+owner), "Content-Type", "application/x-www-form-urlencoded")
	if !strings.HasPrefix(back.location(), r.url+"/github/setup?") || !strings.Contains(back.location(), "setup_action=install") {
		t.Fatalf("GitHub leads to %q", back.location())
	}
	list := b.get(b.get(back.location()).location())
	if n := list.html().Find(`[data-testid="installations"] li`).Length(); n != 2 {
		t.Errorf("%d accounts after, want the new one too", n)
	}
}
