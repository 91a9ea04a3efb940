package handlers

import (
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
)

// bind reads a form or a JSON body.
func bind(c echo.Context, into any) error {
	if err := (&echo.DefaultBinder{}).BindBody(c, into); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return core.Fail(core.TooLarge, "request_too_large", "The request is larger than 1 MiB.").Because(err)
		}
		return core.Fail(core.BadRequest, "body_unreadable",
			"The request's body could not be read. Send a form, or JSON with Content-Type: application/json.").Because(err)
	}
	return nil
}

// idempotencyKey makes a repeated submit one thing: the header of an API call, else the form's own.
func idempotencyKey(c echo.Context, form string) string {
	if key := c.Request().Header.Get("Idempotency-Key"); key != "" {
		return key
	}
	return form
}

// isKind says that err is a failure of one of the kinds.
func isKind(err error, kinds ...core.Kind) bool {
	return err != nil && slices.Contains(kinds, core.KindOf(err))
}

// linkOf is the page of GitHub's on which a failure can be mended, "" for none.
func linkOf(err error) string {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Link
	}
	return ""
}

// StatusOf is the HTTP status of an error: the one table from kinds to statuses.
func StatusOf(err error) int {
	switch core.KindOf(err) {
	case core.Invalid:
		return http.StatusUnprocessableEntity
	case core.BadRequest:
		return http.StatusBadRequest
	case core.Unauthenticated:
		return http.StatusUnauthorized
	case core.Forbidden:
		return http.StatusForbidden
	case core.NotFound:
		return http.StatusNotFound
	case core.Conflict:
		return http.StatusConflict
	case core.TooLarge:
		return http.StatusRequestEntityTooLarge
	case core.RateLimited:
		return http.StatusTooManyRequests
	case core.Unavailable:
		return http.StatusServiceUnavailable
	case core.Internal:
		return http.StatusInternalServerError
	}
	return http.StatusInternalServerError
}
