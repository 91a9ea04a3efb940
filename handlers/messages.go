package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/views/components"
	"agent-sandboxing/views/link"
)

// MessageForm is a message as a form or as JSON.
type MessageForm struct {
	Text      string `form:"text" json:"text"`
	ClientKey string `form:"client_key" json:"client_key"`
}

// Post queues a message. htmx gets an empty composer back; the message itself comes by the stream.
func (h *Handlers) Post(c echo.Context) error {
	var form MessageForm
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	ctx := c.Request().Context()
	m, err := h.Chat.Post(ctx, user(c), id, form.Text, idempotencyKey(c, form.ClientKey))
	if err != nil {
		return h.postFailed(c, id, form, err)
	}
	switch {
	case WantsJSON(c.Request()):
		return c.JSON(http.StatusCreated, messageJSON(m))
	case IsPartial(c.Request()):
		v, err := h.view(c, id, 0)
		if err != nil {
			return err
		}
		return Page(c, http.StatusOK, components.Composer(v.composer(core.NewID[string](), "", "")))
	}
	return seeOther(c, link.Session(string(id))+"#msg-"+string(m.ID))
}

// postFailed gives the text back with what is wrong. To htmx only a text that is wrong itself is
// answered with the form; any other failure leaves it as it stands.
func (h *Handlers) postFailed(c echo.Context, id core.SessionID, form MessageForm, cause error) error {
	partial := IsPartial(c.Request())
	switch {
	case WantsJSON(c.Request()), !isKind(cause, core.Invalid, core.TooLarge, core.Conflict):
		return cause
	case partial && !isKind(cause, core.Invalid):
		return cause
	}
	t := typed{key: form.ClientKey, text: form.Text, sentence: core.MessageOf(cause)}
	if !partial {
		return h.showSession(c, StatusOf(cause), id, t)
	}
	v, err := h.view(c, id, 0)
	if err != nil {
		return err
	}
	return Page(c, StatusOf(cause), components.Composer(v.composer(t.key, t.text, t.sentence)))
}

func messageID(c echo.Context) (core.SessionID, core.MessageID, error) {
	id, err := sessionID(c)
	if err != nil {
		return "", "", err
	}
	m, err := core.ParseID[core.MessageID](c.Param("message"))
	return id, m, err
}

// Edit changes a message that still waits.
func (h *Handlers) Edit(c echo.Context) error {
	var form MessageForm
	id, m, err := messageID(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	if err := h.Chat.Edit(c.Request().Context(), user(c), id, m, form.Text); err != nil {
		return err
	}
	return h.afterMessage(c, id, "edited")
}

// Remove takes a message that still waits out of the queue.
func (h *Handlers) Remove(c echo.Context) error {
	id, m, err := messageID(c)
	if err != nil {
		return err
	}
	if err := h.Chat.Remove(c.Request().Context(), user(c), id, m); err != nil {
		return err
	}
	return h.afterMessage(c, id, "removed")
}

// Continue goes on from a message that a limit stopped, with higher limits.
func (h *Handlers) Continue(c echo.Context) error {
	id, stopped, err := messageID(c)
	if err != nil {
		return err
	}
	m, err := h.Chat.Continue(c.Request().Context(), user(c), id, stopped, idempotencyKey(c, ""))
	return h.continued(c, id, m, err)
}

// continued answers a message that a button posted.
func (h *Handlers) continued(c echo.Context, id core.SessionID, m core.Message, err error) error {
	switch {
	case err != nil:
		return err
	case WantsJSON(c.Request()):
		return c.JSON(http.StatusCreated, messageJSON(m))
	case IsPartial(c.Request()):
		return h.afterMessage(c, id, "")
	}
	return seeOther(c, link.Session(string(id))+"#msg-"+string(m.ID))
}

// Cancel asks for the end of the turn. Asking when it has ended already is no failure to a person.
func (h *Handlers) Cancel(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	m, err := h.Chat.Cancel(c.Request().Context(), user(c), id)
	if WantsJSON(c.Request()) {
		if err != nil {
			return err
		}
		return c.JSON(http.StatusAccepted, messageJSON(m))
	}
	if err != nil && core.CodeOf(err) != "nothing_to_cancel" {
		return err
	}
	return h.afterMessage(c, id, "cancelling")
}

// afterMessage answers a change that the stream will show: htmx gets the new status line at once,
// a browser the page.
func (h *Handlers) afterMessage(c echo.Context, id core.SessionID, did string) error {
	switch {
	case WantsJSON(c.Request()):
		return h.sessionJSON(c, http.StatusOK, id)
	case IsPartial(c.Request()):
		v, err := h.view(c, id, 0)
		if err != nil {
			return err
		}
		return Page(c, http.StatusOK, components.StatusBar(v.status()))
	}
	return seeOther(c, link.Session(string(id))+"?did="+did)
}
