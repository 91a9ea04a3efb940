package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
)

// audit is everything on record that names no session, as "action detail".
func (r *rig) audit(t *testing.T) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	rows, err := conn.Query(t.Context(), `SELECT action || ' ' || detail FROM audit_log WHERE session_id IS NULL ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSignOutEverywhere_EndsEveryBrowser(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b, other := r.signedIn(t, owner), r.signedIn(t, owner), r.signedIn(t, colleague)
	if text := a.get("/settings").html().Find("main").Text(); !strings.Contains(text, "2 browsers") {
		t.Errorf("settings: %s", text)
	}
	out := a.post("/settings/sign-out-everywhere", nil)
	if out.status != http.StatusSeeOther || out.header.Get("Clear-Site-Data") == "" {
		t.Errorf("sign-out: %d", out.status)
	}
	if page := a.get(out.location()); !strings.Contains(page.html().Text(), "signed out in all browsers") {
		t.Error("the sign-in page does not say so")
	}
	for _, browser := range []*browser{a, b} {
		if me := browser.get("/me", "Accept", "application/json"); me.status != http.StatusUnauthorized {
			t.Errorf("/me = %d, want 401", me.status)
		}
	}
	if me := other.get("/me"); me.status != http.StatusOK {
		t.Errorf("somebody else: %d", me.status)
	}
	if got := r.audit(t); !slices.Equal(got, []string{"sign_out_everywhere @" + owner}) {
		t.Errorf("audit: %v", got)
	}
}

func TestDisconnect_TakesTheGrantBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b, second := r.signedIn(t, owner), r.signedIn(t, owner)
	id := r.person(t, owner).ID
	r.github.Fail(githubtest.Fault{Pattern: "DELETE /api/v3/applications/{client}/grant", Status: http.StatusBadGateway, Count: 1})
	if a := b.post("/settings/disconnect", nil, "Accept", "application/json"); a.status != http.StatusServiceUnavailable || a.code() != "github_unavailable" {
		t.Errorf("GitHub down: %d %s", a.status, a.body)
	}
	if _, err := r.store.UserToken(t.Context(), id); err != nil || b.get("/me").status != http.StatusOK {
		t.Errorf("when GitHub did not answer something was changed: %v", err)
	}
	token, err := r.store.UserToken(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	out := b.post("/settings/disconnect", nil)
	if out.status != http.StatusSeeOther || !strings.Contains(b.get(out.location()).html().Text(), "GitHub is disconnected") {
		t.Errorf("disconnect: %d to %q", out.status, out.location())
	}
	if me := second.get("/me", "Accept", "application/json"); me.status != http.StatusUnauthorized {
		t.Errorf("the other browser: %d, want 401", me.status)
	}
	if _, err := r.store.UserToken(t.Context(), id); core.CodeOf(err) != "reauth_required" {
		t.Errorf("the token is kept: %v", err)
	}
	asked := b.do(http.MethodGet, r.githubURL+"/api/v3/user", nil, "Authorization", "Bearer "+token.Access)
	if asked.status != http.StatusUnauthorized {
		t.Errorf("the token still works at GitHub: %d", asked.status)
	}
	if got := r.audit(t); !slices.Equal(got, []string{"github_disconnected @" + owner}) {
		t.Errorf("audit: %v", got)
	}
}

func TestPeople_AnAdministratorGivesTheRole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	boss, mate := r.signedIn(t, admin), r.signedIn(t, colleague)
	other := r.person(t, colleague)
	path := "/admin/people/" + string(other.ID)
	if a := mate.get("/admin/people", "Accept", "application/json"); a.status != http.StatusNotFound || mate.post(path+"/role", url.Values{"role": {"admin"}}).status != http.StatusNotFound ||
		mate.post("/admin/people/"+string(r.person(t, admin).ID)+"/sign-out", nil).status != http.StatusNotFound {
		t.Fatalf("a member reaches the people: %d", a.status)
	}
	if strings.Contains(mate.get("/").body, "/admin/people") {
		t.Error("a member is shown the way")
	}
	page := boss.get("/admin/people")
	if page.status != http.StatusOK || page.html().Find(`[data-login="`+admin+`"] form`).Length() != 0 || !strings.Contains(page.html().Find(`[data-login="`+admin+`"]`).Text(), "ADMIN_LOGINS") {
		t.Errorf("the page offers to change who is one by the configuration")
	}
	if a := boss.post(path+"/role", url.Values{"role": {"admin"}}); a.status != http.StatusSeeOther {
		t.Fatalf("role: %d %s", a.status, a.body)
	}
	if a := mate.get("/admin/people"); a.status != http.StatusOK { // without a new sign-in
		t.Errorf("the new administrator: %d", a.status)
	}
	for _, tt := range []struct {
		who  core.UserID
		role string
		code string
	}{
		{other.ID, "member", "role_own"},
		{r.person(t, admin).ID, "member", "role_configured"},
		{other.ID, "owner", "role_invalid"},
		{core.NewID[core.UserID](), "member", "not_found"},
	} {
		if a := mate.post("/admin/people/"+string(tt.who)+"/role", url.Values{"role": {tt.role}}, "Accept", "application/json"); a.code() != tt.code {
			t.Errorf("%s to %s: %d %s, want %s", tt.role, tt.who, a.status, a.body, tt.code)
		}
	}
	r.signedIn(t, colleague) // a sign-in leaves the role as it is
	if a := mate.get("/admin/people?q=OCTO-COLL"); a.html().Find(`[data-testid="people"] li`).Length() != 1 {
		t.Errorf("search: %s", a.html().Find("main").Text())
	}
	if a := boss.post(path+"/role", url.Values{"role": {"member"}}); a.status != http.StatusSeeOther || mate.get("/admin/people").status != http.StatusNotFound {
		t.Errorf("taken back: %d", a.status)
	}
	if a := boss.post(path+"/sign-out", nil); a.status != http.StatusSeeOther || mate.get("/me", "Accept", "application/json").status != http.StatusUnauthorized {
		t.Errorf("sign-out by an administrator: %d", a.status)
	}
	want := []string{"user_role @" + colleague + " admin", "user_role @" + colleague + " member", "sign_out_everywhere @" + colleague}
	if got := r.audit(t); !slices.Equal(got, want) {
		t.Errorf("audit: %v, want %v", got, want)
	}
	if n := boss.get("/admin/people").html().Find(`[data-testid="audit"] li`).Length(); n != 3 {
		t.Errorf("the page shows %d changes, want 3", n)
	}
}

// A text that was sent with a sign-in that had ended comes back after signing in, without JavaScript.
func TestReauth_LosesNoDraft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	path := "/chat-sessions/" + string(b.finished().id)
	form := url.Values{"installation": {strconv.FormatInt(r.installation, 10)}, "repository": {strconv.FormatInt(r.repository, 10)}, "branch": {"main"}}
	newPage := "/new?branch=main&installation=" + form.Get("installation") + "&repository=" + form.Get("repository")
	for name, tt := range map[string]struct {
		end  func()
		post string
		form url.Values
		page string
	}{
		"a message, signed out elsewhere": {func() { r.signedIn(t, owner).post("/settings/sign-out-everywhere", nil) }, path + "/messages", url.Values{}, path},
		"a message, revoked on GitHub": {func() {
			if err := r.github.RevokeUser(owner); err != nil {
				t.Fatal(err)
			}
			r.chat.AccessChanged(0)
		}, path + "/messages", url.Values{}, path},
		"a new session": {func() { r.signedIn(t, owner).post("/settings/sign-out-everywhere", nil) }, "/chat-sessions", form, newPage},
	} {
		t.Run(name, func(t *testing.T) {
			text := "What I wrote for an hour <&> " + name
			b.signIn(owner, "/")
			tt.end()
			tt.form.Set("text", text)
			away := b.post(tt.post, tt.form)
			login, err := url.Parse(away.location())
			if err != nil || away.status != http.StatusSeeOther || login.Path != "/login" || login.Query().Get("return_to") != tt.page {
				t.Fatalf("%d to %q, want the sign-in page and back to %s", away.status, away.location(), tt.page)
			}
			if back := b.signIn(owner, login.Query().Get("return_to")); back.location() != tt.page {
				t.Fatalf("signed in: %d to %q", back.status, back.location())
			}
			if got := b.get(tt.page).html().Find("textarea#message").Text(); got != text {
				t.Errorf("the composer holds %q, want %q", got, text)
			}
			if got := b.get(tt.page).html().Find("textarea#message").Text(); got != "" {
				t.Errorf("it holds %q a second time", got)
			}
		})
	}
}

func TestReauth_LosesNoPublishForm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	b.changed(s, core.ChangedFile{Path: "main.go", Status: "modified"}, core.ChangedFile{Path: "other.go", Status: "modified"})
	path := "/chat-sessions/" + string(s.id) + "/publish"
	action, values := formOf(b.get(path), `form[action="`+path+`"]`)
	values.Set("title", "A better title")
	values.Set("body", "What I wrote <&>")
	values["path"] = []string{"other.go"}
	values.Del("draft")
	r.signedIn(t, owner).post("/settings/sign-out-everywhere", nil)
	login, err := url.Parse(b.post(action, values).location())
	if err != nil || login.Query().Get("return_to") != path {
		t.Fatalf("sent to %v, %v, want back to %s", login, err, path)
	}
	b.signIn(owner, path)
	_, got := formOf(b.get(path), `form[action="`+path+`"]`)
	got.Del("csrf_token")
	values.Del("csrf_token")
	if diff := cmp.Diff(values, got); diff != "" {
		t.Errorf("the form (-sent +back):\n%s", diff)
	}
	if _, again := formOf(b.get(path), `form[action="`+path+`"]`); again.Get("title") == "A better title" {
		t.Error("it comes back a second time")
	}
}

// The text of one person is not shown to the next one at the same browser.
func TestReauth_ADraftIsItsWritersAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	form := url.Values{"installation": {strconv.FormatInt(r.installation, 10)}, "repository": {strconv.FormatInt(r.repository, 10)}, "text": {"a secret plan"}}
	r.signedIn(t, owner).post("/settings/sign-out-everywhere", nil)
	login, err := url.Parse(b.post("/chat-sessions", form).location())
	if err != nil {
		t.Fatal(err)
	}
	page := login.Query().Get("return_to")
	b.signIn(colleague, page)
	if a := b.get(page); a.status != http.StatusOK || strings.Contains(a.body, "a secret plan") {
		t.Errorf("somebody else reads it: %d", a.status)
	}
}
