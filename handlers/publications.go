package handlers

import (
	"cmp"
	"net/http"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// PublishForm is the pull request's text as a form or as JSON.
type PublishForm struct {
	Title     string `form:"title" json:"title"`
	Body      string `form:"body" json:"body"`
	ClientKey string `form:"client_key" json:"client_key"`
}

// PublishPage is the form, filled from the records.
func (h *Handlers) PublishPage(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	v, err := h.view(c, id, 0)
	if err != nil {
		return err
	}
	if WantsJSON(c.Request()) {
		return c.JSON(http.StatusOK, publishState(v))
	}
	form, err := h.publishForm(c, v)
	if err != nil {
		return err
	}
	return Page(c, http.StatusOK, pages.Publish(h.publishProps(c, v, form)))
}

// publishForm is what the form begins with: the text as it stands, else what a person wrote in an
// attempt that failed, else a proposal.
func (h *Handlers) publishForm(c echo.Context, v sessionView) (PublishForm, error) {
	form := PublishForm{Title: v.Session.Title, Body: v.body(), ClientKey: core.NewID[string]()}
	switch pub := v.Publication; {
	case pub != nil && pub.Step == core.PublishFailed && pub.MessageID == "":
		form.Title, form.Body = pub.Title, pub.Body
	case v.PullRequest != nil:
		last, err := h.Chat.LastPublished(c.Request().Context(), v.Timeline)
		if err != nil {
			return form, err
		}
		if last != nil {
			form.Body = last.Body
		}
		form.Title = cmp.Or(v.PullRequest.Title, form.Title)
	}
	return form, nil
}

// Publish asks for the pull request and goes back to the session, where its steps show.
func (h *Handlers) Publish(c echo.Context) error {
	var form PublishForm
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	pub, err := h.Chat.RequestPublish(c.Request().Context(), user(c), id, chat.PublishRequest{
		Title: form.Title, Body: form.Body, ClientKey: idempotencyKey(c, form.ClientKey),
	})
	if WantsJSON(c.Request()) {
		if err != nil {
			return err
		}
		return c.JSON(http.StatusAccepted, publicationJSON(&pub))
	}
	if isKind(err, core.Invalid, core.Conflict) {
		return h.publishFailed(c, id, form, err)
	}
	if err != nil {
		return err
	}
	return seeOther(c, link.SessionTab(string(id), "changes")+"#pr")
}

// Resolve sends the conflict of a publish to the agent.
func (h *Handlers) Resolve(c echo.Context) error {
	id, publication, err := publicationID(c)
	if err != nil {
		return err
	}
	m, err := h.Chat.Resolve(c.Request().Context(), user(c), id, publication)
	return h.continued(c, id, m, err)
}

// CancelPublish ends a publish that waits for GitHub.
func (h *Handlers) CancelPublish(c echo.Context) error {
	id, publication, err := publicationID(c)
	if err != nil {
		return err
	}
	if err := h.Chat.CancelPublish(c.Request().Context(), user(c), id, publication); err != nil {
		return err
	}
	return h.afterMessage(c, id, "cancelled")
}

func publicationID(c echo.Context) (core.SessionID, core.PublicationID, error) {
	id, err := sessionID(c)
	if err != nil {
		return "", "", err
	}
	publication, err := core.ParseID[core.PublicationID](c.Param("publication"))
	return id, publication, err
}

func (h *Handlers) publishFailed(c echo.Context, id core.SessionID, form PublishForm, cause error) error {
	v, err := h.view(c, id, 0)
	if err != nil {
		return err
	}
	p := h.publishProps(c, v, form)
	if core.CodeOf(cause) == "title_invalid" {
		p.TitleError = core.MessageOf(cause)
	} else {
		p.Error = core.MessageOf(cause)
	}
	return Page(c, StatusOf(cause), pages.Publish(p))
}

func (h *Handlers) publishProps(c echo.Context, v sessionView, form PublishForm) pages.PublishProps {
	p := pages.PublishProps{
		Layout: h.Frame(c, "Publish "+v.Session.Title, "sessions"), SessionID: v.id(), Session: v.Session.Title,
		Repository: v.Session.Repository.FullName(), Branch: v.Session.Branch, BaseBranch: v.Session.BaseBranch,
		Title: form.Title, Body: form.Body, ClientKey: form.ClientKey, Total: len(v.Changed),
		Warnings: publishWarnings(v.Changed), Blocked: v.publishBlocked(),
		Author: "The platform makes the commit in its own name and names @" + user(c).Login + " as its co-author.",
	}
	p.Additions, p.Deletions = core.Totals(v.Changed)
	if v.Diff != nil {
		p.DiffURL = link.Diff(v.id(), string(v.Diff.ID))
		p.Files, p.MoreFiles = fileProps(v.Changed, v.id(), string(v.Diff.ID), shownFiles)
	}
	if v.PullRequest != nil {
		p.Number = v.PullRequest.Number
	}
	return p
}
