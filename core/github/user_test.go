package github_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

const callback = "http://127.0.0.1:8080/auth/github/callback"

func (w *world) user() *github.User {
	cfg := w.server.Config()
	return github.NewUser(github.UserConfig{
		Bases: w.bases, ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret, RedirectURL: callback, Now: w.server.Now,
	})
}

// choose presses a button of the authorize page, as a browser would, and returns the callback's query.
func choose(t *testing.T, address, button, value string) url.Values {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page := get(t, client, address)
	form := url.Values{button: {value}}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method"} {
		if v := u.Query().Get(name); v != "" {
			form.Set(name, v)
			if !strings.Contains(page, `name="`+name+`"`) {
				t.Fatalf("the page does not carry %s", name)
			}
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.Scheme+"://"+u.Host+u.Path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		t.Fatalf("status %d and no redirect: %v", resp.StatusCode, err)
	}
	if !strings.HasPrefix(to.String(), callback+"?") {
		t.Fatalf("redirected to %s, want the callback", to)
	}
	return to.Query()
}

func get(t *testing.T, client *http.Client, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func (w *world) signIn(t *testing.T, login string) core.UserToken {
	t.Helper()
	u, verifier := w.user(), oauth2.GenerateVerifier()
	q := choose(t, u.SignInURL("state-1", verifier), "login", login)
	if q.Get("state") != "state-1" {
		t.Fatalf("state came back as %q", q.Get("state"))
	}
	token, err := u.Exchange(t.Context(), q.Get("code"), verifier)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func wantCode(t *testing.T, err error, kind core.Kind, code string) {
	t.Helper()
	if core.KindOf(err) != kind || core.CodeOf(err) != code {
		t.Errorf("error %v is %s %s, want %s %s", err, core.KindOf(err), core.CodeOf(err), kind, code)
	}
}

func TestSignIn_TokenBelongsToThePersonWhoWasChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.signIn(t, "octo-reader")
	if token.Refresh == "" || token.ExpiresAt.Sub(w.server.Now()).Round(time.Minute) != 8*time.Hour || token.RefreshExpiresAt.Before(w.server.Now().Add(180*24*time.Hour)) {
		t.Errorf("lives of the pair are wrong: %v, %v", token.ExpiresAt, token.RefreshExpiresAt)
	}
	person, err := w.user().Person(t.Context(), token)
	if err != nil || person.Login != "octo-reader" || person.ID == 0 {
		t.Errorf("Person = %+v, %v", person, err)
	}
}

func TestSignIn_Denied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	q := choose(t, w.user().SignInURL("s", oauth2.GenerateVerifier()), "deny", "1")
	if q.Get("error") != "access_denied" || q.Get("state") != "s" || q.Get("code") != "" {
		t.Errorf("callback got %v", q)
	}
}

func TestExchange_Refusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	code := func(t *testing.T) (code, verifier string) {
		verifier = oauth2.GenerateVerifier()
		return choose(t, w.user().SignInURL("s", verifier), "login", "octo-owner").Get("code"), verifier
	}
	t.Run("another verifier", func(t *testing.T) {
		c, _ := code(t)
		_, err := w.user().Exchange(t.Context(), c, oauth2.GenerateVerifier())
		wantCode(t, err, core.Unauthenticated, github.CodeSignInExpired)
	})
	t.Run("no verifier", func(t *testing.T) {
		c, _ := code(t)
		_, err := w.user().Exchange(t.Context(), c, "")
		wantCode(t, err, core.Unauthenticated, github.CodeSignInExpired)
	})
	t.Run("a code twice", func(t *testing.T) {
		c, v := code(t)
		if _, err := w.user().Exchange(t.Context(), c, v); err != nil {
			t.Fatal(err)
		}
		_, err := w.user().Exchange(t.Context(), c, v)
		wantCode(t, err, core.Unauthenticated, github.CodeSignInExpired)
	})
	t.Run("wrong client secret", func(t *testing.T) {
		c, v := code(t)
		u := github.NewUser(github.UserConfig{Bases: w.bases, ClientID: w.server.Config().ClientID, ClientSecret: "wrong", RedirectURL: callback})
		_, err := u.Exchange(t.Context(), c, v)
		wantCode(t, err, core.Unavailable, github.CodeClientRejected)
	})
	t.Run("another callback", func(t *testing.T) {
		c, v := code(t)
		cfg := w.server.Config()
		u := github.NewUser(github.UserConfig{Bases: w.bases, ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret, RedirectURL: callback + "/other"})
		_, err := u.Exchange(t.Context(), c, v)
		wantCode(t, err, core.Unavailable, github.CodeClientRejected)
	})
}

