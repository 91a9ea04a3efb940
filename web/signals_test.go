package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
)

// Every way in which access goes away on GitHub, with the page and the code that its owner gets, what a
// stranger gets, and that nothing of the session is lost.
func TestSignals_EachHasItsPage(t *testing.T) {
	t.Parallel()
	const lists = "GET /api/v3/user/installations/{id}/repositories"
	sso := "/orgs/octo-org/sso?authorization_request=A"
	for name, tt := range map[string]struct {
		happens func(r *rig) error
		status  int
		code    string
		says    string
		link    string // in the page, below the stand-in's address
	}{
		"the person revoked the App": {
			func(r *rig) error { return r.github.RevokeUser(owner) },
			http.StatusUnauthorized, "reauth_required", "sign in again", "",
		},
		"the person lost the repository": {
			func(r *rig) error {
				return r.github.SetPermission("octo-org/web-app", owner, githubtest.NoPermission)
			},
			http.StatusForbidden, "repository_access_lost", "You do not have access to octo-org/web-app on GitHub any more", "",
		},
		"the person lost every repository": {
			func(r *rig) error {
				for _, name := range []string{"web-app", "old-app", "empty-app"} {
					if err := r.github.SetPermission("octo-org/"+name, owner, githubtest.NoPermission); err != nil {
						return err
					}
				}
				return nil
			},
			http.StatusForbidden, "repository_access_lost", "The session is kept", "",
		},
		"removed from the selection": {
			func(r *rig) error { return r.github.SelectRepositories(r.installation, "octo-org/old-app") },
			http.StatusForbidden, "repository_access_lost", "The session is kept", "",
		},
		"a public one removed from the selection": {
			func(r *rig) error {
				if err := r.github.SetPrivate("octo-org/web-app", false); err != nil {
					return err
				}
				return r.github.SelectRepositories(r.installation, "octo-org/old-app")
			},
			http.StatusForbidden, "repository_not_selected", "ask the owner of octo-org to add the repository", "",
		},
		"suspended": {
			func(r *rig) error { return r.github.SetSuspended(r.installation, true) },
			http.StatusConflict, "installation_suspended", "suspended on this account", "",
		},
		"the organization demands single sign-on": {
			func(r *rig) error {
				r.github.Fail(githubtest.Fault{
					Pattern: lists, Status: http.StatusForbidden, Header: http.Header{"X-Github-Sso": {"required; url=" + r.githubURL + sso}},
					Body: `{"message":"Resource protected by organization SAML enforcement."}`,
				})
				return nil
			},
			http.StatusForbidden, "github_sso_required", "organization octo-org demands single sign-on", sso,
		},
		"an address of another site is no link": {
			func(r *rig) error {
				r.github.Fail(githubtest.Fault{
					Pattern: lists, Status: http.StatusForbidden, Header: http.Header{"X-Github-Sso": {"required; url=https://evil.test" + sso}}, Body: `{"message":"SAML"}`,
				})
				return nil
			},
			http.StatusForbidden, "github_sso_required", "demands single sign-on", "",
		},
		"the organization lets few addresses in": {
			func(r *rig) error {
				r.github.Fail(githubtest.Fault{
					Pattern: lists, Status: http.StatusForbidden,
					Body: `{"message":"Although you appear to have the correct authorization credentials, the octo-org organization has an IP allow list enabled, and your IP address is not permitted to access this resource."}`,
				})
				return nil
			},
			http.StatusForbidden, "github_ip_not_allowed", "IP allow list", "",
		},
		"the rate limit is used up": {
			func(r *rig) error {
				r.github.Fail(githubtest.Fault{Pattern: lists, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"77"}}, Body: `{"message":"wait"}`})
				return nil
			},
			http.StatusTooManyRequests, "github_rate_limited", "Try again after", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			b := r.signedIn(t, owner)
			s := b.finished()
			path := "/chat-sessions/" + string(s.id)
			if err := tt.happens(r); err != nil {
				t.Fatal(err)
			}
			r.chat.AccessChanged(0) // or a minute later
			asJSON := b.get(path, "Accept", "application/json")
			if asJSON.status != tt.status || asJSON.code() != tt.code {
				t.Errorf("as JSON: %d %s, want %d %s", asJSON.status, asJSON.body, tt.status, tt.code)
			}
			page := b.get(path)
			if tt.status == http.StatusUnauthorized {
				if page = b.get(page.location()); page.status != http.StatusOK {
					t.Errorf("the sign-in page: %d", page.status)
				}
			} else if page.status != tt.status {
				t.Errorf("page: %d, want %d", page.status, tt.status)
			}
			if !strings.Contains(page.html().Text(), tt.says) {
				t.Errorf("the page does not say %q:\n%s", tt.says, page.html().Find("main").Text())
			}
			if linked := page.html().Find(`a[href="`+r.githubURL+tt.link+`"]`).Length() > 0; tt.link != "" && !linked || strings.Contains(page.body, "evil.test") {
				t.Errorf("the page leads elsewhere than to %q", tt.link)
			}
			if a := b.post(path+"/publish", url.Values{"title": {"x"}}, "Accept", "application/json"); a.status != tt.status || a.code() != tt.code {
				t.Errorf("publish: %d %s, want %s", a.status, a.body, tt.code)
			}
			if _, err := r.store.Session(t.Context(), s.id); err != nil {
				t.Errorf("the session: %v", err)
			}
			r.github.ClearFaults()
			if a := r.signedIn(t, outsider).get(path, "Accept", "application/json"); a.status != http.StatusNotFound {
				t.Errorf("a stranger: %d, want 404", a.status)
			}
		})
	}
}

