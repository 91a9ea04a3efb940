package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/web"
)

func (b *browser) cookie() string {
	u, err := url.Parse(b.rig.url)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.http.Jar.Cookies(u) {
		if c.Name == "session" {
			return c.Value
		}
	}
	return ""
}

func TestSignIn_ComesBackToWhereOneWas(t *testing.T) {
	t.Parallel()
	b := newRig(t).browser(t)
	away := b.get("/settings")
	if away.status != http.StatusSeeOther || away.location() != "/login?return_to=%2Fsettings" {
		t.Fatalf("without a login: %d to %q", away.status, away.location())
	}
	login := b.get(away.location()).html()
	start, ok := login.Find(`a[href^="/auth/github"]`).Attr("href")
	if !ok {
		t.Fatal("the sign-in page has no link to GitHub")
	}
	callback := b.authorize(b.get(start).location(), url.Values{"login": {owner}})
	if back := b.get(callback); back.status != http.StatusSeeOther || back.location() != "/settings" {
		t.Fatalf("callback: %d to %q: %s", back.status, back.location(), back.body)
	}
	if me := b.get("/me"); me.status != http.StatusOK || !strings.Contains(me.body, owner) {
		t.Errorf("/me = %d %s", me.status, me.body)
	}
}

func TestSignIn_SendsPKCEAndNeverTheReturnPath(t *testing.T) {
	t.Parallel()
	b := newRig(t).browser(t)
	u, err := url.Parse(b.get("/auth/github?return_to=/settings").location())
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) < 43 || len(q.Get("state")) < 20 {
		t.Errorf("authorize query = %v, want state and an S256 challenge", q)
	}
	if strings.Contains(u.String(), "settings") {
		t.Errorf("the return path went to GitHub: %s", u)
	}
}

func TestSignIn_TwoTabsBothWork(t *testing.T) {
	t.Parallel()
	b := newRig(t).browser(t)
	first := b.get("/auth/github?return_to=/settings").location()
	second := b.get("/auth/github?return_to=/installations").location()
	if back := b.get(b.authorize(first, url.Values{"login": {owner}})); back.location() != "/settings" {
		t.Errorf("first tab: %d to %q", back.status, back.location())
	}
	if back := b.get(b.authorize(second, url.Values{"login": {owner}})); back.location() != "/installations" {
		t.Errorf("second tab: %d to %q", back.status, back.location())
	}
}

func TestSignIn_AStateIsUsedOnce(t *testing.T) {
	t.Parallel()
	b := newRig(t).browser(t)
	callback := b.authorize(b.get("/auth/github").location(), url.Values{"login": {owner}})
	if back := b.get(callback); back.location() != "/" {
		t.Fatalf("first use: %d to %q", back.status, back.location())
	}
	if back := b.get(callback); back.location() != "/login?e=expired" {
		t.Errorf("second use: %d to %q, want the sign-in page", back.status, back.location())
	}
}

func TestSignIn_AStateBelongsToItsBrowser(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	attacker, victim := r.browser(t), r.browser(t)
	callback := attacker.authorize(attacker.get("/auth/github").location(), url.Values{"login": {outsider}})
	if back := victim.get(callback); back.location() != "/login?e=expired" {
		t.Errorf("a foreign callback: %d to %q, want the sign-in page", back.status, back.location())
	}
	if me := victim.get("/me", "Accept", "application/json"); me.status != http.StatusUnauthorized {
		t.Errorf("/me after it = %d, want 401", me.status)
	}
}

func TestSignIn_GivesTheCookieANewID(t *testing.T) {
	t.Parallel()
	b := newRig(t).browser(t)
	start := b.get("/auth/github").location()
	before := b.cookie()
	if before == "" {
		t.Fatal("no cookie before sign-in")
	}
	b.get(b.authorize(start, url.Values{"login": {owner}}))
	if after := b.cookie(); after == "" || after == before {
		t.Errorf("cookie %q after sign-in, %q before: want another one", after, before)
	}
	fixed := b.rig.browser(t)
	if a := fixed.get("/me", "Cookie", "session="+before, "Accept", "application/json"); a.status != http.StatusUnauthorized {
		t.Errorf("the id from before sign-in: %d, want 401", a.status)
	}
}

func TestSignIn_DeniedAtGitHub(t *testing.T) {
	t.Parallel()
	b := newRig(t).browser(t)
	back := b.get(b.authorize(b.get("/auth/github?return_to=/settings").location(), url.Values{"deny": {"1"}}))
	if back.location() != "/login?e=denied&return_to=%2Fsettings" {
		t.Fatalf("denied: %d to %q", back.status, back.location())
	}
	page := b.get(back.location())
	if !strings.Contains(page.body, "GitHub sign-in was cancelled.") {
		t.Errorf("the page does not say that it was cancelled")
	}
	if again, _ := page.html().Find(`a[href^="/auth/github"]`).Attr("href"); again != "/auth/github?return_to=%2Fsettings" {
		t.Errorf("the button leads to %q and forgets where one was going", again)
	}
	if a := b.get("/settings"); a.location() != "/login?return_to=%2Fsettings" {
		t.Errorf("somebody who never was signed in is sent to %q", a.location())
	}
}

