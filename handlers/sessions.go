package handlers

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/components"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// windowEvents is how many events of a session one page shows; older turns are a link away.
const windowEvents = 400

// List shows the sessions. A poll with the version it shows is answered 204 when nothing changed.
func (h *Handlers) List(c echo.Context) error {
	r, err := listRequest(c)
	if err != nil {
		return err
	}
	rows, more, err := h.Chat.List(c.Request().Context(), user(c), r)
	if err != nil {
		return err
	}
	version := listVersion(rows)
	if IsPartial(c.Request()) && c.QueryParam("seen") == version {
		return c.NoContent(http.StatusNoContent)
	}
	p := pages.SessionsProps{
		Layout: h.Frame(c, "Sessions", "sessions"), Query: r.Query, State: r.State, All: r.All,
		PollURL: listURL(r, url.Values{"seen": {version}}),
		Fresh:   len(rows) == 0 && r.Query == "" && r.State == "" && r.Before.IsZero() && !r.All,
	}
	if !r.Before.IsZero() {
		p.PollURL = "" // an older page does not move
	}
	if more {
		p.NextURL = listURL(r, url.Values{"before": {rows[len(rows)-1].Session.UpdatedAt.UTC().Format(time.RFC3339Nano)}})
	}
	for _, row := range rows {
		p.Rows = append(p.Rows, rowProps(row, user(c)))
	}
	return Page(c, http.StatusOK, pages.Sessions(p))
}

func listRequest(c echo.Context) (chat.ListRequest, error) {
	r := chat.ListRequest{Query: c.QueryParam("q"), All: c.QueryParam("all") != "" && user(c).Role == core.Admin}
	switch s := c.QueryParam("state"); s {
	case "", "active", "review", "failed", "archived":
		r.State = s
	}
	if before := c.QueryParam("before"); before != "" {
		t, err := time.Parse(time.RFC3339Nano, before)
		if err != nil {
			return r, core.Fail(core.BadRequest, "cursor_invalid", "before must be a time, as in the link to older sessions.")
		}
		r.Before = t
	}
	return r, nil
}

func listURL(r chat.ListRequest, q url.Values) string {
	if r.Query != "" {
		q.Set("q", r.Query)
	}
	if r.State != "" {
		q.Set("state", r.State)
	}
	if r.All {
		q.Set("all", "1")
	}
	return link.Sessions + "?" + q.Encode()
}

// listVersion changes whenever a row of the page does: the poll is answered with it.
func listVersion(rows []core.SessionRow) string {
	v := ""
	for _, r := range rows {
		v += fmt.Sprint(r.Session.ID, r.Session.UpdatedAt.UnixMicro(), rowState(r), r.QueuedCount, r.Files, r.PullRequest)
	}
	return shortHash(v)
}

// Show is the session's page, or its state as JSON.
func (h *Handlers) Show(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	if WantsJSON(c.Request()) {
		return h.sessionJSON(c, http.StatusOK, id)
	}
	return h.showSession(c, http.StatusOK, id, typed{text: h.takeDraft(c, c.Request().URL.RequestURI()).Text})
}

// typed is what somebody typed into the composer or as a title, and why it was not taken.
type typed struct{ key, text, sentence, title, titleError string }

func (h *Handlers) showSession(c echo.Context, status int, id core.SessionID, t typed) error {
	before, err := sequence(c.QueryParam("before"))
	if err != nil {
		return err
	}
	if err := h.Chat.LookAtPull(c.Request().Context(), user(c), id); err != nil {
		return err
	}
	v, err := h.view(c, id, before)
	if err != nil {
		return err
	}
	if t.key == "" {
		t.key = core.NewID[string]()
	}
	if t.text == "" {
		t.text = v.textOf(c.QueryParam("resend"))
	}
	recent, _, err := h.Chat.List(c.Request().Context(), user(c), chat.ListRequest{})
	if err != nil {
		return err
	}
	p := pages.SessionProps{
		Layout: h.Frame(c, v.title(), "sessions"), Head: v.head(), Turns: v.turns(before > 0),
		Provision: v.provision(), Status: v.status(), Queue: v.queue(),
		Composer: v.composer(t.key, t.text, t.sentence), Changes: v.changes(), PullRequest: v.pull(),
		Artifacts: v.artifacts(), Network: v.network(), Details: v.details(), Recent: v.recent(recent), Tab: tab(c),
	}
	p.Head.NewTitle, p.Head.TitleError = t.title, t.titleError
	if before == 0 && !v.Session.Archived {
		p.Stream = components.StreamProps{
			URL: link.Stream(v.id(), v.Session.LastSequence), Sequence: v.Session.LastSequence,
			LoginURL: signInPath("ended", link.Session(v.id())),
		}
	}
	p.Network.Live = p.Stream.URL != ""
	if v.Earlier {
		p.EarlierURL = link.Earlier(v.id(), v.earlier())
	}
	return Page(c, status, pages.Session(p))
}

// view reads the snapshot behind the page.
func (h *Handlers) view(c echo.Context, id core.SessionID, before int64) (sessionView, error) {
	ctx := c.Request().Context()
	enough := func(v sessionView) bool { return v.line.newestIsWhole() }
	if before > 0 {
		enough = func(v sessionView) bool { return len(v.visible(true)) > 0 }
	}
	return h.read(ctx, enough, func(limit int) (chat.View, error) {
		return h.Chat.Timeline(ctx, user(c), id, before, limit)
	})
}

