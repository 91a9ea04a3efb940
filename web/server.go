// Package web serves the product over HTTP: the server, every route in one table, the middleware,
// and the mapping from errors to answers.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/webhook"
	"agent-sandboxing/handlers"
)

// Options is what a Server is made of.
type Options struct {
	Chat *chat.Service
	Hub  handlers.Follower
	// Webhooks takes GitHub's deliveries; nil takes none.
	Webhooks *webhook.Receiver
	// Cookies keeps what belongs to a browser; pgxstore over the pool.
	Cookies scs.Store
	Log     *slog.Logger
	// PublicURL is how browsers reach us, http or https, without a path. With https the cookie is
	// Secure and bound to the host.
	PublicURL string
	// GitHubURL is the web address of GitHub or of the Enterprise host; "" means github.com.
	GitHubURL string
	// DemoPeople are the stand-in's, as "login (what they may do)"; nil outside a demo.
	DemoPeople []string
	// Ready says why no request can be served now, nil when all can: /readyz.
	Ready func(context.Context) error
	// Streams are the clocks of event streams; zero fields take their defaults.
	Streams handlers.StreamTimes
	// Limits bound what one person may ask; zero fields take their defaults.
	Limits Limits
}

// Server answers requests. Run it once.
type Server struct {
	handler  http.Handler
	routes   []route
	log      *slog.Logger
	draining chan struct{}
}

// Deadlines of ordinary answers; streams set their own.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 60 * time.Second
	answerTimeout = 90 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 15 * time.Second
	// maxBody holds the longest message and pull request text in their most wasteful encoding.
	maxBody = 1 << 20
)

// New builds a Server; it starts nothing.
func New(o Options) (*Server, error) {
	public, err := url.Parse(o.PublicURL)
	if err != nil || (public.Scheme != "http" && public.Scheme != "https") || public.Host == "" || strings.Trim(public.Path, "/") != "" {
		return nil, fmt.Errorf("public URL %q: want http(s)://host[:port] without a path", o.PublicURL)
	}
	if o.GitHubURL == "" {
		o.GitHubURL = "https://github.com"
	}
	github, err := url.Parse(o.GitHubURL)
	if err != nil || github.Host == "" {
		return nil, fmt.Errorf("GitHub URL %q: want http(s)://host", o.GitHubURL)
	}
	cookies := newCookies(o.Cookies, public.Scheme == "https")
	s := &Server{log: o.Log, draining: make(chan struct{})}
	h := &handlers.Handlers{
		Chat: o.Chat, Webhooks: o.Webhooks, Hub: o.Hub, Cookies: cookies, Log: o.Log, Streams: o.Streams, Draining: s.draining,
		Site: handlers.Site{
			DemoPeople: o.DemoPeople,
			GitHubHost: github.Host, GitHubURL: strings.TrimRight(o.GitHubURL, "/"),
		},
	}
	s.routes = routes(h, o.Ready)
	origin := public.Scheme + "://" + public.Host
	if s.handler, err = s.build(h, cookies, o, origin); err != nil {
		return nil, err
	}
	return s, nil
}

// build puts the middleware around the routes, the outermost first.
func (s *Server) build(h *handlers.Handlers, cookies *scs.SessionManager, o Options, origin string) (http.Handler, error) {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	failures := &failures{handlers: h, log: o.Log, identify: []echo.MiddlewareFunc{
		identify(h.Chat, cookies, false), loadCookies(cookies, o.Log),
	}}
	e.HTTPErrorHandler = failures.answer
	crossOrigin, err := refuseCrossOrigin(origin)
	if err != nil {
		return nil, err
	}
	limits := newLimiter(o.Limits)
	e.Use(requestID, accessLog(o.Log), failures.recover, securityHeaders(strings.HasPrefix(origin, "https://")), bodyLimit(maxBody), compress())
	for _, r := range s.routes {
		var chain []echo.MiddlewareFunc
		if r.access != plain {
			chain = append(chain, loadCookies(cookies, o.Log), identify(h.Chat, cookies, r.access == signedIn))
		}
		chain = append(chain, crossOrigin)
		if r.weight > 0 {
			chain = append(chain, limits.spend(r.weight))
		}
		e.Add(r.method, r.path, r.handle, chain...)
	}
	return e, nil
}

// Route is a line of the table, for those who check all of them.
type Route struct{ Method, Path string }

// Routes is every address that the server answers.
func (s *Server) Routes() []Route {
	all := make([]Route, 0, len(s.routes))
	for _, r := range s.routes {
		all = append(all, Route{r.method, r.path})
	}
	return all
}

// Run serves on l until ctx ends, then stops taking connections, tells the streams to come back,
// and waits for the answers under way.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: answerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	close(s.draining)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := srv.Shutdown(stop)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop http: %w", err), srv.Close())
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}
