package mirror_test

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
)

// A GitHub whose certificate is of the company's own authority is fetched from with that authority,
// and not without it.
func TestFetch_TrustsTheAuthorityOfTheSetting(t *testing.T) {
	t.Parallel()
	inner := setup(t)
	behind, err := url.Parse(inner.server.GitURL(inner.repo))
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host}))
	t.Cleanup(front.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, code := range map[string]string{ca: "", "": "github_unavailable"} {
		m, err := mirror.New(mirror.Options{
			Dir: t.TempDir(), GitURL: func(core.Repository) string { return front.URL + behind.Path }, Tokens: inner.server, CloneDepth: 50, CAFile: file,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, pack, err := m.Checkout(t.Context(), inner.session, false)
		if pack != nil {
			_ = pack.Close()
		}
		if code == "" && err != nil || code != "" && core.CodeOf(err) != code {
			t.Errorf("with authority %q: %v, want %q", filepath.Base(file), err, code)
		}
	}
}
