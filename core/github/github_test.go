package github_test

import (
	"net/url"
	"strings"
	"testing"

	gh "github.com/google/go-github/v62/github"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
)

func TestNewBases(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]struct{ web, api string }{
		"":                              {"https://github.com", "https://api.github.com"},
		"https://github.com/":           {"https://github.com", "https://api.github.com"},
		"https://git.example.org":       {"https://git.example.org", "https://git.example.org/api/v3"},
		"https://git.example.org:8443/": {"https://git.example.org:8443", "https://git.example.org:8443/api/v3"},
		"https://octo.ghe.com":          {"https://octo.ghe.com", "https://api.octo.ghe.com"},
		"http://127.0.0.1:9999":         {"http://127.0.0.1:9999", "http://127.0.0.1:9999/api/v3"},
		"https://api-gateway.corp.test": {"https://api-gateway.corp.test", "https://api-gateway.corp.test/api/v3"},
	} {
		got, err := github.NewBases(base)
		if err != nil || got != (github.Bases{Web: want.web, OAuth: want.web + "/login/oauth", API: want.api, Git: want.web}) {
			t.Errorf("NewBases(%q) = %+v, %v; want pages at %s and the API at %s", base, got, err, want.web, want.api)
		}
		// go-github's own rule, given our API address, leaves it as it is.
		client, err := gh.NewClient(nil).WithEnterpriseURLs(got.API, got.API)
		if err != nil || client.BaseURL.String() != want.api+"/" {
			t.Errorf("go-github would ask %s, we %s", client.BaseURL, want.api)
		}
	}
	for _, base := range []string{
		"github.example.org", "http://git.example.org", "https://user:pass@git.example.org", "https://git.example.org/api/v3",
		"https://git.example.org?x=1", "ftp://git.example.org", "https://", "http://127.0.0.1.example.org", "://",
	} {
		if got, err := github.NewBases(base); err == nil {
			t.Errorf("NewBases(%q) = %+v, want an error", base, got)
		}
	}
}

func TestInstallURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                        "https://github.com/apps/our-app/installations/new",
		"https://octo.ghe.com":    "https://octo.ghe.com/apps/our-app/installations/new",
		"https://git.example.org": "https://git.example.org/github-apps/our-app/installations/new",
	} {
		bases, err := github.NewBases(base)
		if err != nil {
			t.Fatal(err)
		}
		if got := github.NewUser(github.UserConfig{Bases: bases}).InstallURL("our-app"); got != want {
			t.Errorf("InstallURL on %q = %s, want %s", base, got, want)
		}
	}
}

func FuzzGitURL(f *testing.F) {
	f.Add("octo-org", "widgets")
	f.Add("a@evil.example", "x")
	f.Add("..", "../../x?y#z")
	bases, err := github.NewBases("https://git.example.org")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, owner, name string) {
		got := bases.GitURL(core.Repository{Owner: owner, Name: name})
		u, err := url.Parse(got)
		if err != nil || u.Host != "git.example.org" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(got, " \n") {
			t.Errorf("GitURL(%q, %q) = %q", owner, name, got)
		}
	})
}