func TestExchange_ExpiredCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	verifier := oauth2.GenerateVerifier()
	code := choose(t, w.user().SignInURL("s", verifier), "login", "octo-owner").Get("code")
	w.server.Advance(11 * time.Minute)
	_, err := w.user().Exchange(t.Context(), code, verifier)
	wantCode(t, err, core.Unauthenticated, github.CodeSignInExpired)
}

func TestExchange_SendsTheCodeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	_, err := w.user().Exchange(t.Context(), "nothing", "nothing")
	wantCode(t, err, core.Unauthenticated, github.CodeSignInExpired)
	sent := slices.DeleteFunc(w.server.Requests(), func(r string) bool { return r != "POST /login/oauth/access_token" })
	if len(sent) != 1 {
		t.Errorf("the token endpoint was asked %d times, want once", len(sent))
	}
}

func TestExchange_ReadsJSONToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	w.server.Fail(githubtest.Fault{
		Pattern: "POST /login/oauth/access_token", Status: http.StatusOK,
		Body: `{"access_token":"ghu_a","refresh_token":"ghr_b","expires_in":28800,"refresh_token_expires_in":100,"token_type":"bearer"}`,
	})
	token, err := w.user().Exchange(t.Context(), "c", "v")
	if err != nil || token.Access != "ghu_a" || token.Refresh != "ghr_b" || token.RefreshExpiresAt.Sub(w.server.Now()).Round(10*time.Second) != 100*time.Second {
		t.Errorf("token = %+v, %v", token, err)
	}
}

func TestRefresh_RotatesThePair(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	old := w.signIn(t, "octo-owner")
	w.server.Advance(9 * time.Hour)
	_, err := w.user().Person(t.Context(), old)
	wantCode(t, err, core.Unauthenticated, github.CodeReauthRequired)

	fresh, err := w.user().Refresh(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Access == old.Access || fresh.Refresh == old.Refresh || !fresh.ExpiresAt.After(w.server.Now()) {
		t.Error("the pair was not rotated")
	}
	if p, err := w.user().Person(t.Context(), fresh); err != nil || p.Login != "octo-owner" {
		t.Errorf("Person = %+v, %v", p, err)
	}
	_, err = w.user().Refresh(t.Context(), old)
	wantCode(t, err, core.Unauthenticated, github.CodeReauthRequired)
	_, err = w.user().Refresh(t.Context(), core.UserToken{Access: "x"})
	wantCode(t, err, core.Unauthenticated, github.CodeReauthRequired)
}

func TestRefresh_AfterRevocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.signIn(t, "octo-owner")
	if err := w.server.RevokeUser("octo-owner"); err != nil {
		t.Fatal(err)
	}
	_, err := w.user().Installations(t.Context(), token)
	wantCode(t, err, core.Unauthenticated, github.CodeReauthRequired)
	_, err = w.user().Refresh(t.Context(), token)
	wantCode(t, err, core.Unauthenticated, github.CodeReauthRequired)
}

func TestSignInURL_HidesTheVerifier(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	verifier := oauth2.GenerateVerifier()
	u, err := url.Parse(w.user().SignInURL("abc", verifier))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if strings.Contains(u.String(), verifier) || q.Get("code_challenge") != oauth2.S256ChallengeFromVerifier(verifier) ||
		q.Get("code_challenge_method") != "S256" || q.Get("state") != "abc" || q.Get("redirect_uri") != callback {
		t.Errorf("sign-in address %s", u)
	}
	if strings.Contains(u.String(), w.server.Config().ClientSecret) {
		t.Error("the client secret is in the address")
	}
}

func TestPrinting_ShowsNoSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenRead)
	secret := w.server.Config().ClientSecret
	for _, text := range []string{
		fmt.Sprintf("%v %+v %#v", w.user(), w.user(), w.user()), fmt.Sprintf("%v %+v %#v", w.app, w.app, w.app),
		fmt.Sprintf("%v %+v %#v", token, token, token),
	} {
		if strings.Contains(text, secret) || strings.Contains(text, token.Value) || strings.Contains(text, "PrivateKey") {
			t.Errorf("printed %q", text)
		}
	}
}

func TestErrors_CarryNoTokenAndNoForeignText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.signIn(t, "octo-owner")
	w.server.Fail(githubtest.Fault{Pattern: "/api/v3/", Status: http.StatusForbidden, Body: `{"message":"canary-text"}`})
	w.server.Fail(githubtest.Fault{Pattern: "/login/oauth/access_token", Status: http.StatusInternalServerError, Body: "canary-text"})
	_, apiErr := w.user().Person(t.Context(), token)
	_, grantErr := w.user().Refresh(t.Context(), token)
	unreachable := github.NewUser(github.UserConfig{Bases: closedBases(t), ClientID: "id", ClientSecret: "canary-text"})
	_, netErr := unreachable.Person(t.Context(), token)
	_, codeErr := unreachable.Exchange(t.Context(), "canary-text", "canary-text")
	for _, err := range []error{apiErr, grantErr, netErr, codeErr} {
		if err == nil {
			t.Fatal("no error")
		}
		text := fmt.Sprintf("%v %+v", err, err)
		for _, secret := range []string{token.Access, token.Refresh, w.server.Config().ClientSecret, "canary-text"} {
			if strings.Contains(text, secret) {
				t.Errorf("error %q holds a secret or GitHub's text", text)
			}
		}
	}
}

