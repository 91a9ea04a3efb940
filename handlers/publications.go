package handlers

import (
	"cmp"
	"maps"
	"net/http"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// PublishForm is the pull request's text and what belongs in it, as a form or as JSON.
type PublishForm struct {
	Title     string `form:"title" json:"title"`
	Body      string `form:"body" json:"body"`
	Draft     *bool  `form:"draft" json:"draft"` // not sent: false from a form, whose box is not ticked, else true
	Base      string `form:"base" json:"base"`
	ClientKey string `form:"client_key" json:"client_key"`

	// A form says which paths it offered and which of them were ticked, JSON both at once.
	Offered []string         `form:"offered" json:"-"`
	Ticked  []string         `form:"path" json:"-"`
	Paths   core.PathChoices `form:"-" json:"paths"`
}

// draft is whether a new pull request shall be one.
func (f PublishForm) draft(json bool) bool {
	if f.Draft == nil {
		return json
	}
	return *f.Draft
}

// choices are what was decided for the paths that were offered, nil when none were.
func (f PublishForm) choices() core.PathChoices {
	if len(f.Offered) == 0 {
		return f.Paths
	}
	choices := core.PathChoices{}
	for _, path := range f.Offered {
		choices[path] = false
	}
	for _, path := range f.Ticked {
		if _, ok := choices[path]; ok {
			choices[path] = true
		}
	}
	return choices
}

// PublishPage is the form, filled from the records.
func (h *Handlers) PublishPage(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	if err := h.Chat.LookAtPull(c.Request().Context(), user(c), id); err != nil {
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
	if kept := h.takeDraft(c, link.Publish(v.id())).Publish; kept != nil {
		form = *kept
	}
	p, err := h.publishProps(c, v, form)
	if err != nil {
		return err
	}
	return Page(c, http.StatusOK, pages.Publish(p))
}

// publishForm is what the form begins with: the text as it stands, else what a person wrote in an
// attempt that failed, else a proposal.
func (h *Handlers) publishForm(c echo.Context, v sessionView) (PublishForm, error) {
	form := PublishForm{Title: v.Session.Title, Body: v.body(), Draft: new(true), Base: v.mergesInto(), ClientKey: core.NewID[string]()}
	switch pub := v.Publication; {
	case pub != nil && pub.Step == core.PublishFailed && pub.MessageID == "":
		form.Title, form.Body, form.Draft, form.Base = pub.Title, pub.Body, &pub.Draft, cmp.Or(pub.Base, form.Base)
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
		Title: form.Title, Body: form.Body, Draft: form.draft(WantsJSON(c.Request())), Base: form.Base, Paths: form.choices(),
		ClientKey: idempotencyKey(c, form.ClientKey),
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

// PublishAgain takes the answer to what a publish asked, and publishes with it.
func (h *Handlers) PublishAgain(c echo.Context) error {
	var form struct {
		Choice core.PublishChoice `form:"choice" json:"choice"`
	}
	id, publication, err := publicationID(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	pub, err := h.Chat.PublishAgain(c.Request().Context(), user(c), id, publication, form.Choice)
	switch {
	case err != nil:
		return err
	case WantsJSON(c.Request()):
		return c.JSON(http.StatusAccepted, publicationJSON(&pub))
	case IsPartial(c.Request()):
		return h.afterMessage(c, id, "")
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

// CancelPublish ends a publish of which nothing was sent yet.
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
	form.Draft = new(form.draft(false))
	p, err := h.publishProps(c, v, form)
	if err != nil {
		return err
	}
	switch core.CodeOf(cause) {
	case "title_invalid":
		p.TitleError = core.MessageOf(cause)
	case "base_invalid":
		p.BaseError = core.MessageOf(cause)
	default:
		p.Error = core.MessageOf(cause)
	}
	return Page(c, StatusOf(cause), pages.Publish(p))
}

func (h *Handlers) publishProps(c echo.Context, v sessionView, form PublishForm) (pages.PublishProps, error) {
	choices, err := h.Chat.PathChoices(c.Request().Context(), v.Session.ID)
	if err != nil {
		return pages.PublishProps{}, err
	}
	maps.Copy(choices, form.choices()) // what a form that was not taken had ticked
	p := pages.PublishProps{
		Layout: h.Frame(c, "Publish "+v.Session.Title, "sessions"), SessionID: v.id(), Session: v.Session.Title,
		Repository: v.Session.Repository.FullName(), Branch: v.Session.Branch,
		Title: form.Title, Body: form.Body, Draft: form.draft(false), Base: form.Base, ClientKey: form.ClientKey, Blocked: v.publishBlocked(),
		Author: "The platform makes the commit in its own name and names @" + user(c).Login + " as its co-author.",
	}
	v.offerPaths(&p, choices)
	if v.Diff != nil {
		p.DiffURL = link.Diff(v.id(), string(v.Diff.ID))
	}
	if pr := v.PullRequest; pr != nil {
		p.Number, p.Behind, p.BehindBase = pr.Number, pr.Behind, pr.Base
	}
	if pub := v.Publication; pub != nil && pub.Step == core.PublishFailed && pub.FailureCode == core.CodeBaseMissing && p.Base == cmp.Or(pub.Base, p.Base) {
		p.BaseError = pub.FailureText
	}
	return p, nil
}
