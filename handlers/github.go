package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core/webhook"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// Webhook takes a delivery of GitHub's: 202, or 200 when it was here before.
func (h *Handlers) Webhook(c echo.Context) error {
	r := c.Request()
	r.Header.Set("Accept", "application/json") // who delivers reads no pages
	fresh, err := h.Webhooks.Receive(r.Context(), webhook.Request{
		GUID: r.Header.Get("X-GitHub-Delivery"), Event: r.Header.Get("X-GitHub-Event"), Signature: r.Header.Get("X-Hub-Signature-256"), Body: r.Body,
	})
	switch {
	case err != nil:
		return err
	case fresh:
		return c.NoContent(http.StatusAccepted)
	}
	return c.NoContent(http.StatusOK)
}

// Setup is where GitHub sends the browser after the App was installed, changed or asked for. Whatever
// the address says may be forged, so nothing is bound to it: the list is only read anew. It may come
// without a login, from the browser of an owner who has never been here.
func (h *Handlers) Setup(c echo.Context) error {
	action := c.QueryParam("setup_action")
	signedIn := user(c).ID != ""
	if signedIn {
		h.Chat.Refresh(user(c))
	}
	if signedIn && action != "request" {
		did := "installed"
		if action == "update" {
			did = "installation_changed"
		}
		return c.Redirect(http.StatusSeeOther, link.Installations+"?stay=1&did="+did)
	}
	return Page(c, http.StatusOK, pages.Setup(pages.SetupProps{
		Layout: h.Frame(c, "GitHub App", ""), Requested: action == "request", SignedIn: signedIn,
	}))
}
