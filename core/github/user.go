package github

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"
	"golang.org/x/oauth2"

	"agent-sandboxing/core"
)

// Codes of a refused sign-in.
const (
	CodeSignInExpired  = "sign_in_expired"
	CodeClientRejected = "github_client_rejected"
)

// UserConfig is what people sign in with.
type UserConfig struct {
	Bases        Bases
	ClientID     string
	ClientSecret string
	RedirectURL  string           // our callback, exactly as registered with the App
	Timeout      time.Duration    // of one request; 0: 20 s
	Roots        *x509.CertPool   // that GitHub's certificate is checked against; nil: the system's
	Now          func() time.Time // nil: time.Now
}

// User asks GitHub with people's own tokens. It holds the OAuth client secret and no other key.
type User struct {
	bases Bases
	oauth oauth2.Config
	http  *http.Client
	now   func() time.Time
}

// NewUser asks GitHub nothing.
func NewUser(c UserConfig) *User {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &User{
		bases: c.Bases,
		oauth: oauth2.Config{
			ClientID: c.ClientID, ClientSecret: c.ClientSecret, RedirectURL: c.RedirectURL,
			Endpoint: oauth2.Endpoint{
				AuthURL:  c.Bases.OAuth + "/authorize",
				TokenURL: c.Bases.OAuth + "/access_token",
				// Set, because finding the style out would send the one-time code twice.
				AuthStyle: oauth2.AuthStyleInParams,
			},
		},
		http: newHTTPClient(c.Timeout, c.Roots),
		now:  c.Now,
	}
}

// String keeps the client secret out of logs.
func (*User) String() string { return "[github user client]" }

// GoString keeps the client secret out of %#v.
func (*User) GoString() string { return "[github user client]" }

// SignInURL is GitHub's authorize page for this state and PKCE verifier; only the verifier's SHA-256
// is in it.
func (u *User) SignInURL(state, verifier string) string {
	return u.oauth.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier))
}

// InstallURL is where the App is installed on another account.
func (u *User) InstallURL(appSlug string) string {
	apps := "/apps/"
	if u.bases.Web != "https://github.com" && !strings.HasPrefix(u.bases.API, "https://api.") {
		apps = "/github-apps/" // GitHub Enterprise Server
	}
	return u.bases.Web + apps + url.PathEscape(appSlug) + "/installations/new"
}

// Exchange spends a one-time code. Codes: sign_in_expired, github_client_rejected,
// github_rate_limited, github_unavailable.
func (u *User) Exchange(ctx context.Context, code, verifier string) (core.UserToken, error) {
	t, err := u.oauth.Exchange(context.WithValue(ctx, oauth2.HTTPClient, u.http), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return core.UserToken{}, u.grantRefused(ctx, err)
	}
	return u.userToken(t)
}

// Refresh spends t's refresh token for a new pair; both old tokens end. reauth_required when GitHub
// does not take it.
func (u *User) Refresh(ctx context.Context, t core.UserToken) (core.UserToken, error) {
	if t.Refresh == "" {
		return core.UserToken{}, reauthRequired()
	}
	// A source is made for one call: x/oauth2's own refreshing could not store the rotated pair.
	source := u.oauth.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, u.http), &oauth2.Token{RefreshToken: t.Refresh})
	fresh, err := source.Token()
	if err != nil {
		return core.UserToken{}, u.grantRefused(ctx, err)
	}
	return u.userToken(fresh)
}

// userToken reads the pair and, from the extra fields, the life of the refresh token.
func (u *User) userToken(t *oauth2.Token) (core.UserToken, error) {
	for _, secret := range []string{t.AccessToken, t.RefreshToken} {
		if strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return core.UserToken{}, unavailable().Because(errors.New("a token with characters that no header can hold"))
		}
	}
	out := core.UserToken{Access: t.AccessToken, Refresh: t.RefreshToken}
	if !t.Expiry.IsZero() {
		out.ExpiresAt = u.now().Add(time.Until(t.Expiry).Round(time.Second))
	}
	if s := seconds(t.Extra("refresh_token_expires_in")); s > 0 && t.RefreshToken != "" {
		out.RefreshExpiresAt = u.now().Add(s)
	}
	return out, nil
}

