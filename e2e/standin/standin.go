// Package standin runs the two services that are other people's in real life, a seeded GitHub and a
// scripted model, and says with which environment the product uses them.
package standin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/github/githubtest/seed"
)

// GitHub is a seeded stand-in that keeps its state in a folder.
type GitHub struct {
	server *githubtest.Server
	addr   string
	dir    string
}

// OpenGitHub seeds the stand-in when its folder is new. Serve serves it on addr.
func OpenGitHub(ctx context.Context, dir, addr string) (*GitHub, error) {
	server, err := githubtest.New(githubtest.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return nil, err
	}
	if err := seed.Apply(ctx, server); err != nil {
		return nil, fmt.Errorf("seed the stand-in: %w", err)
	}
	return &GitHub{server: server, addr: addr, dir: dir}, nil
}

// Environment points the product at the stand-in, and lets its people in.
func (g *GitHub) Environment() map[string]string {
	c := g.server.Config()
	return map[string]string{
		"GITHUB_BASE_URL": "http://" + g.addr, "GITHUB_CLIENT_ID": c.ClientID, "GITHUB_CLIENT_SECRET": c.ClientSecret,
		"GITHUB_APP_ID": strconv.FormatInt(c.AppID, 10), "GITHUB_APP_PRIVATE_KEY_FILE": filepath.Join(g.dir, "app.pem"),
		"GITHUB_WEBHOOK_SECRET": webhookSecret,
		"ALLOWED_LOGINS":        seed.Owner + "," + seed.Reader, "ADMIN_LOGINS": seed.Admin,
		"DEMO_LOGINS": strings.Join(g.People(), ","),
	}
}

// LeadTo makes the stand-in's pages lead back to the product at an address, and its webhook deliver there.
func (g *GitHub) LeadTo(publicURL string) {
	g.server.SetSetupURL(publicURL + "/github/setup")
	g.server.SetWebhook(publicURL+"/github/webhook", webhookSecret)
}

// webhookSecret signs what the stand-in delivers. It never leaves the machine.
const webhookSecret = "the stand-in's webhook secret"

// Server is the stand-in itself, to change what is on it and to make it fail.
func (g *GitHub) Server() *githubtest.Server { return g.server }

// People says who may sign in, and as what.
func (g *GitHub) People() []string {
	return []string{
		seed.Admin + " (administrator)", seed.Owner + " (may push and publish)", seed.Reader + " (may only read)",
	}
}

// Serve serves until ctx ends.
func (g *GitHub) Serve(ctx context.Context) error { return g.server.ListenAndServe(ctx, g.addr) }

// ModelEnvironment points the product at a scripted model on addr.
func ModelEnvironment(addr string) map[string]string {
	return map[string]string{
		"MODEL_BASE_URL": "http://" + addr + "/v1", "OPENROUTER_API_KEY": "key-of-the-scripted-model", "AGENT_MODEL": modeltest.Demo().Name(),
		"MODEL_LABEL": "Scripted demo model on a stand-in GitHub",
	}
}

// ServeModel answers with the demo's script until ctx ends, delay after each piece of a stream.
func ServeModel(ctx context.Context, addr string, delay time.Duration) error {
	return ServeScript(ctx, addr, modeltest.Demo(), delay)
}

// ServeScript is ServeModel with another script.
func ServeScript(ctx context.Context, addr string, script modeltest.Script, delay time.Duration) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for the scripted model: %w", err)
	}
	server := &http.Server{Handler: modeltest.NewServer(script, delay), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	<-ctx.Done()
	// Streams that are open belong to turns that have been told to end.
	if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
