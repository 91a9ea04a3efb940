// Package static holds the compiled assets and their addresses. Names carry a hash of the content,
// so an answer may be kept for ever.
package static

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed dist
var dist embed.FS

// URL is the address of an asset by its plain name: app.css, app.js, htmx.js, mark.svg.
// It panics on a name that was never built, which the first render of any page would show.
func URL(name string) string {
	h := hashed(name)
	if h == "" {
		panic("static: no asset " + name)
	}
	return "/static/" + h
}

// Handler serves the assets under /static/. Only what exists is cached.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/static/")
		data, err := dist.ReadFile("dist/" + name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", mediaType(name))
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("X-Content-Type-Options", "nosniff")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
	})
}

// mediaType does not ask the machine's own table, which differs from one to the next.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "text/plain; charset=utf-8"
	}
}
