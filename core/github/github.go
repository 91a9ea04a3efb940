// Package github is the adapter to GitHub and GitHub Enterprise Server, and the only importer of
// go-github and x/oauth2. It has two clients, so that a process holds no credential that it does not
// need: User asks with a person's own token (the web process), App signs with the App's private key,
// mints installation tokens and keeps pull requests (the worker).
//
// Every failure is a core.Error. Its cause names request, status and request id, never a token and
// never the text that GitHub sent.
package github

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"agent-sandboxing/core"
)

// Bases are where one GitHub answers, each without a trailing slash.
type Bases struct {
	Web   string // pages
	OAuth string // authorize and access_token below it
	API   string // REST
	Git   string // git over smart HTTP
}

// NewBases lays out github.com for "", GitHub Enterprise Server for https://HOST (API under
// /api/v3) and a ghe.com subdomain. Plain http is accepted for a loopback host only, since tokens
// travel in it.
func NewBases(base string) (Bases, error) {
	if base == "" {
		return basesAt("https://github.com", "https://api.github.com"), nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return Bases{}, fmt.Errorf("GitHub address %q: want https://HOST and nothing after it", base)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return Bases{}, fmt.Errorf("GitHub address %q: want https, or http on a loopback host", base)
	}
	web := u.Scheme + "://" + u.Host
	switch {
	case strings.EqualFold(u.Hostname(), "github.com"):
		return NewBases("")
	case strings.HasSuffix(strings.ToLower(u.Hostname()), ".ghe.com"):
		return basesAt(web, u.Scheme+"://api."+u.Host), nil
	}
	return basesAt(web, web+"/api/v3"), nil
}

func basesAt(web, api string) Bases {
	return Bases{Web: web, OAuth: web + "/login/oauth", API: api, Git: web}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// GitURL is the clone address of a repository, without a credential.
func (b Bases) GitURL(repo core.Repository) string {
	return b.Git + "/" + url.PathEscape(repo.Owner) + "/" + url.PathEscape(repo.Name) + ".git"
}

// NoreplyHost is where no-reply addresses of this GitHub live.
func (b Bases) NoreplyHost() string {
	u, err := url.Parse(b.Web)
	if err != nil {
		return "users.noreply.github.com"
	}
	return "users.noreply." + u.Hostname()
}

// names are what GitHub allows as owner and repository name. Both end up in URLs and file paths, so
// an answer with anything else is not believed.
var names = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

func validName(s string) bool { return names.MatchString(s) && strings.Trim(s, ".") != "" }

var shas = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

func validSHA(s string) bool { return shas.MatchString(s) }
