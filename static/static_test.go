package static_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"testing"

	"agent-sandboxing/static"
)

func get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	static.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func TestHandler_ServesHashedNamesForEver(t *testing.T) {
	t.Parallel()
	for name, media := range map[string]string{
		"app.css":          "text/css; charset=utf-8",
		"app.js":           "text/javascript; charset=utf-8",
		"htmx.js":          "text/javascript; charset=utf-8",
		"mark.svg":         "image/svg+xml",
		"htmx-license.txt": "text/plain; charset=utf-8",
	} {
		w := get(t, static.URL(name))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != media || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %q, %d bytes", static.URL(name), w.Code, w.Header().Get("Content-Type"), w.Body.Len())
		}
		if got := w.Header().Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control %q", name, got)
		}
	}
}

func TestHandler_NothingElse(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/static/", "/static/app.css", "/static/../embed.go", "/static/%2e%2e/embed.go", "/static/x/y"} {
		if w := get(t, path); w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "" {
			t.Errorf("%s: %d with Cache-Control %q", path, w.Code, w.Header().Get("Cache-Control"))
		}
	}
}

func TestAssets_StaySmall(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"app.css": 40 << 10, "app.js": 10 << 10, "htmx.js": 50 << 10} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(get(t, static.URL(name)).Body.Bytes()); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if b.Len() > limit {
			t.Errorf("%s is %d bytes compressed, the budget is %d", name, b.Len(), limit)
		}
	}
}
