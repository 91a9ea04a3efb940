package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/config"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/live"
	"agent-sandboxing/core/localpg"
	"agent-sandboxing/core/redact"
	"agent-sandboxing/core/seal"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/webhook"
	"agent-sandboxing/web"
)

// pruneEvery is how often expired cookies and workers long gone are deleted.
const pruneEvery = time.Hour

// stopWait bounds the stop of our own Postgres.
const stopWait = 30 * time.Second

// process is what every role shares.
type process struct {
	cfg      config.Config
	log      *slog.Logger
	redact   *redact.Redactor
	database *localpg.Server // nil with DATABASE_URL
	store    *store.Store
	hub      *live.Hub
	bases    github.Bases
	roots    *x509.CertPool // of SANDBOX_CA_FILE; nil: the system's
	chat     *chat.Service
}

// run is a whole process of one role, from configuration to the last write.
func run(ctx context.Context, role config.Role) (err error) {
	cfg, err := config.Load(role)
	if err != nil {
		return fmt.Errorf("the configuration has problems:\n%w", err)
	}
	var listener net.Listener
	if role != config.Worker {
		if listener, err = listen(ctx, cfg.ListenAddr); err != nil {
			return err
		}
		defer listener.Close()
	}
	p := &process{cfg: cfg, redact: redact.New(cfg.Secrets()...)}
	p.log = slog.New(slog.NewJSONHandler(redactedWriter{p.redact, os.Stderr}, nil))
	keys, err := p.openKeys()
	if err != nil {
		return err
	}
	url := cfg.DatabaseURL.Reveal()
	if cfg.DatabaseURL.Empty() {
		if p.database, err = localpg.Start(ctx, cfg.DataDir, p.log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stopDatabase(ctx, p.database)) }()
		url = p.database.URL()
	}
	if p.store, err = store.Open(ctx, url, keys, p.log); err != nil {
		return err
	}
	defer p.store.Close()
	if err := p.schema(ctx, role); err != nil {
		return err
	}
	if err := p.people(); err != nil {
		return err
	}
	return p.serve(ctx, role, listener)
}

// schema migrates in serve, where no other process can be surprised; the others wait for it.
func (p *process) schema(ctx context.Context, role config.Role) error {
	if role == config.Serve {
		return p.store.Migrate(ctx)
	}
	return p.store.WaitForSchema(ctx)
}

// people builds the use cases, which web answers with and workers ask about access.
func (p *process) people() (err error) {
	if p.bases, err = github.NewBases(p.cfg.GitHub.BaseURL); err != nil {
		return err
	}
	if p.roots, err = readRoots(p.cfg.Sandbox.CAFile); err != nil {
		return err
	}
	p.hub = live.NewHub(p.store)
	o := chat.Options{
		Store: p.store,
		GitHub: github.NewUser(github.UserConfig{
			Bases: p.bases, ClientID: p.cfg.GitHub.ClientID, ClientSecret: p.cfg.GitHub.ClientSecret.Reveal(),
			RedirectURL: p.cfg.PublicURL + "/auth/github/callback", Roots: p.roots,
		}),
		Gate: chat.Gate{
			AllowedLogins: p.cfg.Access.AllowedLogins, AllowedOrgs: p.cfg.Access.AllowedOrgs, AdminLogins: p.cfg.Access.AdminLogins,
		},
		EgressMode: p.cfg.Egress.EgressMode, EgressHosts: p.cfg.Egress.EgressAllow,
		BashPolicy: p.cfg.BashPolicy, MaxSteps: p.cfg.Limits.AgentMaxStepsCeiling, Log: p.log,
	}
	if p.cfg.EnableFixtures {
		if o.Fixtures, err = newFixtures(p.cfg, p.log); err != nil {
			return err
		}
	}
	p.chat = chat.New(o)
	return nil
}

// readRoots reads the authorities of SANDBOX_CA_FILE, nil without one.
func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("SANDBOX_CA_FILE: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b) {
		return nil, errors.New("SANDBOX_CA_FILE holds no certificate")
	}
	return roots, nil
}