func TestSignIn_GateFailsClosed(t *testing.T) {
	t.Parallel()
	gate := func(g chat.Gate) option { return func(_ *web.Options, have *chat.Gate) { *have = g } }
	for name, tt := range map[string]struct {
		gate  chat.Gate
		login string
		want  string // in the page, "" when let in
	}{
		"nobody configured":            {chat.Gate{}, owner, "Nobody may sign in here yet."},
		"empty entries":                {chat.Gate{AllowedLogins: []string{""}, AllowedOrgs: []string{" "}}, owner, "has no access here"},
		"another login":                {chat.Gate{AllowedLogins: []string{colleague}}, owner, "@" + owner + " has no access here"},
		"own login, other case":        {chat.Gate{AllowedLogins: []string{"OCTO-Owner"}}, owner, ""},
		"administrator":                {chat.Gate{AdminLogins: []string{owner}}, owner, ""},
		"sees the organization":        {chat.Gate{AllowedOrgs: []string{"octo-org"}}, reader, ""},
		"sees no installation of it":   {chat.Gate{AllowedOrgs: []string{"octo-org"}}, outsider, "has no access here"},
		"another organization is open": {chat.Gate{AllowedOrgs: []string{"octo-other"}}, owner, "has no access here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRig(t, gate(tt.gate)).browser(t)
			back := b.signIn(tt.login, "/")
			if tt.want == "" {
				if back.location() != "/" || b.get("/").status != http.StatusOK {
					t.Errorf("not let in: %d to %q: %s", back.status, back.location(), back.body)
				}
				return
			}
			if back.status != http.StatusForbidden || !strings.Contains(back.html().Text(), tt.want) {
				t.Errorf("answer %d without %q", back.status, tt.want)
			}
			if a := b.get("/me", "Accept", "application/json"); a.status != http.StatusUnauthorized {
				t.Errorf("/me = %d, want 401", a.status)
			}
		})
	}
}

func TestSignIn_GitHubDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser(t)
	callback := b.authorize(b.get("/auth/github").location(), url.Values{"login": {owner}})
	r.github.Fail(githubtest.Fault{Pattern: "POST /login/oauth/access_token", Status: http.StatusBadGateway})
	if back := b.get(callback); back.status != http.StatusServiceUnavailable || back.html().Find(`a[href^="/auth/github"]`).Length() == 0 {
		t.Errorf("GitHub down: %d, want 503 with the way to try again", back.status)
	}
}

func TestSignOut_KillsTheCookie(t *testing.T) {
	t.Parallel()
	b := newRig(t).signedIn(t, owner)
	stolen := b.cookie()
	out := b.post("/logout", nil)
	if out.status != http.StatusSeeOther || out.header.Get("Clear-Site-Data") != `"cache"` {
		t.Errorf("sign-out: %d, Clear-Site-Data %q", out.status, out.header.Get("Clear-Site-Data"))
	}
	if a := b.rig.browser(t).get("/me", "Cookie", "session="+stolen, "Accept", "application/json"); a.status != http.StatusUnauthorized {
		t.Errorf("the old cookie after sign-out: %d, want 401", a.status)
	}
}

func TestSignOut_OfOneBrowserLeavesTheOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.signedIn(t, owner), r.signedIn(t, owner)
	a.post("/logout", nil)
	if got := b.get("/me"); got.status != http.StatusOK {
		t.Errorf("/me in the other browser = %d", got.status)
	}
}

func TestReauth_WhenGitHubRevokedTheToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	if err := r.github.RevokeUser(owner); err != nil {
		t.Fatal(err)
	}
	away := b.get("/installations?stay=1")
	if away.status != http.StatusSeeOther || !strings.HasPrefix(away.location(), "/login?e=reauth") {
		t.Fatalf("after revocation: %d to %q", away.status, away.location())
	}
	if page := b.get(away.location()); page.status != http.StatusOK || !strings.Contains(page.html().Text(), "sign in again") {
		t.Errorf("the sign-in page does not show itself to somebody who is signed in: %d", page.status)
	}
	if back := b.signIn(owner, "/installations?stay=1"); back.location() != "/installations?stay=1" {
		t.Fatalf("second sign-in: %d to %q", back.status, back.location())
	}
	if a := b.get("/installations?stay=1"); a.status != http.StatusOK {
		t.Errorf("after it: %d", a.status)
	}
}
