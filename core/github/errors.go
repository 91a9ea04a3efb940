package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"agent-sandboxing/core"
)

// Codes of this package, beside those of a mint and of a pull request.
const (
	CodeReauthRequired  = "reauth_required"
	CodeForbidden       = "github_forbidden"
	CodeSSORequired     = "github_sso_required"
	CodeIPNotAllowed    = "github_ip_not_allowed"
	CodeRejected        = "github_rejected"
	CodeRateLimited     = "github_rate_limited"
	CodeUnavailable     = "github_unavailable"
	CodeAppUnauthorized = "github_app_unauthorized"
	CodeEmptyRepository = "empty_repository"
	CodeArchived        = "repository_archived"
)

// RequestError is the cause of an Error of this package, for logs: what was asked and how GitHub
// answered. Text is GitHub's own message, kept for decisions and out of Error.
type RequestError struct {
	Method, Path string
	Status       int // 0 when there was no answer
	RequestID    string
	Text         string
	Fields       []gh.Error
	RetryAt      time.Time // of a rate limit
	Err          error     // without an answer
}

func (e *RequestError) Error() string {
	switch {
	case e.Status == 0 && e.Method == "":
		return fmt.Sprintf("unreadable answer: %v", e.Err)
	case e.Status == 0:
		return fmt.Sprintf("%s %s: no answer: %v", e.Method, e.Path, e.Err)
	}
	return fmt.Sprintf("%s %s: status %d, request id %q", e.Method, e.Path, e.Status, e.RequestID)
}

func (e *RequestError) Unwrap() error { return e.Err }

// holder is whose credential a request carried; a refusal means something else for each.
type holder int

const (
	byPerson holder = iota
	byApp
	byInstallation
	byClient // its id and secret
)

// classify turns what go-github returned into a core.Error. A cancelled ctx stays what it is.
func classify(ctx context.Context, err error, by holder, now time.Time) error {
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	cause := requestError(err, now)
	switch {
	case cause.Status == 0 || cause.Status >= 500:
		return unavailable().Because(cause)
	case !cause.RetryAt.IsZero():
		return rateLimited(cause.RetryAt).Because(cause)
	}
	switch cause.Status {
	case http.StatusUnauthorized:
		return unauthorized(by).Because(cause)
	case http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		return forbidden(cause, err, by).Because(cause)
	case http.StatusNotFound, http.StatusGone:
		return core.NotFoundError().Because(cause)
	case http.StatusConflict:
		if strings.Contains(cause.Text, "Git Repository is empty") {
			return emptyRepository().Because(cause)
		}
		return rejected().Because(cause)
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return rejected().Because(cause)
	}
	return unavailable().Because(cause)
}

// requestError reads go-github's five kinds of error, and those of the wire, into one.
func requestError(err error, now time.Time) *RequestError {
	cause := &RequestError{Err: err}
	var resp *http.Response
	if e, ok := errors.AsType[*gh.ErrorResponse](err); ok {
		resp, cause.Text, cause.Fields = e.Response, e.Message, e.Errors
	} else if e, ok := errors.AsType[*gh.RateLimitError](err); ok {
		resp, cause.Text = e.Response, e.Message
	} else if e, ok := errors.AsType[*gh.AbuseRateLimitError](err); ok {
		resp, cause.Text = e.Response, e.Message
	} else if e, ok := errors.AsType[*gh.TwoFactorAuthError](err); ok {
		resp, cause.Text = e.Response, e.Message
	} else if e, ok := errors.AsType[*url.Error](err); ok {
		// Without the query: it may hold a one-time code.
		cause.Method, cause.Err = strings.ToUpper(e.Op), e.Err
		if u, err := url.Parse(e.URL); err == nil {
			cause.Path = u.Path
		}
	}
	if resp == nil {
		return cause
	}
	cause.Err = nil
	cause.Status, cause.RequestID = resp.StatusCode, resp.Header.Get("X-GitHub-Request-Id")
	if resp.Request != nil {
		cause.Method, cause.Path = resp.Request.Method, resp.Request.URL.Path
	}
	if limited(resp, cause.Text) {
		cause.RetryAt = retryAt(resp.Header, now)
	}
	return cause
}

// limited recognises both of GitHub's limits. A secondary one may come as 403 or 429 and without
// any header, told by its text alone.
func limited(resp *http.Response, text string) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		text = strings.ToLower(text)
		return resp.Header.Get("X-RateLimit-Remaining") == "0" || resp.Header.Get("Retry-After") != "" ||
			strings.Contains(text, "rate limit") || strings.Contains(text, "abuse detection")
	}
	return false
}

// retryAt is when a limit ends: what the headers say, else in a minute; never further off than the
// hour that GitHub's windows last.
func retryAt(h http.Header, now time.Time) time.Time {
	at := now.Add(time.Minute)
	if n, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64); err == nil && n > 0 {
		at = now.Add(time.Duration(min(n, 3600)) * time.Second)
	} else if n, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil && h.Get("X-RateLimit-Remaining") == "0" {
		at = time.Unix(n, 0)
	}
	if at.Before(now) {
		at = now.Add(time.Second)
	}
	if latest := now.Add(time.Hour); at.After(latest) {
		at = latest
	}
	return at.UTC().Truncate(time.Second)
}

