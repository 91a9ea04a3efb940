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
