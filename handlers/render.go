package handlers

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/views/layout"
	"agent-sandboxing/views/link"
)

// Page renders a component as a whole answer. It is rendered first, so that a failure can still
// become an error page.
func Page(c echo.Context, status int, view templ.Component) error {
	var b bytes.Buffer
	if err := view.Render(c.Request().Context(), &b); err != nil {
		return err
	}
	return c.HTMLBlob(status, b.Bytes())
}

// IsPartial says that htmx asks and swaps the answer into the page.
func IsPartial(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// WantsJSON says that the request asks for JSON and not for a page.
func WantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// WantsStream says that the request asks for an event stream: by name, or by naming neither JSON nor
// a page at the address of a session's events, which is a stream first of all.
func WantsStream(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "text/event-stream") ||
		strings.HasSuffix(r.URL.Path, "/events") && !strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// seeOther sends a browser to another page of ours after a form. htmx follows a redirect by itself
// and would swap the page into a part of this one, so it gets a header instead.
func seeOther(c echo.Context, path string) error {
	if IsPartial(c.Request()) {
		c.Response().Header().Set("HX-Redirect", path)
		return c.NoContent(http.StatusNoContent)
	}
	return c.Redirect(http.StatusSeeOther, path)
}

// Frame is the layout's part of the props.
func (h *Handlers) Frame(c echo.Context, title, active string) layout.Props {
	p := layout.Props{
		Title: title, Active: active,
		Theme: theme(c.Request()), Path: c.Request().URL.RequestURI(), Now: time.Now(),
		Flash: flashes[c.QueryParam("did")], Warning: warnings[c.QueryParam("not")],
	}
	if platform, err := h.Chat.Platform(c.Request().Context()); err == nil {
		p.DemoLabel = platform.ModelLabel
		if user(c).Role == core.Admin {
			p.Problem = platform.AppProblem
		}
	}
	if u := user(c); u.ID != "" {
		p.User = &layout.User{
			Login: u.Login, Name: u.Name, Admin: u.Role == core.Admin,
			AvatarURL: link.Avatar(int64(u.GitHubID)),
		}
	}
	return p
}

// flashes are the sentences behind ?did=, so that no foreign text comes in by an address.
var flashes = map[string]string{
	"signed_out":            "You are signed out.",
	"signed_out_everywhere": "You are signed out in all browsers.",
	"disconnected":          "GitHub is disconnected and you are signed out in all browsers. Signing in asks for your consent again.",
	"installed":             "GitHub says that the App was installed. The list is up to date.",
	"installation_changed":  "GitHub says that the installation was changed. The list is up to date.",
	"role_changed":          "The role is changed. It holds from their next click.",
	"person_signed_out":     "They are signed out in all browsers.",
	"archived":              "The session is archived.",
	"restored":              "The session is back in the list.",
	"stopping":              "The sandbox is being stopped. It starts again with the next message.",
	"renamed":               "The title is changed.",
	"removed":               "The message is removed from the queue.",
	"host_allowed":          "The host is on the repository's list. The next attempt reaches it.",
	"host_added":            "The host is on the list.",
	"host_removed":          "The host is off the list.",
	"mode_chosen":           "The mode is saved. New sessions get it.",
	"edited":                "The message is changed.",
	"cancelling":            "The turn is being cancelled.",
	"stops":                 "The sandbox stops when the work under way has ended. It starts again with the next message.",
}

// warnings are those behind ?not=: what was asked for did not happen.
var warnings = map[string]string{
	"archived": "The session is still at work, so it was not archived. Wait for the end or cancel the turn, then archive it.",
	"stopped":  "The sandbox is not running, so there was nothing to stop.",
}

const themeCookie = "theme"

// theme is the person's choice, "" follows the system.
func theme(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || (c.Value != "light" && c.Value != "dark") {
		return ""
	}
	return c.Value
}
