package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/handlers"
)

// newCookies keeps a browser's record on the server under the hash of its cookie. There is no idle
// timeout here: with one, a slow request that began before sign-out would save the record again.
// Idleness is a matter of the login's own row.
func newCookies(store scs.Store, https bool) *scs.SessionManager {
	// A literal, because scs.New starts a goroutine for a memory store that nobody ends.
	m := &scs.SessionManager{
		Store: store, Codec: scs.GobCodec{}, Lifetime: 30 * 24 * time.Hour, HashTokenInStore: true,
		Cookie: scs.SessionCookie{
			Name: "session", Path: "/", HttpOnly: true, Persist: true,
			// Strict would lose the cookie on the way back from GitHub.
			SameSite: http.SameSiteLaxMode,
		},
	}
	if https {
		m.Cookie.Name = "__Host-session"
		m.Cookie.Secure = true
	}
	return m
}

// loadCookies reads the browser's record before the handler and saves it just before the first byte
// of the answer, whichever answer that is.
func loadCookies(cookies *scs.SessionManager, log *slog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			token := ""
			if cookie, err := c.Request().Cookie(cookies.Cookie.Name); err == nil {
				token = cookie.Value
			}
			ctx, err := cookies.Load(c.Request().Context(), token)
			if err != nil {
				return core.Fail(core.Unavailable, "database_unavailable",
					"The database does not answer. Try again in a moment.").Because(err)
			}
			c.SetRequest(c.Request().WithContext(ctx))
			c.Response().Header().Add("Vary", "Cookie")
			c.Response().Before(func() {
				if err := saveCookies(ctx, cookies, c.Response()); err != nil {
					log.LogAttrs(ctx, slog.LevelError, "browser_record_not_saved", slog.String("error", err.Error()))
				}
			})
			return next(c)
		}
	}
}

func saveCookies(ctx context.Context, cookies *scs.SessionManager, w http.ResponseWriter) error {
	switch cookies.Status(ctx) {
	case scs.Modified:
		token, expiry, err := cookies.Commit(ctx)
		if err != nil {
			return err
		}
		cookies.WriteSessionCookie(ctx, w, token, expiry)
	case scs.Destroyed:
		cookies.WriteSessionCookie(ctx, w, "", time.Time{})
	case scs.Unmodified:
	}
	return nil
}

// identify finds out who asks. Without a live login a route that demands one is refused; elsewhere
// who is not signed in is simply nobody.
func identify(service *chat.Service, cookies *scs.SessionManager, demanded bool) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			ctx := c.Request().Context()
			viewer, err := whoAsks(ctx, service, cookies.GetString(ctx, handlers.LoginKey))
			switch {
			case err == nil:
				handlers.SetViewer(c, viewer)
			case demanded:
				return err
			}
			return next(c)
		}
	}
}

func whoAsks(ctx context.Context, service *chat.Service, login string) (handlers.Viewer, error) {
	id, err := core.ParseID[core.LoginID](login)
	if err != nil {
		return handlers.Viewer{}, core.Fail(core.Unauthenticated, "signed_out", "Sign in to go on.")
	}
	_, user, err := service.Login(ctx, id)
	if err != nil {
		return handlers.Viewer{}, err
	}
	return handlers.Viewer{User: user, Login: id}, nil
}
