package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/handlers"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// failures turns errors into answers and, once, into a log line.
type failures struct {
	handlers *handlers.Handlers
	log      *slog.Logger
	// identify finds out who asks; the addresses that no route has are answered to somebody too.
	identify []echo.MiddlewareFunc
}

// answer is where an error stops: a page, JSON, or a fragment for htmx.
func (f *failures) answer(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	e := asError(err)
	status := handlers.StatusOf(e)
	if e.Code == notAllowed {
		status = http.StatusMethodNotAllowed
	}
	f.record(c, e, status)
	if at := e.RetryAt; !at.IsZero() {
		c.Response().Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(time.Until(at).Seconds())))))
	}
	write := func(c echo.Context) error { return f.write(c, e, status) }
	if _, ok := errors.AsType[*echo.HTTPError](err); ok {
		for _, m := range f.identify {
			write = m(write)
		}
	}
	failed := write(c)
	if failed != nil && !c.Response().Committed {
		failed = f.write(c, e, status) // to nobody in particular, when it cannot be said who asks
	}
	if err := failed; err != nil {
		f.log.LogAttrs(c.Request().Context(), slog.LevelError, "error_page_failed",
			slog.String("request_id", idOf(c)), slog.String("error", err.Error()))
	}
}

func (f *failures) write(c echo.Context, e *core.Error, status int) error {
	r := c.Request()
	props := pages.ErrorProps{Status: status, Message: e.Message, Code: e.Code, RequestID: idOf(c), ActionURL: e.Link, Action: "Open the page on GitHub"}
	switch {
	case handlers.WantsJSON(r) || handlers.WantsStream(r) && !handlers.IsPartial(r):
		if status == http.StatusUnauthorized {
			c.Response().Header().Set("HX-Redirect", f.handlers.SignInAgain(e, r))
		}
		said := map[string]string{"code": e.Code, "message": e.Message, "request_id": idOf(c)}
		if e.Link != "" {
			said["link"] = e.Link
		}
		return c.JSON(status, map[string]any{"error": said})
	case handlers.IsPartial(r):
		if status == http.StatusUnauthorized {
			c.Response().Header().Set("HX-Redirect", f.handlers.SignInAgain(e, r))
		}
		return handlers.Page(c, status, pages.ErrorFragment(props))
	case status == http.StatusUnauthorized:
		f.handlers.KeepDraft(c)
		return c.Redirect(http.StatusSeeOther, f.handlers.SignInAgain(e, r))
	case status == http.StatusMethodNotAllowed && r.Method == http.MethodGet:
		// A browser visits such an address when it reloads, or comes back from signing in.
		if page := handlers.SessionPage(r.URL.Path); page != link.Sessions || strings.TrimRight(r.URL.Path, "/") == link.Create {
			return c.Redirect(http.StatusSeeOther, page)
		}
	}
	if e.Code == "github_sso_required" {
		props.Title, props.Action, props.AgainURL = "Single sign-on is needed", "Sign in to the organization on GitHub", link.GitHubSignIn(r.URL.RequestURI())
	}
	props.Layout = f.handlers.Frame(c, http.StatusText(status), "")
	return handlers.Page(c, status, pages.Error(props))
}

// notAllowed is the code of a method that an address does not take.
const notAllowed = "method_not_allowed"

// record logs what is our fault with its cause, and the rest only by its code.
func (f *failures) record(c echo.Context, e *core.Error, status int) {
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	if errors.Is(e, context.Canceled) {
		level = slog.LevelDebug // the client went away
	}
	attrs := []slog.Attr{
		slog.String("request_id", idOf(c)), slog.String("code", e.Code), slog.Int("status", status),
		slog.String("route", c.Path()),
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	f.log.LogAttrs(c.Request().Context(), level, "request_failed", attrs...)
}

// asError finds the failure in err's chain, or says that one happened without saying what.
func asError(err error) *core.Error {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Because(err)
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return core.Fail(core.TooLarge, "request_too_large", "The request is larger than 1 MiB.").Because(err)
	}
	if he, ok := errors.AsType[*echo.HTTPError](err); ok {
		switch he.Code {
		case http.StatusNotFound:
			return core.NotFoundError()
		case http.StatusMethodNotAllowed:
			return core.Fail(core.BadRequest, notAllowed, "That address does not take this kind of request.")
		case http.StatusRequestEntityTooLarge:
			return core.Fail(core.TooLarge, "request_too_large", "The request is larger than 1 MiB.")
		case http.StatusBadRequest, http.StatusUnsupportedMediaType:
			return core.Fail(core.BadRequest, "body_unreadable", "The request could not be read.").Because(err)
		}
	}
	return core.Fail(core.Internal, "internal", core.MessageOf(err)).Because(err)
}

// recover turns a panic into a failure; the stack goes to the log alone.
func (f *failures) recover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			r := recover()
			switch r {
			case nil:
			case http.ErrAbortHandler:
				panic(r)
			default:
				f.log.LogAttrs(c.Request().Context(), slog.LevelError, "panic",
					slog.String("request_id", idOf(c)), slog.String("stack", string(debug.Stack())))
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		return next(c)
	}
}
