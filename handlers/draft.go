package handlers

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/views/link"
)

// draft is what a form sent when its sender had to sign in again: a text, or a publish. It comes back on
// the form's page, to the same person in the same browser, once.
type draft struct {
	Page    string       `json:"page"`
	Text    string       `json:"text"`
	Publish *PublishForm `json:"publish,omitempty"`
	At      time.Time    `json:"at"`
}

// draftLife is how long signing in may take before the text is forgotten.
const draftLife = time.Hour

// maxDraft bounds what is kept, in bytes: the longest description, and the choices of its files.
const maxDraft = 512 << 10

// KeepDraft keeps the text of a form that could not be taken because its sender has to sign in again.
// What the browser cannot send twice would be lost.
func (h *Handlers) KeepDraft(c echo.Context) {
	ctx, r := c.Request().Context(), c.Request()
	if r.Method != http.MethodPost || IsPartial(r) || WantsJSON(r) || h.Cookies.GetString(ctx, personKey) == "" {
		return
	}
	d := draft{Page: formPage(r), Text: r.PostFormValue("text"), At: time.Now()}
	if isPublish(r) {
		var form PublishForm
		if err := bind(c, &form); err != nil {
			return
		}
		form.Paths = form.choices()
		d.Publish = &form
	}
	if d.Text == "" && d.Publish == nil || len(d.Text) > core.MaxMessageBytes {
		return
	}
	b, err := json.Marshal(d)
	if err == nil && len(b) <= maxDraft {
		h.Cookies.Put(ctx, draftKey, b)
	}
}

// takeDraft is what was kept for this page, empty for nothing.
func (h *Handlers) takeDraft(c echo.Context, page string) draft {
	ctx := c.Request().Context()
	b := h.Cookies.GetBytes(ctx, draftKey)
	if len(b) == 0 {
		return draft{}
	}
	var d draft
	if err := json.Unmarshal(b, &d); err != nil || time.Since(d.At) > draftLife {
		h.Cookies.Remove(ctx, draftKey)
		return draft{}
	}
	if d.Page != page || h.Cookies.GetString(ctx, personKey) != string(user(c).ID) {
		return draft{}
	}
	h.Cookies.Remove(ctx, draftKey)
	return d
}

// formPage is the page that has the form which a request sent, "/" when there is none.
func formPage(r *http.Request) string {
	if r.URL.Path == link.Create {
		installation, err := strconv.ParseInt(r.PostFormValue("installation"), 10, 64)
		repository, err2 := strconv.ParseInt(r.PostFormValue("repository"), 10, 64)
		if err != nil || err2 != nil {
			return link.Installations
		}
		return link.NewFor(installation, repository, r.PostFormValue("branch"))
	}
	if isPublish(r) {
		return r.URL.Path
	}
	return SessionPage(r.URL.Path)
}

// isPublish says that a request is for the page of a session's publish.
func isPublish(r *http.Request) bool {
	id, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, link.Create+"/"), "/publish")
	return ok && r.URL.Path == link.Publish(id) && SessionPage(r.URL.Path) != link.Sessions
}

// SessionPage is the page of the session below which an address is, "/" when it is below none.
func SessionPage(path string) string {
	rest, _ := strings.CutPrefix(path, link.Create+"/")
	id, _, _ := strings.Cut(rest, "/")
	if _, err := core.ParseID[core.SessionID](id); err != nil {
		return link.Sessions
	}
	return link.Session(id)
}
