package handlers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// What the cookie's server-side record holds: before sign-in the attempts, after it the login.
const (
	LoginKey    = "login"
	attemptsKey = "attempts"
	personKey   = "person" // who signed in last
	draftKey    = "draft"
)

// loginLife bounds a login; its own row ends it sooner when idle.
const loginLife = 30 * 24 * time.Hour

// attemptLife is how long one may take on GitHub's page.
const attemptLife = 10 * time.Minute

// maxAttempts is how many tabs of one browser may be signing in at a time.
const maxAttempts = 8

// attempt is one press of "Continue with GitHub". It is used once.
type attempt struct {
	Verifier string    `json:"verifier"`
	ReturnTo string    `json:"return_to"`
	At       time.Time `json:"at"`
}

// SignInPage shows the one button, and why one is here.
func (h *Handlers) SignInPage(c echo.Context) error {
	returnTo := localPath(c.QueryParam("return_to"))
	reason := c.QueryParam("e")
	if user(c).ID != "" && reason == "" {
		return c.Redirect(http.StatusSeeOther, returnTo)
	}
	notice, tone := signInNotice(reason, returnTo)
	return h.signInPage(c, http.StatusOK, returnTo, notice, tone)
}

func (h *Handlers) signInPage(c echo.Context, status int, returnTo, notice, tone string) error {
	return Page(c, status, pages.Login(pages.LoginProps{
		Layout: h.Frame(c, "Sign in", ""), ReturnTo: returnTo, Notice: notice, Tone: tone,
		Host: h.Site.GitHubHost, People: h.Site.DemoPeople,
	}))
}

func signInNotice(reason, returnTo string) (notice, tone string) {
	switch reason {
	case "denied":
		return "GitHub sign-in was cancelled.", "info"
	case "expired":
		return "That sign-in link expired. Start again.", "warning"
	case "reauth":
		return "GitHub wants you to sign in again. You come back to where you were.", "warning"
	case "ended":
		if returnTo == "/" {
			return "You were signed out.", "info"
		}
		return "You were signed out. Sign in and you come back to where you were.", "info"
	}
	return "", ""
}

// StartSignIn makes an attempt and sends the browser to GitHub.
func (h *Handlers) StartSignIn(c echo.Context) error {
	ctx := c.Request().Context()
	state, verifier := rand.Text(), rand.Text()+rand.Text()
	attempts := h.attempts(c)
	for len(attempts) >= maxAttempts {
		delete(attempts, oldest(attempts))
	}
	attempts[state] = attempt{Verifier: verifier, ReturnTo: localPath(c.QueryParam("return_to")), At: time.Now()}
	if err := h.putAttempts(c, attempts); err != nil {
		return err
	}
	if h.Cookies.GetString(ctx, LoginKey) == "" {
		h.Cookies.SetDeadline(ctx, time.Now().Add(attemptLife).UTC())
	}
	return c.Redirect(http.StatusFound, h.Chat.SignInURL(state, verifier))
}

// FinishSignIn is where GitHub sends the browser back to.
func (h *Handlers) FinishSignIn(c echo.Context) error {
	ctx := c.Request().Context()
	attempts := h.attempts(c)
	state := c.QueryParam("state")
	a, ok := attempts[state]
	if !ok {
		return c.Redirect(http.StatusSeeOther, signInPath("expired", ""))
	}
	delete(attempts, state)
	if err := h.putAttempts(c, attempts); err != nil {
		return err
	}
	switch {
	case c.QueryParam("error") != "":
		if len(attempts) == 0 && h.Cookies.GetString(ctx, LoginKey) == "" {
			if err := h.Cookies.Destroy(ctx); err != nil {
				return err
			}
		}
		return c.Redirect(http.StatusSeeOther, signInPath("denied", a.ReturnTo))
	case c.QueryParam("code") == "":
		return c.Redirect(http.StatusSeeOther, signInPath("expired", a.ReturnTo))
	}
	login, err := h.Chat.SignIn(ctx, c.QueryParam("code"), a.Verifier)
	switch {
	case err == nil:
	case isKind(err, core.Forbidden, core.Unavailable, core.RateLimited):
		return h.signInPage(c, StatusOf(err), a.ReturnTo, core.MessageOf(err), "danger")
	case isKind(err, core.Unauthenticated, core.BadRequest, core.Invalid):
		return c.Redirect(http.StatusSeeOther, signInPath("expired", a.ReturnTo))
	default:
		return err
	}
	if err := h.endLogin(ctx); err != nil {
		return err
	}
	// The id of a record that was handed out before sign-in must not become a signed-in one.
	if err := h.Cookies.RenewToken(ctx); err != nil {
		return err
	}
	if h.Cookies.GetString(ctx, personKey) != string(login.UserID) {
		h.Cookies.Remove(ctx, draftKey)
	}
	h.Cookies.Put(ctx, LoginKey, string(login.ID))
	h.Cookies.Put(ctx, personKey, string(login.UserID))
	h.Cookies.SetDeadline(ctx, time.Now().Add(loginLife).UTC())
	return c.Redirect(http.StatusSeeOther, localPath(a.ReturnTo))
}

