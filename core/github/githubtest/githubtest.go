// Package githubtest is a stand-in for GitHub: sign-in pages, the part of the REST API that the
// product uses, and git over smart HTTP on real bare repositories. It lays everything out on one
// origin as GitHub Enterprise does (/login/oauth, /api/v3, /{owner}/{repo}.git), so the product
// reaches it by GITHUB_BASE_URL alone. Tests run it under httptest; the demo runs it as a server.
//
// It answers what GitHub answers, refusals included, and only on a loopback address. Every exchange of
// the REST API is held to GitHub's own description (package contract); one that breaks it is answered
// with status 500.
package githubtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options says where a Server keeps its state and what time it is.
type Options struct {
	// Dir holds state.json, app.pem and the bare repositories; it is made when absent.
	Dir string
	// Clock is the time that tokens live by; nil means time.Now. Advance moves it.
	Clock func() time.Time
	// StatelessTokens mints installation tokens in GitHub's long form of 2026 instead of the short one.
	StatelessTokens bool
	// BadRequests lets requests break GitHub's description as long as they are refused, for the tests of
	// the refusals themselves.
	BadRequests bool
	// Log receives faults of the stand-in itself; nil discards them.
	Log *slog.Logger
}

// Server is one GitHub. It is safe for concurrent use.
type Server struct {
	dir       string
	stateless bool
	lenient   bool
	log       *slog.Logger
	clock     func() time.Time
	key       appKey
	handler   http.Handler

	mu       sync.Mutex
	state    state
	offset   time.Duration
	faults   []*Fault
	requests []string
	hook     hook
	setupURL string
}

// New opens the state in o.Dir, or makes a fresh GitHub with one App and nobody on it.
func New(o Options) (*Server, error) {
	s := &Server{dir: o.Dir, stateless: o.StatelessTokens, lenient: o.BadRequests, clock: o.Clock, log: o.Log}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "git"), 0o700); err != nil {
		return nil, fmt.Errorf("make the stand-in's folder: %w", err)
	}
	var err error
	if s.key, err = openAppKey(filepath.Join(s.dir, "app.pem")); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	held, err := s.held(s.routes())
	if err != nil {
		return nil, err
	}
	s.handler = s.observe(held)
	return s, nil
}

// Handler serves the whole origin, to requests for a loopback host only.
func (s *Server) Handler() http.Handler { return s.handler }

// Config is what an operator would copy from the App's settings page.
type Config struct {
	ClientID, ClientSecret string
	AppID                  int64
	AppSlug                string
	PrivateKey             []byte // PEM
}

// Config returns the credentials of the one App; they stay the same over restarts.
func (s *Server) Config() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.state.App
	return Config{ClientID: a.ClientID, ClientSecret: a.ClientSecret, AppID: a.ID, AppSlug: a.Slug, PrivateKey: s.key.pem}
}

// Now is the stand-in's time.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// Advance moves the stand-in's clock forward, so that tokens run out.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
}

// now needs s.mu.
func (s *Server) now() time.Time { return s.clock().Add(s.offset) }

// ListenAndServe is Listen and Serve.
func (s *Server) ListenAndServe(ctx context.Context, addr string) error {
	l, err := s.Listen(ctx, addr)
	if err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// Listen opens addr (port 0 chooses one). It refuses an address that is not loopback: whoever reaches
// the stand-in may sign in as anybody.
func (s *Server) Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("stand-in address %q: %w", addr, err)
	}
	if !isLoopback(host) {
		return nil, fmt.Errorf("stand-in address %q is not loopback", addr)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the stand-in: %w", err)
	}
	return l, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Serve answers on l, which it closes, until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve the stand-in: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := srv.Shutdown(end)
	if serveErr := <-done; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	if err != nil {
		return fmt.Errorf("stop the stand-in: %w", err)
	}
	return nil
}