// seconds reads a number that came as JSON or in a form.
func seconds(v any) time.Duration {
	switch n := v.(type) {
	case int64:
		return time.Duration(n) * time.Second
	case float64:
		return time.Duration(n) * time.Second
	case string:
		i, err := strconv.ParseInt(n, 10, 32)
		if err == nil {
			return time.Duration(i) * time.Second
		}
	}
	return 0
}

// grantRefused reads a refusal of the token endpoint, which GitHub answers with status 200.
func (u *User) grantRefused(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	e, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return unavailable().Because(requestError(err, u.now()))
	}
	// Not e itself: its text holds the body of the answer.
	cause := &RequestError{Method: http.MethodPost, Path: "/login/oauth/access_token", Status: e.Response.StatusCode, RequestID: e.Response.Header.Get("X-GitHub-Request-Id"), Text: e.ErrorCode}
	switch e.ErrorCode {
	case "bad_verification_code":
		return core.Fail(core.Unauthenticated, CodeSignInExpired, "This sign-in was used already or took too long. Start it again.").Because(cause)
	case "bad_refresh_token":
		return reauthRequired().Because(cause)
	case "incorrect_client_credentials", "redirect_uri_mismatch", "unsupported_grant_type":
		return clientRejected().Because(cause)
	case "unverified_user_email":
		return core.Fail(core.Forbidden, CodeForbidden, "GitHub wants you to verify your e-mail address first.").Because(cause)
	}
	switch {
	case limited(e.Response, ""):
		return rateLimited(retryAt(e.Response.Header, u.now())).Because(cause)
	case e.Response.StatusCode == http.StatusNotFound:
		return clientRejected().Because(cause) // GitHub's answer to a client id that it does not know
	}
	return unavailable().Because(cause)
}

func clientRejected() *core.Error {
	return core.Fail(core.Unavailable, CodeClientRejected, "GitHub does not accept this server's sign-in settings. An administrator has to check GITHUB_CLIENT_ID, GITHUB_CLIENT_SECRET and the App's callback URL.")
}

// Person is who the token belongs to.
func (u *User) Person(ctx context.Context, t core.UserToken) (core.Person, error) {
	client, err := u.client(t)
	if err != nil {
		return core.Person{}, err
	}
	who, _, err := client.Users.Get(ctx, "")
	if err != nil {
		return core.Person{}, classify(ctx, err, byPerson, u.now())
	}
	if who.GetID() <= 0 || !validName(who.GetLogin()) {
		return core.Person{}, unavailable().Because(errors.New("GET /user answered nobody"))
	}
	return core.Person{ID: core.GitHubUserID(who.GetID()), Login: who.GetLogin(), Name: who.GetName()}, nil
}

// client is of one token, reauth_required without one.
func (u *User) client(t core.UserToken) (*gh.Client, error) {
	if t.Access == "" {
		return nil, reauthRequired()
	}
	client, err := newClient(u.http, u.bases, t.Access)
	if err != nil {
		return nil, fmt.Errorf("client for a person's token: %w", err)
	}
	return client, nil
}

// Disconnect takes back everything that the person gave to the App: all of their tokens end and GitHub
// asks again at the next sign-in. A grant that is not there any more is taken back already.
func (u *User) Disconnect(ctx context.Context, t core.UserToken) error {
	api, err := url.Parse(u.bases.API)
	if err != nil {
		return fmt.Errorf("GitHub API address: %w", err)
	}
	base := *u.http
	base.Transport = basic{next: u.http.Transport, host: api.Host, name: u.oauth.ClientID, password: u.oauth.ClientSecret}
	client, err := newClient(&base, u.bases, "")
	if err != nil {
		return err
	}
	_, err = client.Authorizations.DeleteGrant(ctx, u.oauth.ClientID, t.Access)
	err = classify(ctx, err, byClient, u.now())
	if core.KindOf(err) == core.NotFound || core.CodeOf(err) == CodeRejected {
		return nil
	}
	return err
}
