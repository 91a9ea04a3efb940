// Package handlers answers requests: bind, one use case, props, render. It decides nothing about
// access; core/chat does.
//
// # JSON
//
// The pages' own routes speak JSON when the request says Accept: application/json. The same cookie
// signs in. Bodies are JSON (Content-Type: application/json) or a form. An Idempotency-Key header
// (1 to 128 printable characters) makes a repeated POST one thing.
//
//	POST /chat-sessions                {"installation":1,"repository":2,"branch":"main","sha":"…","text":"…","egress":"allowlist"}
//	                                   201 with the session; 409 base_moved when sha is not the branch's commit
//	GET  /chat-sessions/:id            200 with the session, its messages, sandbox, diff and pull request
//	POST /chat-sessions/:id/messages   {"text":"…"}                      201 with the message
//	POST /chat-sessions/:id/cancel     202 with the message whose end was asked for
//	GET  /chat-sessions/:id/diffs/latest, …/diffs/:diff   200 with files and patch
//	POST /chat-sessions/:id/publish    {"title":"…","body":"…","draft":true,"base":"main","paths":{"logo.png":true}}
//	                                   202 with the publication; without draft it is one, paths are kept for later
//	POST /chat-sessions/:id/publications/:publication/again   {"choice":"reopen"} or "new"   202 with the publication,
//	                                   after one whose code is pull_request_closed, branch_deleted or reopen_refused
//	POST …/cancel                      200 with the session
//	GET  /chat-sessions/:id/publish    200 with the newest publication and the pull request
//	GET  /admin/installations/:installation/repositories/:repository/policy   200 with the shell policy of new sessions
//	POST the same                      {"bash_policy":"readonly"} or ""  200 with it; administrators only
//	GET  /chat-sessions/:id/network    200 with every host that the sandbox has reached or wanted
//	POST /chat-sessions/:id/network/hosts   {"host":"registry.example.com"}   204; it is on the repository's list
//	GET  /installations/:installation/repositories/:repository/network   200 with the mode of new sessions and the list of hosts
//	POST …/network/hosts, …/network/hosts/remove   {"host":"…"}          200 with it
//	POST …/network/mode                {"mode":"allowlist"} or ""        200 with it; administrators only
//	GET  /chat-sessions/:id/events     200 {"events":[…],"last_sequence":n}; ?after=n&limit=1..1000
//
// Without an Accept that names JSON, or with text/event-stream, the last one is a stream that goes
// on: unnamed messages with "id: <sequence>", resumed from the larger of ?after= and Last-Event-ID.
//
// A failure is {"error":{"code":"…","message":"…","request_id":"…"}} with the status of its kind.
package handlers

import (
	"context"
	"log/slog"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/live"
	"agent-sandboxing/core/webhook"
)

// Follower hands out a session's events in order: those after a sequence, then new ones as they are
// committed, until ctx ends or yield fails.
type Follower interface {
	Follow(ctx context.Context, session core.SessionID, after int64, yield func(live.Batch) error) error
}

// Handlers holds what the routes need.
type Handlers struct {
	Chat     *chat.Service
	Webhooks *webhook.Receiver // nil: none are taken
	Hub      Follower
	Cookies  *scs.SessionManager
	Log      *slog.Logger
	Site     Site
	Streams  StreamTimes
	// Draining is closed when the server begins to stop; streams then say so and end.
	Draining <-chan struct{}
}

// Site is what every page says of this installation.
type Site struct {
	GitHubHost string   // "github.com", or the Enterprise host
	GitHubURL  string   // web address without a slash at the end
	DemoPeople []string // the stand-in's in a demo, as "login (what they may do)"; nil otherwise
}

// StreamTimes are the clocks of a stream; a zero field takes its default.
type StreamTimes struct {
	Ping     time.Duration // between two pings, 15 s
	Recheck  time.Duration // between two looks at login and access, 60 s
	Lifetime time.Duration // least life, 30 min; up to twice that by jitter
}

func (t StreamTimes) orDefaults() StreamTimes {
	if t.Ping == 0 {
		t.Ping = 15 * time.Second
	}
	if t.Recheck == 0 {
		t.Recheck = time.Minute
	}
	if t.Lifetime == 0 {
		t.Lifetime = 30 * time.Minute
	}
	return t
}

// Viewer is who asks.
type Viewer struct {
	User  core.User
	Login core.LoginID
}

// SetViewer notes who asks; the middleware that checked the login calls it.
func SetViewer(c echo.Context, v Viewer) { c.Set(viewerKey, v) }

const viewerKey = "viewer"

// viewer is who asks; the zero Viewer on routes that need no login.
func viewer(c echo.Context) Viewer {
	v, _ := c.Get(viewerKey).(Viewer)
	return v
}

// UserID is the id of who asks, "" for nobody.
func UserID(c echo.Context) string { return string(viewer(c).User.ID) }

// user is the person who asks.
func user(c echo.Context) core.User { return viewer(c).User }

// sessionID reads the id of the path.
func sessionID(c echo.Context) (core.SessionID, error) {
	return core.ParseID[core.SessionID](c.Param("id"))
}