// The account page says what is wrong with each account, and shows the others.
func TestInstallations_SayWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	if err := r.github.SetInstallationPermissions(r.installation, map[string]string{"metadata": "read", "contents": "read"}); err != nil {
		t.Fatal(err)
	}
	r.github.Fail(githubtest.Fault{Pattern: "GET /api/v3/user/installations", Header: http.Header{"X-Github-Sso": {"partial-results; organizations=1,2"}}})
	page := b.get("/installations?refresh=1")
	page = b.get(page.location())
	text := page.html().Find("main").Text()
	for _, want := range []string{"contents:write and pull_requests:write", "leaves out 2 organizations", "octo-org"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	if again := page.html().Find(`[data-testid="hidden"] a`).AttrOr("href", ""); !strings.HasPrefix(again, "/auth/github?") {
		t.Errorf("signing in again leads to %q", again)
	}
	if settings := page.html().Find(`[data-testid="installations"] a[rel]`).AttrOr("href", ""); !strings.HasPrefix(settings, r.githubURL+"/") {
		t.Errorf("the settings are at %q", settings)
	}
	if a := b.get("/installations"); a.status != http.StatusOK {
		t.Errorf("with something to mend the page is skipped: %d to %q", a.status, a.location())
	}
}

// No answer of GitHub's makes a page ask again and again.
func TestSignals_NoStorm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	path := "/chat-sessions/" + string(b.finished().id)
	if err := r.github.RevokeUser(owner); err != nil {
		t.Fatal(err)
	}
	r.chat.AccessChanged(0)
	before := len(r.github.Requests())
	for range 5 {
		if a := b.get(path, "Accept", "application/json"); a.code() != "reauth_required" {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if n := len(r.github.Requests()) - before; n != 2 { // the list, and the refresh that was refused
		t.Errorf("five looks with a revoked token cost %d requests, want 2: %v", n, r.github.Requests()[before:])
	}
}

// What the App lacks is said to administrators on every page and to everybody where accounts are chosen.
func TestAppProblem_IsSaidToWhoCanMendIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const problem = "The GitHub App lacks contents:write."
	err := r.store.SaveWorker(t.Context(), core.Worker{
		ID: core.NewID[core.WorkerID](), Host: "host-1", Version: "test", Capacity: 1, Status: core.WorkerStatus{Docker: "ok", AppProblem: problem},
	})
	if err != nil {
		t.Fatal(err)
	}
	boss, member := r.signedIn(t, admin), r.signedIn(t, owner)
	for path, want := range map[string][2]bool{"/": {true, false}, "/settings": {true, false}, "/installations?stay=1": {true, true}} {
		for i, b := range []*browser{boss, member} {
			if n := strings.Count(b.get(path).html().Text(), problem); (n == 1) != want[i] || n > 1 {
				t.Errorf("%s says it %d times to the %s", path, n, []string{"administrator", "member"}[i])
			}
		}
	}
}