// SignOut ends the login and the cookie.
func (h *Handlers) SignOut(c echo.Context) error {
	ctx := c.Request().Context()
	if err := h.endLogin(ctx); err != nil {
		return err
	}
	return h.leave(c, "signed_out")
}

// leave drops the browser's record and what it keeps of our pages, and says on the sign-in page why.
func (h *Handlers) leave(c echo.Context, did string) error {
	if err := h.Cookies.Destroy(c.Request().Context()); err != nil {
		return err
	}
	c.Response().Header().Set("Clear-Site-Data", `"cache"`)
	return seeOther(c, link.SignIn+"?did="+did)
}

// endLogin ends the login that this browser has, if any.
func (h *Handlers) endLogin(ctx context.Context) error {
	id, err := core.ParseID[core.LoginID](h.Cookies.GetString(ctx, LoginKey))
	if err != nil {
		return nil //nolint:nilerr // it has none
	}
	return h.Chat.SignOut(ctx, id)
}

// attempts reads the sign-ins that this browser has under way and that are not too old.
func (h *Handlers) attempts(c echo.Context) map[string]attempt {
	all := make(map[string]attempt)
	b := h.Cookies.GetBytes(c.Request().Context(), attemptsKey)
	if len(b) == 0 {
		return all
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return make(map[string]attempt) // of another version of ours
	}
	for state, a := range all {
		if time.Since(a.At) > attemptLife {
			delete(all, state)
		}
	}
	return all
}

func (h *Handlers) putAttempts(c echo.Context, all map[string]attempt) error {
	if len(all) == 0 {
		h.Cookies.Remove(c.Request().Context(), attemptsKey)
		return nil
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	h.Cookies.Put(c.Request().Context(), attemptsKey, b)
	return nil
}

func oldest(all map[string]attempt) (state string) {
	var at time.Time
	for s, a := range all {
		if state == "" || a.At.Before(at) {
			state, at = s, a.At
		}
	}
	return state
}

// signInPath is the sign-in page with the reason why one is there, "" for none.
func signInPath(reason, returnTo string) string {
	q := url.Values{}
	if reason != "" {
		q.Set("e", reason)
	}
	if returnTo != "" && returnTo != "/" {
		q.Set("return_to", returnTo)
	}
	if len(q) == 0 {
		return link.SignIn
	}
	return link.SignIn + "?" + q.Encode()
}

// SignInAgain is where a request without a live login goes, to come back afterwards. A visit without a
// cookie, or with one that has not been signed in yet, is not told that it was signed out.
func (h *Handlers) SignInAgain(err error, r *http.Request) string {
	reason := "ended"
	_, none := r.Cookie(h.Cookies.Cookie.Name)
	visit := r.Method == http.MethodGet && !IsPartial(r)
	if visit && (none != nil || h.Cookies.Exists(r.Context(), attemptsKey)) {
		reason = ""
	}
	if core.CodeOf(err) == "reauth_required" {
		reason = "reauth"
	}
	back := "/"
	switch {
	case r.Method == http.MethodGet && !IsPartial(r) && !WantsStream(r) && !WantsJSON(r):
		back = r.URL.RequestURI()
	case r.Method == http.MethodPost && !IsPartial(r) && !WantsJSON(r):
		back = formPage(r)
	case r.Header.Get("HX-Current-URL") != "":
		if u, err := url.Parse(r.Header.Get("HX-Current-URL")); err == nil {
			back = u.RequestURI()
		}
	}
	return signInPath(reason, localPath(back))
}
