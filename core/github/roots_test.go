package github_test

import (
	"crypto/x509"
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

// A GitHub Enterprise Server whose certificate is of the company's own authority is believed with that
// authority alone, by both clients.
func TestRoots_AreWhatGitHubIsCheckedAgainst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.signIn(t, "octo-owner")
	server := httptest.NewUnstartedServer(w.server.Handler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it says who refused its certificate
	server.StartTLS()
	defer server.Close()
	bases, err := github.NewBases(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	config := w.server.Config()
	for name, tt := range map[string]struct {
		roots *x509.CertPool
		kind  core.Kind
	}{"the authority": {roots, ""}, "the system's": {nil, core.Unavailable}, "others": {x509.NewCertPool(), core.Unavailable}} {
		user := github.NewUser(github.UserConfig{Bases: bases, ClientID: config.ClientID, ClientSecret: config.ClientSecret, Roots: tt.roots})
		if _, err := user.Person(t.Context(), token); (err == nil) != (tt.kind == "") || err != nil && core.KindOf(err) != tt.kind {
			t.Errorf("user, %s: %v", name, err)
		}
		app, err := github.NewApp(github.AppConfig{Bases: bases, AppID: config.AppID, PrivateKey: config.PrivateKey, Roots: tt.roots, Now: w.server.Now})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.Probe(t.Context()); (err == nil) != (tt.kind == "") || err != nil && core.KindOf(err) != tt.kind {
			t.Errorf("app, %s: %v", name, err)
		}
	}
}
