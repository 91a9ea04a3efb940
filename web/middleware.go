package web

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"agent-sandboxing/core"
	"agent-sandboxing/core/webhook"
	"agent-sandboxing/handlers"
)

// requestID names each request, for the answer of a failure and the log line with its cause.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderXRequestID, rand.Text()[:16])
		return next(c)
	}
}

func idOf(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// accessLog writes one line for each answer. It never holds a query string, which can carry a code
// or a state of sign-in, nor a header or a body.
func accessLog(log *slog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			if err := next(c); err != nil {
				c.Error(err)
			}
			level := slog.LevelInfo
			if c.Path() == "/healthz" || c.Path() == "/readyz" || c.Path() == "/static/*" {
				level = slog.LevelDebug
			}
			log.LogAttrs(c.Request().Context(), level, "request",
				slog.String("request_id", idOf(c)),
				slog.String("method", c.Request().Method),
				slog.String("route", c.Path()),
				slog.String("path", c.Request().URL.Path),
				slog.Int("status", c.Response().Status),
				slog.Int64("bytes", c.Response().Size),
				slog.Int64("ms", time.Since(start).Milliseconds()),
				slog.String("user_id", handlers.UserID(c)))
			return nil
		}
	}
}

// bodyLimit refuses a body above limit bytes, by its announced length or while it is read. GitHub's
// deliveries may be larger than what people send.
func bodyLimit(limit int64) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r, limit := c.Request(), limit
			if c.Path() == webhookPath {
				limit = webhook.MaxBody
			}
			if r.ContentLength > limit {
				return core.Fail(core.TooLarge, "request_too_large", "The request is larger than this server takes.")
			}
			r.Body = http.MaxBytesReader(c.Response(), r.Body, limit)
			return next(c)
		}
	}
}

// compress shrinks pages and assets. A stream must reach its client byte by byte.
func compress() echo.MiddlewareFunc {
	return middleware.GzipWithConfig(middleware.GzipConfig{
		MinLength: 1024,
		Skipper: func(c echo.Context) bool {
			return c.Path() == streamPath || handlers.WantsStream(c.Request())
		},
	})
}
