package github_test

import (
	"net/url"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
)

func TestNewBases(t *testing.T) {
	t.Parallel()
	good := map[string]github.Bases{
		"":                              {Web: "https://github.com", API: "https://api.github.com", Git: "https://github.com"},
		"https://github.com/":           {Web: "https://github.com", API: "https://api.github.com", Git: "https://github.com"},
		"https://git.example.org":       {Web: "https://git.example.org", API: "https://git.example.org/api/v3", Git: "https://git.example.org"},
		"https://git.example.org:8443/": {Web: "https://git.example.org:8443", API: "https://git.example.org:8443/api/v3", Git: "https://git.example.org:8443"},
		"https://octo.ghe.com":          {Web: "https://octo.ghe.com", API: "https://api.octo.ghe.com", Git: "https://octo.ghe.com"},
		"http://127.0.0.1:9999":         {Web: "http://127.0.0.1:9999", API: "http://127.0.0.1:9999/api/v3", Git: "http://127.0.0.1:9999"},
	}
	for base, want := range good {
		if got, err := github.NewBases(base); err != nil || got != want {
			t.Errorf("NewBases(%q) = %+v, %v; want %+v", base, got, err, want)
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
