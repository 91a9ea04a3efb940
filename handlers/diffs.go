package handlers

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/diff"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// LatestDiff goes to the newest diff; JSON answers with it.
func (h *Handlers) LatestDiff(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	d, err := h.Chat.Diff(c.Request().Context(), user(c), id, "")
	if err != nil {
		return err
	}
	if WantsJSON(c.Request()) {
		return c.JSON(http.StatusOK, diffJSON(d))
	}
	return c.Redirect(http.StatusSeeOther, link.Diff(string(id), string(d.Artifact.ID)))
}

// Diff shows one captured diff. With ".patch" at the end of the id it is the patch itself.
func (h *Handlers) Diff(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	name, patch := strings.CutSuffix(c.Param("diff"), ".patch")
	diffID, err := core.ParseID[core.ArtifactID](name)
	if err != nil {
		return err
	}
	d, err := h.Chat.Diff(c.Request().Context(), user(c), id, diffID)
	if err != nil {
		return err
	}
	noStore(c)
	switch {
	case patch:
		return download(c, "agent-"+core.Short(id)+".patch", "text/plain; charset=utf-8", d.Artifact.Data)
	case WantsJSON(c.Request()):
		return c.JSON(http.StatusOK, diffJSON(d))
	}
	p := h.diffProps(c, d)
	if p.CanPublish {
		v, err := h.view(c, id, 0)
		if err != nil {
			return err
		}
		p.CanPublish = v.publishBlocked() == "" && v.unpublished()
	}
	return Page(c, http.StatusOK, pages.Diff(p))
}

func (h *Handlers) diffProps(c echo.Context, d chat.Diff) pages.DiffProps {
	open := -1
	if n, err := strconv.Atoi(c.QueryParam("file")); err == nil && n >= 0 {
		open = n
	}
	return pages.DiffProps{
		Layout: h.Frame(c, "Changes of "+d.Session.Title, "sessions"), SessionID: string(d.Session.ID),
		DiffID: string(d.Artifact.ID), Title: d.Session.Title, Repository: d.Session.Repository.FullName(),
		BaseBranch: d.Session.BaseBranch, BaseSHA: d.Session.BaseSHA, CapturedAt: d.Artifact.CreatedAt,
		Latest: d.Artifact.ID == d.Latest, Truncated: d.Artifact.Truncated,
		Diff:       diff.Parse(d.Artifact.Data, diff.Options{Open: open}),
		ArtifactID: string(d.Artifact.ID),
		CanPublish: d.Rights.MayPublish() && !d.Session.Repository.IsFixture() && d.Artifact.ID == d.Latest && len(d.Files) > 0,
		PullNumber: d.PullNumber,
	}
}

// noStore keeps private code out of every cache.
func noStore(c echo.Context) {
	c.Response().Header().Set("Cache-Control", "private, no-store")
}