func unavailable() *core.Error {
	return core.Fail(core.Unavailable, CodeUnavailable, "GitHub does not answer as it should. Nothing was changed; try again in a minute.")
}

func rateLimited(at time.Time) *core.Error {
	e := core.Fail(core.RateLimited, CodeRateLimited, "GitHub's rate limit is used up. Try again after "+at.Format("15:04:05")+" UTC.")
	e.RetryAt = at
	return e
}

func reauthRequired() *core.Error {
	return core.Fail(core.Unauthenticated, CodeReauthRequired, "Your GitHub sign-in has ended. Sign in again.")
}

func unauthorized(by holder) *core.Error {
	switch by {
	case byApp:
		return core.Fail(core.Unavailable, CodeAppUnauthorized, "GitHub does not accept this server's App key. An administrator has to check GITHUB_APP_ID, the private key and the server's clock.")
	case byInstallation:
		return core.Fail(core.Unavailable, CodeAppUnauthorized, "GitHub did not accept the access token that it had just given. Try again.")
	case byClient:
		return clientRejected()
	case byPerson:
	}
	return reauthRequired()
}

// forbidden tells apart why a credential that is good may still not do this.
func forbidden(cause *RequestError, err error, by holder) *core.Error {
	if header := ssoHeader(err); strings.HasPrefix(header, "required") {
		name, link := ssoPage(header, err)
		e := core.Fail(core.Forbidden, CodeSSORequired, "The organization"+name+" demands single sign-on. Sign in to it on GitHub, then sign in here again.")
		e.Link = link
		return e
	}
	if strings.Contains(cause.Text, "IP allow list") {
		return core.Fail(core.Forbidden, CodeIPNotAllowed, "The organization only lets known network addresses in. Its owner has to add this server's address to the IP allow list.")
	}
	if strings.Contains(cause.Text, "installation has been suspended") {
		return installationSuspended()
	}
	if strings.Contains(cause.Text, "archived so is read-only") {
		return core.Fail(core.Conflict, CodeArchived, "The repository is archived on GitHub and cannot be changed. Unarchive it there, then try again.")
	}
	if by == byInstallation && strings.Contains(cause.Text, "not accessible by integration") {
		return core.Fail(core.Forbidden, CodePermissionMissing, "The GitHub App may not do this"+acceptedPermissions(err)+". The account's owner has to accept its permissions.")
	}
	return core.Fail(core.Forbidden, CodeForbidden, "GitHub does not allow this. Ask an owner of the repository or of the organization for access.")
}

func ssoHeader(err error) string { return answerHeader(err, "X-GitHub-SSO") }

func answerHeader(err error, name string) string {
	if e, ok := errors.AsType[*gh.ErrorResponse](err); ok && e.Response != nil {
		return e.Response.Header.Get(name)
	}
	return ""
}

// acceptedPermissions reads " (it needs NAME=LEVEL)" from what GitHub says would have done. Only plain
// words are taken: the message is shown to people.
func acceptedPermissions(err error) string {
	accepted := answerHeader(err, "X-Accepted-GitHub-Permissions")
	if accepted == "" || len(accepted) > 200 || strings.Trim(accepted, "abcdefghijklmnopqrstuvwxyz_=,; ") != "" {
		return ""
	}
	return " (it needs " + accepted + ")"
}

// ssoPage reads " NAME" and the page of its sign-on from `required; url=https://HOST/orgs/NAME/sso?…`.
// Both are shown to people, so only a valid name and a page of the GitHub that was asked are taken.
func ssoPage(header string, err error) (name, link string) {
	_, address, _ := strings.Cut(header, "url=")
	u, failed := url.Parse(strings.TrimSpace(address))
	e, ok := errors.AsType[*gh.ErrorResponse](err)
	if failed != nil || !ok || e.Response.Request == nil {
		return "", ""
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) != 3 || parts[0] != "orgs" || parts[2] != "sso" || !validName(parts[1]) {
		return "", ""
	}
	asked := e.Response.Request.URL
	if u.Host != strings.TrimPrefix(asked.Host, "api.") || u.Scheme != asked.Scheme || u.User != nil {
		return " " + parts[1], ""
	}
	return " " + parts[1], u.String()
}

func installationSuspended() *core.Error {
	return core.Fail(core.Conflict, CodeInstallationSuspended, "The GitHub App is suspended on this account. Its owner has to lift the suspension in the installation's settings.")
}

func rejected() *core.Error {
	return core.Fail(core.Invalid, CodeRejected, "GitHub refused the request as it stands. Nothing was changed.")
}

func emptyRepository() *core.Error {
	return core.Fail(core.Conflict, CodeEmptyRepository, "This repository has no commit yet. Push a first commit, then choose it again.")
}
