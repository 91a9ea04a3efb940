package github_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

// retryAt is when a failure says to try again, zero when it does not.
func retryAt(err error) time.Time {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.RetryAt
	}
	return time.Time{}
}

func TestErrors_EveryKindOfAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	u, token := w.user(), w.signIn(t, "octo-owner")
	now := w.server.Now()
	reset := now.Add(20 * time.Minute).Truncate(time.Second)
	header := func(kv ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(kv); i += 2 {
			h.Set(kv[i], kv[i+1])
		}
		return h
	}
	tests := []struct {
		name    string
		fault   githubtest.Fault
		kind    core.Kind
		code    string
		retry   time.Duration // from now, 0 for none
		message string        // has to be in it
	}{
		{"bad credentials", githubtest.Fault{Status: 401, Body: `{"message":"Bad credentials"}`}, core.Unauthenticated, github.CodeReauthRequired, 0, "Sign in again"},
		{"second factor", githubtest.Fault{Status: 401, Header: header("X-GitHub-OTP", "required; app"), Body: `{}`}, core.Unauthenticated, github.CodeReauthRequired, 0, ""},
		{"forbidden", githubtest.Fault{Status: 403, Body: `{"message":"Resource not accessible by integration"}`}, core.Forbidden, github.CodeForbidden, 0, ""},
		{"single sign-on", githubtest.Fault{Status: 403, Header: header("X-GitHub-SSO", "required; url=https://github.com/orgs/octo-org/sso?authorization_request=A"), Body: `{"message":"Resource protected by organization SAML enforcement."}`}, core.Forbidden, github.CodeSSORequired, 0, "organization octo-org demands"},
		{"single sign-on of a strange name", githubtest.Fault{Status: 403, Header: header("X-GitHub-SSO", "required; url=https://github.com/orgs/<b>/sso"), Body: `{}`}, core.Forbidden, github.CodeSSORequired, 0, "on GitHub, then"},
		{"IP allow list", githubtest.Fault{Status: 403, Body: `{"message":"Although you appear to have the correct authorization credentials, the octo-org organization has an IP allow list enabled, and your IP address is not permitted to access this resource."}`}, core.Forbidden, github.CodeIPNotAllowed, 0, "IP allow list"},
		{"suspended", githubtest.Fault{Status: 403, Body: `{"message":"This installation has been suspended"}`}, core.Conflict, github.CodeInstallationSuspended, 0, ""},
		{"legal", githubtest.Fault{Status: 451, Body: `{"message":"Repository access blocked"}`}, core.Forbidden, github.CodeForbidden, 0, ""},
		{"not found", githubtest.Fault{Status: 404, Body: `{"message":"Not Found"}`}, core.NotFound, "not_found", 0, ""},
		{"gone", githubtest.Fault{Status: 410, Body: `{}`}, core.NotFound, "not_found", 0, ""},
		{"conflict", githubtest.Fault{Status: 409, Body: `{"message":"Conflict"}`}, core.Invalid, github.CodeRejected, 0, ""},
		{"rejected", githubtest.Fault{Status: 422, Body: `{"message":"Validation Failed"}`}, core.Invalid, github.CodeRejected, 0, ""},
		{"primary limit", githubtest.Fault{Status: 403, Header: header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10)), Body: `{"message":"API rate limit exceeded"}`}, core.RateLimited, github.CodeRateLimited, 20 * time.Minute, reset.UTC().Format("15:04")},
		{"primary limit by its header alone", githubtest.Fault{Status: 403, Header: header("X-RateLimit-Remaining", "0"), Body: `{}`}, core.RateLimited, github.CodeRateLimited, time.Minute, ""},
		{"429 with a time", githubtest.Fault{Status: 429, Header: header("Retry-After", "90"), Body: `{}`}, core.RateLimited, github.CodeRateLimited, 90 * time.Second, ""},
		{"429 without a time", githubtest.Fault{Status: 429}, core.RateLimited, github.CodeRateLimited, time.Minute, ""},
		{"429 with a mad time", githubtest.Fault{Status: 429, Header: header("Retry-After", "9999999999")}, core.RateLimited, github.CodeRateLimited, time.Hour, ""},
		{"secondary limit by text", githubtest.Fault{Status: 403, Body: `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes."}`}, core.RateLimited, github.CodeRateLimited, time.Minute, ""},
		{"secondary limit by address", githubtest.Fault{Status: 403, Header: header("Retry-After", "30"), Body: `{"message":"x","documentation_url":"https://docs.github.com/rest/overview/resources-in-the-rest-api#secondary-rate-limits"}`}, core.RateLimited, github.CodeRateLimited, 30 * time.Second, ""},
		{"server error", githubtest.Fault{Status: 500, Body: `{"message":"Server Error"}`}, core.Unavailable, github.CodeUnavailable, 0, ""},
		{"bad gateway in HTML", githubtest.Fault{Status: 502, Body: "<html>"}, core.Unavailable, github.CodeUnavailable, 0, ""},
		{"not ready", githubtest.Fault{Status: 202, Body: `{}`}, core.Unavailable, github.CodeUnavailable, 0, ""},
		{"not JSON", githubtest.Fault{Status: 200, Body: "<html>login</html>"}, core.Unavailable, github.CodeUnavailable, 0, ""},
		{"nothing", githubtest.Fault{Status: 200}, core.Unavailable, github.CodeUnavailable, 0, ""},
		{"nobody", githubtest.Fault{Status: 200, Body: `{"id":0}`}, core.Unavailable, github.CodeUnavailable, 0, ""},
		{"cut before an answer", githubtest.Fault{Cut: true}, core.Unavailable, github.CodeUnavailable, 0, ""},
		{"cut in the body", githubtest.Fault{Status: 200, Body: `{"id":1,`, Cut: true}, core.Unavailable, github.CodeUnavailable, 0, ""},
		{"too large", githubtest.Fault{Status: 200, Body: `{"id":1,"login":"` + strings.Repeat("x", 17<<20) + `"}`}, core.Unavailable, github.CodeUnavailable, 0, ""},
		{"too large a refusal", githubtest.Fault{Status: 500, Body: strings.Repeat("x", 17<<20)}, core.Unavailable, github.CodeUnavailable, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.server.ClearFaults()
			tt.fault.Pattern = "GET /api/v3/user"
			w.server.Fail(tt.fault)
			_, err := u.Person(t.Context(), token)
			wantCode(t, err, tt.kind, tt.code)
			if !strings.Contains(core.MessageOf(err), tt.message) || strings.ContainsAny(core.MessageOf(err), "<>") {
				t.Errorf("message %q, want %q in it and no markup", core.MessageOf(err), tt.message)
			}
			at := retryAt(err)
			if at.IsZero() != (tt.retry == 0) || tt.retry != 0 && at.Sub(now.Add(tt.retry)).Abs() > 30*time.Second {
				t.Errorf("retry at %v, want %v from %v", at, tt.retry, now)
			}
			var cause *github.RequestError
			if tt.fault.Status >= 400 && (!errors.As(err, &cause) || cause.Status != tt.fault.Status || cause.Path != "/api/v3/user") {
				t.Errorf("cause %+v does not say what was asked and answered", cause)
			}
		})
	}
}

