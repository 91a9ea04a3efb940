package handlers

import (
	"bytes"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/views/pages"
)

// artifactLines is how many lines one page of an artifact shows.
const artifactLines = 2000

func (h *Handlers) artifact(c echo.Context) (core.SessionID, core.Artifact, error) {
	id, err := sessionID(c)
	if err != nil {
		return "", core.Artifact{}, err
	}
	artifact, err := core.ParseID[core.ArtifactID](c.Param("artifact"))
	if err != nil {
		return "", core.Artifact{}, err
	}
	a, err := h.Chat.Artifact(c.Request().Context(), user(c), id, artifact)
	return id, a, err
}

// Artifact shows kept text, a page of lines at a time.
func (h *Handlers) Artifact(c echo.Context) error {
	id, a, err := h.artifact(c)
	if err != nil {
		return err
	}
	session, err := h.Chat.Session(c.Request().Context(), user(c), id)
	if err != nil {
		return err
	}
	p := pages.ArtifactPageProps{
		Layout: h.Frame(c, a.Name, "sessions"), SessionID: string(id), Session: session.Title, ID: string(a.ID),
		Name: a.Name, Kind: artifactKind(a.Kind), Size: a.Size, CreatedAt: a.CreatedAt,
		Redactions: a.Redactions, Truncated: a.Truncated, Page: 1, Pages: 1, FirstLine: 1,
	}
	switch {
	case a.Data == nil && a.Size > 0:
		p.Gone = "The content was removed by the retention policy."
	case bytes.IndexByte(a.Data, 0) >= 0 || !utf8.Valid(a.Data):
		p.Binary = true
	default:
		paginate(&p, string(a.Data), c.QueryParam("page"))
	}
	noStore(c)
	return Page(c, http.StatusOK, pages.Artifact(p))
}

func paginate(p *pages.ArtifactPageProps, text, wanted string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	p.TotalLines = len(lines)
	p.Pages = max(1, (len(lines)+artifactLines-1)/artifactLines)
	if n, err := strconv.Atoi(wanted); err == nil {
		p.Page = min(max(1, n), p.Pages)
	}
	from := (p.Page - 1) * artifactLines
	p.FirstLine = from + 1
	p.Lines = lines[from:min(len(lines), from+artifactLines)]
}

// ArtifactRaw downloads the bytes. They come from an untrusted place: the answer can neither be
// shown nor run in our origin.
func (h *Handlers) ArtifactRaw(c echo.Context) error {
	_, a, err := h.artifact(c)
	if err != nil {
		return err
	}
	noStore(c)
	kind := "application/octet-stream"
	if utf8.Valid(a.Data) && bytes.IndexByte(a.Data, 0) < 0 {
		kind = "text/plain; charset=utf-8"
	}
	return download(c, downloadName(a), kind, a.Data)
}

func downloadName(a core.Artifact) string {
	if a.Kind == core.ArtifactDiff {
		return "diff-" + core.Short(a.ID) + ".patch"
	}
	return "artifact-" + core.Short(a.ID) + ".txt"
}

// download answers with bytes that a browser must save, never show.
func download(c echo.Context, name, contentType string, data []byte) error {
	h := c.Response().Header()
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	return c.Blob(http.StatusOK, contentType, data)
}
