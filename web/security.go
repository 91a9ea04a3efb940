package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
)

// contentPolicy allows our own files and nothing else: no inline script or style, no other host.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// securityHeaders go out with every answer; a handler may only replace the policy by a stricter one.
func securityHeaders(https bool) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			h := c.Response().Header()
			h.Set("Content-Security-Policy", contentPolicy)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "same-origin")
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			h.Set("Permissions-Policy", "accelerometer=(), camera=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=()")
			h.Set("Cache-Control", "private, no-cache")
			if https {
				h.Set("Strict-Transport-Security", "max-age=31536000")
			}
			return next(c)
		}
	}
}

// refuseCrossOrigin stops a request that changes something and comes from another site's page. It
// needs no token, so no page that lives long can hold a stale one.
func refuseCrossOrigin(origin string) (echo.MiddlewareFunc, error) {
	protection := http.NewCrossOriginProtection()
	if err := protection.AddTrustedOrigin(origin); err != nil {
		return nil, err
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := protection.Check(c.Request()); err != nil {
				return core.Fail(core.Forbidden, "cross_origin",
					"This request came from another site's page and was refused. Open the page here and try again.").Because(err)
			}
			return next(c)
		}
	}, nil
}
