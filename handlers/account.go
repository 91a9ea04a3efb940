package handlers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// Me says who is signed in; a page that comes back from the browser's memory asks it.
func (h *Handlers) Me(c echo.Context) error {
	u := user(c)
	noStore(c)
	return c.JSON(http.StatusOK, map[string]any{"login": u.Login, "name": u.Name, "role": string(u.Role)})
}

// Settings is the person's own settings.
func (h *Handlers) Settings(c echo.Context) error {
	browsers, err := h.Chat.Browsers(c.Request().Context(), user(c))
	if err != nil {
		return err
	}
	return Page(c, http.StatusOK, pages.Settings(pages.SettingsProps{
		Layout: h.Frame(c, "Settings", ""), GitHubHost: h.Site.GitHubHost, Browsers: browsers,
	}))
}

// SignOutEverywhere ends every login of the person, this one too.
func (h *Handlers) SignOutEverywhere(c echo.Context) error {
	if err := h.Chat.SignOutEverywhere(c.Request().Context(), user(c)); err != nil {
		return err
	}
	return h.leave(c, "signed_out_everywhere")
}

// Disconnect takes back what the person gave to the App on GitHub, and signs them out everywhere.
func (h *Handlers) Disconnect(c echo.Context) error {
	if err := h.Chat.Disconnect(c.Request().Context(), user(c)); err != nil {
		return err
	}
	return h.leave(c, "disconnected")
}

// Theme keeps the choice of light or dark in a cookie, so that the server renders it.
func (h *Handlers) Theme(c echo.Context) error {
	var form struct {
		Theme    string `form:"theme" json:"theme"`
		ReturnTo string `form:"return_to" json:"return_to"`
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	cookie := &http.Cookie{
		Name: themeCookie, Value: form.Theme, Path: "/", HttpOnly: true,
		Secure: h.Cookies.Cookie.Secure, SameSite: http.SameSiteLaxMode, Expires: time.Now().AddDate(1, 0, 0),
	}
	switch form.Theme {
	case "light", "dark":
	case "", "system":
		cookie.Value, cookie.MaxAge = "", -1
	default:
		return core.Fail(core.Invalid, "theme_invalid", "Choose system, light or dark.")
	}
	c.SetCookie(cookie)
	back := localPath(form.ReturnTo)
	if form.ReturnTo == "" {
		back = link.Settings
	}
	return seeOther(c, back)
}

// Avatar draws an account's picture from its id: a small symmetric pattern, the same for ever. No
// other host is asked.
func (h *Handlers) Avatar(c echo.Context) error {
	id, err := strconv.ParseInt(c.Param("github_id"), 10, 64)
	if err != nil || id < 0 {
		return core.NotFoundError()
	}
	header := c.Response().Header()
	header.Set("Cache-Control", "public, max-age=86400")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'none'; sandbox")
	return c.Blob(http.StatusOK, "image/svg+xml", []byte(avatar(id)))
}

func avatar(id int64) string {
	sum := sha256.Sum256([]byte(strconv.FormatInt(id, 10)))
	hue := (int(sum[0])<<8 | int(sum[1])) % 360
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 7 7" shape-rendering="crispEdges">`+
		`<rect width="7" height="7" fill="hsl(%d 30%% 90%%)"/><g fill="hsl(%d 50%% 45%%)">`, hue, hue)
	for i := range 15 { // five rows of three columns, the other two are mirrored
		if sum[2+i]&1 == 0 {
			continue
		}
		row, col := i/3+1, i%3+1
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="1" height="1"/>`, col, row)
		if col < 3 {
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="1" height="1"/>`, 6-col, row)
		}
	}
	b.WriteString(`</g></svg>`)
	return b.String()
}

// shortHash names a text in a few characters.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}