// closedBases is a GitHub that refuses connections.
func closedBases(t *testing.T) github.Bases {
	t.Helper()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	b, err := github.NewBases(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLists_AreWhatThePersonReaches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	other := w.addRepository(t, "gadgets", true)
	if err := w.server.SetPermission("octo-org/gadgets", "octo-reader", githubtest.NoPermission); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		login string
		want  map[core.RepositoryID]string
	}{
		{"octo-owner", map[core.RepositoryID]string{w.repo.ID: "pull push", other.ID: "pull push"}},
		{"octo-reader", map[core.RepositoryID]string{w.repo.ID: "pull"}},
	}
	for _, tt := range tests {
		t.Run(tt.login, func(t *testing.T) {
			u, token := w.user(), w.signIn(t, tt.login)
			ins, err := u.Installations(t.Context(), token)
			if err != nil || len(ins) != 1 || ins[0].ID != w.repo.InstallationID || ins[0].Account != "octo-org" || ins[0].AccountType != "Organization" || !ins[0].AllRepos {
				t.Fatalf("Installations = %+v, %v", ins, err)
			}
			repos, err := u.Repositories(t.Context(), token, ins[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			got := map[core.RepositoryID]string{}
			for _, r := range repos {
				if r.InstallationID != w.repo.InstallationID {
					t.Errorf("%s is under installation %d", r.Name, r.InstallationID)
				}
				may := ""
				if r.CanPull {
					may = "pull"
				}
				if r.CanPush {
					may += " push"
				}
				got[r.ID] = may
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("repositories (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("stranger", func(t *testing.T) {
		u, token := w.user(), w.signIn(t, "octo-stranger")
		if ins, err := u.Installations(t.Context(), token); err != nil || len(ins) != 0 {
			t.Errorf("Installations = %+v, %v", ins, err)
		}
		_, err := u.Repositories(t.Context(), token, w.repo.InstallationID)
		wantCode(t, err, core.NotFound, "not_found")
		_, err = u.Repository(t.Context(), token, w.repo.ID)
		wantCode(t, err, core.NotFound, "not_found")
		_, err = u.Branch(t.Context(), token, w.repo, "main")
		wantCode(t, err, core.NotFound, "not_found")
	})
}

func TestRepositories_ReadsEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	want := map[string]bool{"widgets": true}
	for i := range 130 {
		name := fmt.Sprintf("repo-%03d", i)
		w.addRepository(t, name, i%2 == 0)
		want[name] = true
	}
	repos, err := w.user().Repositories(t.Context(), w.signIn(t, "octo-reader"), w.repo.InstallationID)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, r := range repos {
		if got[r.Name] {
			t.Errorf("%s came twice", r.Name)
		}
		got[r.Name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestRepositories_NextLinkIsNeverFollowedElsewhere(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	defer elsewhere.Close()
	w := newWorld(t, githubtest.Options{})
	token := w.signIn(t, "octo-owner")
	w.server.Fail(githubtest.Fault{
		Pattern: "GET /api/v3/user/installations/{id}/repositories", Count: 1,
		Header: http.Header{"Link": {"<" + elsewhere.URL + `/x?page=2>; rel="next"`}},
	})
	w.server.Fail(githubtest.Fault{
		Pattern: "GET /api/v3/user", Status: http.StatusFound, Header: http.Header{"Location": {elsewhere.URL + "/user"}},
	})
	if _, err := w.user().Repositories(t.Context(), token, w.repo.InstallationID); err != nil {
		t.Error(err)
	}
	_, err := w.user().Person(t.Context(), token)
	wantCode(t, err, core.Unavailable, github.CodeUnavailable)
	select {
	case auth := <-asked:
		t.Errorf("another host was asked; a credential went there: %t", auth != "")
	default:
	}
}

func TestRepository_FollowsARenameAndRefusesAnotherID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	u, token := w.user(), w.signIn(t, "octo-owner")
	if err := w.server.RenameRepository("octo-org/widgets", "gizmos"); err != nil {
		t.Fatal(err)
	}
	got, err := u.Repository(t.Context(), token, w.repo.ID)
	if err != nil || got.Name != "gizmos" || !got.CanPush || !got.Private || got.DefaultBranch != "main" || got.Language != "Go" {
		t.Errorf("Repository = %+v, %v", got, err)
	}
	// The old name still resolves: GitHub redirects to the address by id.
	if b, err := u.Branch(t.Context(), token, w.repo, "main"); err != nil || b.SHA != w.base {
		t.Errorf("Branch by the old name = %+v, %v", b, err)
	}
	w.server.Fail(githubtest.Fault{Pattern: "GET /api/v3/repositories/{id}", Status: 200, Body: `{"id":7,"name":"x","owner":{"login":"y"}}`})
	_, err = u.Repository(t.Context(), token, w.repo.ID)
	wantCode(t, err, core.Unavailable, github.CodeUnavailable)
}

func TestBranches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	for _, name := range []string{"alpha", "feature/one", "feature/two", "zeta-Feature"} {
		if _, err := w.server.Commit(t.Context(), "octo-org/widgets", githubtest.Commit{Branch: name, Message: "On " + name, Files: map[string]githubtest.File{"x": githubtest.Text(name)}}); err != nil {
			t.Fatal(err)
		}
	}
	u, token := w.user(), w.signIn(t, "octo-reader")
	tests := []struct {
		query string
		limit int
		want  []string
	}{
		{"", 10, []string{"main", "alpha", "feature/one", "feature/two", "zeta-Feature"}},
		{"", 2, []string{"main", "alpha"}},
		{"feature", 10, []string{"feature/one", "feature/two", "zeta-Feature"}},
		{"MAI", 10, []string{"main"}},
		{"nothing", 10, nil},
		{"../../../user", 10, nil},
	}
	for _, tt := range tests {
		got, err := u.Branches(t.Context(), token, w.repo, tt.query, tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, b := range got {
			names = append(names, b.Name)
		}
		if diff := cmp.Diff(tt.want, names); diff != "" {
			t.Errorf("Branches(%q, %d) (-want +got):\n%s", tt.query, tt.limit, diff)
		}
	}
}

func TestBranches_FindsOneBehindTheScannedPagesByItsPrefix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	var many []githubtest.Commit
	for i := range 1050 {
		many = append(many, githubtest.Commit{Branch: fmt.Sprintf("branch-%04d", i), Message: "x", Files: map[string]githubtest.File{"x": githubtest.Text("x")}})
	}
	many = append(many, githubtest.Commit{Branch: "zz-last", Message: "x", Files: map[string]githubtest.File{"x": githubtest.Text("x")}})
	if _, err := w.server.Commit(t.Context(), "octo-org/widgets", many...); err != nil {
		t.Fatal(err)
	}
	u, token := w.user(), w.signIn(t, "octo-reader")
	got, err := u.Branches(t.Context(), token, w.repo, "zz", 10)
	if err != nil || len(got) != 1 || got[0].Name != "zz-last" {
		t.Errorf("Branches = %+v, %v", got, err)
	}
	if got, err = u.Branches(t.Context(), token, w.repo, "", 10); err != nil || len(got) != 10 || got[0].Name != "main" {
		t.Errorf("default branch is not first: %+v, %v", got, err)
	}
}

func TestBranch_ResolvesCommitAndSubject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	date := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	sha, err := w.server.Commit(t.Context(), "octo-org/widgets", githubtest.Commit{
		Branch: "feature/ü#1%2f", Message: "Subject line\n\nBody", Date: date, Files: map[string]githubtest.File{"a\nb": githubtest.Text("odd name")},
	})
	if err != nil {
		t.Fatal(err)
	}
	u, token := w.user(), w.signIn(t, "octo-reader")
	got, err := u.Branch(t.Context(), token, w.repo, "feature/ü#1%2f")
	if err != nil {
		t.Fatal(err)
	}
	want := core.Branch{Name: "feature/ü#1%2f", SHA: sha, Subject: "Subject line", CommittedAt: date}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Branch (-want +got):\n%s", diff)
	}
	for _, name := range []string{"", "feature", "main/x", "../../../../user", "a/../main", "refs/heads/main"} {
		_, err := u.Branch(t.Context(), token, w.repo, name)
		wantCode(t, err, core.NotFound, "not_found")
	}
}

func TestBranch_EmptyRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	empty := w.addRepository(t, "empty", true)
	u, token := w.user(), w.signIn(t, "octo-owner")
	_, err := u.Branch(t.Context(), token, empty, "main")
	wantCode(t, err, core.Conflict, github.CodeEmptyRepository)
	if got, err := u.Branches(t.Context(), token, empty, "", 10); err != nil || len(got) != 0 {
		t.Errorf("Branches = %+v, %v; want none", got, err)
	}
}

func TestRequests_CancelledContextStaysCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.signIn(t, "octo-owner")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.user().Person(ctx, token)
	if !errors.Is(err, ctx.Err()) || core.KindOf(err) != core.Internal {
		t.Errorf("error %v, want %v itself", err, ctx.Err())
	}
}
