package web

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/handlers"
	"agent-sandboxing/static"
)

// access is what a route demands of who asks.
type access int

const (
	signedIn access = iota // a live login; the default
	anybody                // the cookie is read, a login is not demanded
	plain                  // no cookie at all
)

// route is one line of the table. weight is what a request costs of a person's allowance.
type route struct {
	method, path string
	access       access
	weight       int
	handle       echo.HandlerFunc
}

const (
	session    = "/chat-sessions/:id"
	streamPath = session + "/stream"

	webhookPath = "/github/webhook"

	repositoryNetwork = "/installations/:installation/repositories/:repository/network"

	repositoryPolicy = "/admin/installations/:installation/repositories/:repository/policy" // administrators only
)

// routes is every address that we answer.
func routes(h *handlers.Handlers, ready func(context.Context) error) []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{get, "/healthz", plain, 0, healthy},
		{get, "/readyz", plain, 0, readiness(ready)},
		{get, "/static/*", plain, 0, echo.WrapHandler(static.Handler())},

		{get, "/login", anybody, 0, h.SignInPage},
		{get, "/auth/github", anybody, 0, h.StartSignIn},
		{get, "/auth/github/callback", anybody, 0, h.FinishSignIn},
		{post, "/logout", anybody, 0, h.SignOut},
		{get, "/me", signedIn, 0, h.Me},
		{get, "/avatars/:github_id", signedIn, 0, h.Avatar},
		{get, "/settings", signedIn, 0, h.Settings},
		{post, "/settings/sign-out-everywhere", signedIn, 1, h.SignOutEverywhere},
		{post, "/settings/disconnect", signedIn, 5, h.Disconnect},
		{post, "/settings/theme", anybody, 0, h.Theme},

		{post, webhookPath, plain, 0, h.Webhook},
		{get, "/github/setup", anybody, 0, h.Setup},

		{get, "/installations", signedIn, 1, h.Installations},
		{get, "/new", signedIn, 1, h.New},
		{get, "/", signedIn, 0, h.List},
		{post, "/chat-sessions", signedIn, 5, h.Create},

		{get, "/admin/people", signedIn, 1, h.People},
		{post, "/admin/people/:person/role", signedIn, 2, h.SetRole},
		{post, "/admin/people/:person/sign-out", signedIn, 2, h.SignOutPerson},

		{get, repositoryPolicy, signedIn, 1, h.RepositoryPolicy},
		{post, repositoryPolicy, signedIn, 2, h.SetRepositoryPolicy},

		{get, repositoryNetwork, signedIn, 1, h.RepositoryNetwork},
		{post, repositoryNetwork + "/hosts", signedIn, 2, h.AddHost},
		{post, repositoryNetwork + "/hosts/remove", signedIn, 2, h.RemoveHost},
		{post, repositoryNetwork + "/mode", signedIn, 2, h.NetworkMode},

		{get, session, signedIn, 1, h.Show},
		{get, session + "/pulse", signedIn, 1, h.Pulse},
		{get, session + "/events", signedIn, 1, h.Events},
		{get, streamPath, signedIn, 1, h.Stream},
		{post, session + "/title", signedIn, 2, h.Rename},
		{post, session + "/archive", signedIn, 2, h.Archive},
		{post, session + "/stop", signedIn, 2, h.Stop},

		{get, session + "/network", signedIn, 1, h.Network},
		{post, session + "/network/hosts", signedIn, 2, h.AllowHost},

		{post, session + "/messages", signedIn, 3, h.Post},
		{post, session + "/messages/:message", signedIn, 2, h.Edit},
		{post, session + "/messages/:message/remove", signedIn, 2, h.Remove},
		{post, session + "/messages/:message/continue", signedIn, 3, h.Continue},
		{post, session + "/cancel", signedIn, 1, h.Cancel},

		{get, session + "/diffs/latest", signedIn, 1, h.LatestDiff},
		{get, session + "/diffs/:diff", signedIn, 1, h.Diff},
		{get, session + "/artifacts/:artifact", signedIn, 1, h.Artifact},
		{get, session + "/artifacts/:artifact/raw", signedIn, 1, h.ArtifactRaw},
		{get, session + "/publish", signedIn, 1, h.PublishPage},
		{post, session + "/publish", signedIn, 5, h.Publish},
		{post, session + "/publications/:publication/resolve", signedIn, 3, h.Resolve},
		{post, session + "/publications/:publication/again", signedIn, 5, h.PublishAgain},
		{post, session + "/publications/:publication/cancel", signedIn, 2, h.CancelPublish},
	}
}

func healthy(c echo.Context) error { return c.String(http.StatusOK, "ok\n") }

// readiness says whether requests can be served; the cause stays in the log.
func readiness(ready func(context.Context) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		if ready == nil {
			return c.String(http.StatusOK, "ready\n")
		}
		if err := ready(c.Request().Context()); err != nil {
			return c.String(http.StatusServiceUnavailable, "not ready\n")
		}
		return c.String(http.StatusOK, "ready\n")
	}
}