// title is the tab's: the state before the session's own, so that it can be read in a narrow tab.
func (v sessionView) title() string {
	return stateWord(v.status().State) + v.Session.Title
}

func stateWord(state string) string {
	switch state {
	case "working", "preparing", "queued", "cancelling", "publishing":
		return "● "
	case "completed":
		return "✓ "
	case "failed":
		return "✕ "
	}
	return ""
}

// textOf is the text of an earlier message of the session, for sending it again.
func (v sessionView) textOf(id string) string {
	for _, t := range v.line.turns {
		if string(t.message.ID) == id {
			return t.message.Text
		}
	}
	return ""
}

func tab(c echo.Context) string {
	switch t := c.QueryParam("tab"); t {
	case "changes", "details":
		return t
	}
	return "chat"
}

// pulseAnswer is what a hidden tab reads instead of the stream.
type pulseAnswer struct {
	State    string `json:"state"`
	Title    string `json:"title"`
	Label    string `json:"label"`
	Sequence int64  `json:"sequence"`
}

// Pulse is the state in a few bytes.
func (h *Handlers) Pulse(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	v, err := h.view(c, id, 0)
	if err != nil {
		return err
	}
	st := v.status()
	return c.JSON(http.StatusOK, pulseAnswer{State: st.State, Title: v.title(), Label: st.Label, Sequence: v.Session.LastSequence})
}

// Rename gives the session another title.
func (h *Handlers) Rename(c echo.Context) error {
	var form struct {
		Title string `form:"title" json:"title"`
	}
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	err = h.Chat.Rename(c.Request().Context(), user(c), id, form.Title)
	if isKind(err, core.Invalid) && !WantsJSON(c.Request()) {
		return h.showSession(c, StatusOf(err), id, typed{title: form.Title, titleError: core.MessageOf(err)})
	}
	if err != nil {
		return err
	}
	return seeOther(c, link.Session(string(id))+"?did=renamed")
}

// Archive puts the session away or takes it back.
func (h *Handlers) Archive(c echo.Context) error {
	var form struct {
		Archived bool `form:"archived" json:"archived"`
	}
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	err = h.Chat.Archive(c.Request().Context(), user(c), id, form.Archived)
	if core.CodeOf(err) == "session_busy" && !WantsJSON(c.Request()) {
		return seeOther(c, link.Session(string(id))+"?not=archived")
	}
	if err != nil {
		return err
	}
	if form.Archived {
		return seeOther(c, link.Sessions+"?did=archived")
	}
	return seeOther(c, link.Session(string(id))+"?did=restored")
}

// Stop asks for the sandbox to be stopped.
func (h *Handlers) Stop(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	err = h.Chat.Stop(c.Request().Context(), user(c), id)
	if core.CodeOf(err) == "nothing_to_stop" && !WantsJSON(c.Request()) {
		return seeOther(c, link.Session(string(id))+"?not=stopped")
	}
	if err != nil {
		return err
	}
	v, err := h.view(c, id, 0)
	if err != nil {
		return err
	}
	if !v.idle() {
		return seeOther(c, link.Session(string(id))+"?did=stops")
	}
	return seeOther(c, link.Session(string(id))+"?did=stopping")
}

func rowProps(r core.SessionRow, viewer core.User) pages.SessionRowProps {
	p := pages.SessionRowProps{
		ID: string(r.Session.ID), Title: r.Session.Title, Repository: r.Session.Repository.FullName(),
		BaseBranch: r.Session.BaseBranch, State: rowState(r), StartedAt: r.StartedAt, Queued: r.QueuedCount,
		Files: r.Files, Additions: r.Additions, Deletions: r.Deletions,
		Archived: r.Session.Archived, UpdatedAt: r.Session.UpdatedAt,
	}
	if r.LastState == core.Queued && p.Queued > 0 {
		p.Queued-- // the one whose state the row shows waits for a worker, not behind another
	}
	if r.Session.OwnerID != viewer.ID {
		p.Owner = r.OwnerLogin
	}
	if pr := r.PullRequest; pr != nil {
		p.PullRequest = &components.PullRequestProps{
			SessionID: p.ID, Number: pr.Number, URL: pr.URL, State: pr.State, Draft: pr.Draft, Title: pr.Title, UpdatedAt: pr.UpdatedAt,
		}
	}
	return p
}

// rowState is the state of the newest message; a finished one with changes that nobody published
// yet waits for review.
func rowState(r core.SessionRow) string {
	switch r.LastState {
	case core.Completed:
		if r.Files > 0 && r.PullRequest == nil {
			return "review"
		}
	case core.Queued:
		if r.Session.LeaseOwner != "" {
			return "preparing"
		}
	case "":
		return "idle"
	case core.Working, core.Failed, core.Cancelled:
	}
	return string(r.LastState)
}

// recentRows is how many sessions the list beside a session shows.
const recentRows = 12

// recent lists the newest sessions with this one among them, whose dot follows the stream.
func (v sessionView) recent(rows []core.SessionRow) []pages.RecentProps {
	here := pages.RecentProps{ID: v.id(), Title: v.Session.Title, State: v.mark(), Here: true}
	var out []pages.RecentProps
	found := false
	for _, r := range rows[:min(len(rows), recentRows)] {
		if r.Session.ID == v.Session.ID {
			out, found = append(out, here), true
			continue
		}
		out = append(out, pages.RecentProps{ID: string(r.Session.ID), Title: r.Session.Title, State: rowState(r)})
	}
	if !found {
		out = append(out, here)
	}
	return out
}