// serve runs the role's parts until ctx ends or one of them fails, then stops all.
func (p *process) serve(parent context.Context, role config.Role, listener net.Listener) error {
	server, err := p.web() //nolint:contextcheck // each request brings its own
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(parent)
	group.Go(func() error {
		err := p.store.Listen(ctx, store.Handler{Session: p.hub.Wake, Partial: p.hub.WakePartial, Work: p.hub.WakeWork, Access: p.chat.AccessChanged})
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	group.Go(func() error { return p.watchDatabase(ctx) })
	if role != config.Worker {
		group.Go(func() error { return server.Run(ctx, listener) })
		group.Go(func() error { return p.prune(ctx) })
		p.log.InfoContext(ctx, "listening", "address", listener.Addr().String(), "version", version)
	}
	if role != config.Web {
		// In here, because it asks Docker and GitHub first, and pages must not wait for them.
		group.Go(func() error {
			w, err := newWorker(ctx, p)
			if err != nil {
				return err
			}
			return w.run(ctx, role == config.Serve)
		})
	}
	if err := group.Wait(); err != nil && !stopped(parent, err) {
		return err
	}
	return nil
}

// stopped says that an error is only how something said that it was told to end.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

func (p *process) web() (*web.Server, error) {
	return web.New(web.Options{
		Chat: p.chat, Webhooks: webhook.NewReceiver(p.cfg.GitHub.WebhookSecret.Reveal(), p.store, p.log), Hub: p.hub, Cookies: p.store.Cookies(), Log: p.log, PublicURL: p.cfg.PublicURL,
		GitHubURL: p.bases.Web, DemoPeople: p.cfg.DemoLogins, Ready: p.store.Ping,
	})
}

// prune deletes expired cookies and workers long gone until ctx ends.
func (p *process) prune(ctx context.Context) error {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		if _, err := p.store.PruneCookies(ctx); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "prune cookies", "error", err)
		}
		if _, err := p.store.PruneWorkers(ctx); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "prune workers", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, core.Fail(core.Unavailable, "address_in_use",
			"Cannot listen on "+addr+". Stop what uses it, or set LISTEN_ADDR to another address.").Because(err)
	}
	return l, nil
}

func stopDatabase(ctx context.Context, server *localpg.Server) error {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	return server.Stop(end)
}

// watchDatabase ends the process when its own Postgres has ended: nothing works without it, and
// whoever restarts us starts it again.
func (p *process) watchDatabase(ctx context.Context) error {
	if p.database == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-p.database.Done():
		p.store.Close() // no turn shall wait to write its end: nothing takes it any more
		return core.Fail(core.Unavailable, "postgres_failed", "The local Postgres has stopped; what it said last is in this log. Start the server again.")
	}
}

// openKeys reads ENCRYPTION_KEYS, or the key file that serve makes in DATA_DIR.
func (p *process) openKeys() (*seal.Keyring, error) {
	list := p.cfg.EncryptionKeys.Reveal()
	if list == "" {
		var err error
		if list, err = keyFile(p.cfg.DataDir); err != nil {
			return nil, fmt.Errorf("encryption key: %w", err)
		}
	}
	p.redact.Add(config.EncryptionSecrets(list)...)
	return seal.Parse(list)
}

// keyFile reads the key file of a data folder, made when there is none. It appears whole or not at
// all: half a key would make every stored token unreadable.
func keyFile(dir string) (string, error) {
	path := filepath.Join(dir, "encryption.key")
	b, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		return string(b), err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	key := seal.NewKey("k1")
	if err := os.WriteFile(path+".new", []byte(key), 0o600); err != nil {
		return "", err
	}
	return key, os.Rename(path+".new", path)
}

// redactedWriter takes every known secret out of each log line: the last net, not the first.
type redactedWriter struct {
	redact *redact.Redactor
	to     io.Writer
}

func (w redactedWriter) Write(line []byte) (int, error) {
	clean, _ := w.redact.Bytes(line)
	if _, err := w.to.Write(clean); err != nil {
		return 0, err
	}
	return len(line), nil
}