func TestErrors_TimeoutAndRefusedConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.signIn(t, "octo-owner")
	w.server.Fail(githubtest.Fault{Pattern: "/api/v3/", Delay: time.Minute})
	slow := github.NewUser(github.UserConfig{Bases: w.bases, Timeout: 50 * time.Millisecond})
	_, err := slow.Person(t.Context(), token)
	wantCode(t, err, core.Unavailable, github.CodeUnavailable)

	refused := github.NewUser(github.UserConfig{Bases: closedBases(t)})
	_, err = refused.Person(t.Context(), token)
	wantCode(t, err, core.Unavailable, github.CodeUnavailable)
	_, err = refused.Exchange(t.Context(), "code", "verifier")
	wantCode(t, err, core.Unavailable, github.CodeUnavailable)
}

func TestErrors_RateLimitOfTheTokenEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	w.server.Fail(githubtest.Fault{Pattern: "POST /login/oauth/access_token", Status: 429, Header: http.Header{"Retry-After": {"40"}}, Body: "{}"})
	_, err := w.user().Exchange(t.Context(), "c", "v")
	wantCode(t, err, core.RateLimited, github.CodeRateLimited)
	if retryAt(err).IsZero() {
		t.Error("no time to try again")
	}
}

func TestErrors_ALimitOfOneTokenDoesNotStopAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	u, first, second := w.user(), w.signIn(t, "octo-owner"), w.signIn(t, "octo-reader")
	w.server.Fail(githubtest.Fault{
		Pattern: "GET /api/v3/user", Status: 403, Count: 1, Body: "{}",
		Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {strconv.FormatInt(w.server.Now().Add(time.Hour).Unix(), 10)}},
	})
	_, err := u.Person(t.Context(), first)
	wantCode(t, err, core.RateLimited, github.CodeRateLimited)
	if _, err := u.Person(t.Context(), second); err != nil {
		t.Errorf("the other person is stopped too: %v", err)
	}
}
