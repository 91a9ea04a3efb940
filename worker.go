package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/agent/tools"
	"agent-sandboxing/core"
	"agent-sandboxing/core/config"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/network"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/turn"
	"agent-sandboxing/core/webhook"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/egress"
)

const (
	// reportEvery is below the 30 s after which a worker counts as gone.
	reportEvery = 5 * time.Second
	// probeWait bounds the questions to GitHub at start-up.
	probeWait = 10 * time.Second
	// probeEvery is how often they are asked again.
	probeEvery = 10 * time.Minute
	// removeWait bounds the removal of containers when serve ends.
	removeWait = time.Minute
)

// worker is the execution half of the product.
type worker struct {
	*process
	self      atomic.Pointer[core.Worker] // replaced by each report
	tokens    installationTokens
	runtime   *docker.Runtime
	app       *github.App
	probed    atomic.Pointer[probed]
	sandboxes *sandbox.Service
	network   *network.Service
	processor *turn.Processor
}

// probed is what GitHub said of the App the last time.
type probed struct {
	info    github.AppInfo // zero until GitHub has answered
	problem string         // what keeps it from working, in words for people
}

func newWorker(ctx context.Context, p *process) (*worker, error) {
	app, err := openApp(p)
	if err != nil {
		return nil, err
	}
	tokens := github.NewTokens(app, func(t core.RepoToken) { p.redact.AddUntil(t.ExpiresAt, t.Value) })
	instance, err := p.store.Instance(ctx)
	if err != nil {
		return nil, err
	}
	w := &worker{process: p, app: app, tokens: installationTokens{tokens, p.store}}
	if w.runtime, err = docker.New(docker.Config{
		Host: p.cfg.DockerHost, Image: p.cfg.Sandbox.Image, Runtime: p.cfg.Sandbox.Runtime, Instance: instance, CAFile: p.cfg.Sandbox.CAFile,
	}); err != nil {
		return nil, err
	}
	m, err := mirror.New(mirror.Options{
		Dir: filepath.Join(p.cfg.DataDir, "mirror"), GitURL: p.bases.GitURL, Tokens: w.tokens, CAFile: p.cfg.Sandbox.CAFile,
		CloneDepth: p.cfg.CloneDepth, MaxBaseBytes: p.cfg.CloneMax << 20, FixturesDir: p.cfg.FixturesDir, Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	w.network = network.New(network.Options{
		Store: p.store, Ceiling: p.cfg.Egress.EgressMode, Hosts: p.cfg.Egress.EgressAllow, Log: p.log,
	})
	proxy, err := egress.New(egress.Options{Policies: w.network, Recorder: w.network, Private: p.cfg.Egress.EgressAllowPrivate, MaxBytes: p.cfg.Egress.EgressMaxMiB << 20})
	if err != nil {
		return nil, err
	}
	w.sandboxes = sandbox.New(sandbox.Options{
		Network: proxy, Runtime: w.runtime, Store: p.store, Source: m, Log: p.log, MaxRunning: p.cfg.Sandbox.MaxRunning, Warm: p.cfg.Sandbox.Warm,
		MaxAge: time.Duration(p.cfg.Sandbox.MaxAge) * time.Hour, DiskReserve: p.cfg.Sandbox.DiskReserve << 20,
		Limits: sandbox.Limits{
			MemoryBytes: p.cfg.Sandbox.Memory << 20, CPUs: p.cfg.Sandbox.CPUs, PIDs: p.cfg.Sandbox.PIDs,
			DiskBytes: p.cfg.Sandbox.Disk << 20, Inodes: p.cfg.Sandbox.Inodes,
		},
	})
	w.probe(ctx)
	w.self.Store(&core.Worker{
		ID: core.NewID[core.WorkerID](), Version: version, Capacity: p.cfg.Sandbox.MaxRunning,
		Status: core.WorkerStatus{
			Model: p.cfg.Model.AgentModel, ModelLabel: p.cfg.Model.ModelLabel, Runtime: p.cfg.Sandbox.Runtime,
		},
	})
	w.observe(ctx)
	loop, err := openAgent(p)
	if err != nil {
		return nil, err
	}
	w.processor = turn.NewProcessor(turn.Options{
		Store: p.store, Sandboxes: w.sandboxes, Agent: loop, Mirror: publish.Marked{Mirror: m}, Signals: p.hub, Redactor: p.redact, Network: w.network,
		Publisher: w.publisher(m), Budgets: p.cfg.Limits.Budgets(), Worker: func() core.Worker { return *w.self.Load() }, Ready: w.sandboxes.Answers, Log: p.log,
	})
	return w, nil
}

func openApp(p *process) (*github.App, error) {
	key, err := os.ReadFile(p.cfg.GitHub.AppPrivateKeyFile)
	if err != nil {
		return nil, fmt.Errorf("GITHUB_APP_PRIVATE_KEY_FILE: %w", err)
	}
	p.redact.Add(string(key))
	app, err := github.NewApp(github.AppConfig{Bases: p.bases, AppID: p.cfg.GitHub.AppID, PrivateKey: key, Roots: p.roots, Log: p.log})
	if err != nil {
		return nil, fmt.Errorf("GITHUB_APP_PRIVATE_KEY_FILE: %w", err)
	}
	return app, nil
}

// installationTokens are the App's. A refusal that says that an installation has changed makes it stale: the
// webhook that should have said so may be off.
type installationTokens struct {
	*github.Tokens
	store *store.Store
}

// Mint is the App's own.
func (t installationTokens) Mint(ctx context.Context, repo core.Repository, purpose core.TokenPurpose) (core.RepoToken, error) {
	token, err := t.Tokens.Mint(ctx, repo, purpose)
	switch core.CodeOf(err) {
	case github.CodeInstallationRemoved, github.CodeInstallationSuspended, github.CodePermissionMissing:
		err = errors.Join(err, t.store.InstallationChanged(ctx, repo.InstallationID))
	}
	return token, err
}

func openAgent(p *process) (*agent.Agent, error) {
	model, limits := p.cfg.Model, p.cfg.Limits
	return agent.New(agent.Options{
		Model: openai.New(modelOptions(model)), Summaries: summaries(model), Prices: prices(model), Window: model.ContextWindow,
		Tools: tools.Options{NumberLines: model.AgentLineNumbers, ExactEdits: model.AgentExactEdits}.New, Redactor: p.redact,
		Limits: agent.Limits{
			Steps: limits.AgentMaxSteps, StepsCeiling: limits.AgentMaxStepsCeiling, Wall: time.Duration(limits.AgentMaxMinutes) * time.Minute,
			CostUSD: limits.AgentMaxCostUSD, CostKnown: limits.Money(),
		},
	})
}

// summaries is the model of AGENT_SUMMARY_MODEL, nil without one. What is set for the agent's model
// alone does not concern it.
func summaries(m config.Model) agent.Model {
	if m.AgentSummaryModel == "" {
		return nil
	}
	o := modelOptions(m)
	o.Model, o.Replay, o.Effort = m.AgentSummaryModel, openai.ReplayNone, ""
	return openai.New(o)
}

// prices are the operator's, nil when there are none.
func prices(m config.Model) *agent.Prices {
	if m.ModelPriceInput == nil {
		return nil
	}
	p := &agent.Prices{Input: *m.ModelPriceInput, Output: *m.ModelPriceOutput, Cached: *m.ModelPriceInput}
	if m.ModelPriceCached != nil {
		p.Cached = *m.ModelPriceCached
	}
	return p
}

// probe asks GitHub who the App is and whether it may do what sessions need. A GitHub that does not
// answer keeps nobody from working.
func (w *worker) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	info, err := w.app.Probe(ctx)
	now := probed{info: info}
	switch {
	case err != nil:
		w.log.WarnContext(ctx, "the GitHub App did not answer", "code", core.CodeOf(err), "error", err)
		if last := w.probed.Load(); last != nil {
			now = *last
		}
		if core.CodeOf(err) == github.CodeAppUnauthorized {
			now.problem = core.MessageOf(err)
		}
	case len(info.Missing) > 0:
		w.log.WarnContext(ctx, "the GitHub App lacks permissions", "missing", strings.Join(info.Missing, ", "))
		now.problem = "The GitHub App lacks " + strings.Join(info.Missing, " and ") + ". Sessions cannot publish until its owner asks for that on the App's page and each account accepts it."
	}
	w.probed.Store(&now)
}

// reprobe asks again from time to time, until ctx ends.
func (w *worker) reprobe(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.probe(ctx)
		}
	}
}

// bot is who signs the commits: the App's bot, or a plain name as long as GitHub has not said who that is.
func (w *worker) bot() publish.Identity {
	last := w.probed.Load()
	if last == nil || last.info.Slug == "" {
		name := "agent-sandboxing[bot]"
		return publish.Identity{Name: name, Email: name + "@" + w.bases.NoreplyHost()}
	}
	name, email := last.info.Committer()
	return publish.Identity{Name: name, Email: email}
}

func (w *worker) publisher(m *mirror.Mirror) *publish.Service {
	return publish.New(publish.Options{
		Store: w.store, Mirror: m, Tokens: w.tokens, PullRequests: w.app, Access: w.chat, Bot: w.bot,
		PublicURL: w.cfg.PublicURL, NoreplyHost: w.bases.NoreplyHost(), Log: w.log,
		Redact: func(s string) string { clean, _ := w.redact.Text(s); return clean },
	})
}

// run works until ctx ends. A single process removes its containers then and keeps their volumes;
// with several workers others may still use them.
func (w *worker) run(ctx context.Context, alone bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.processor.Run(ctx) })
	group.Go(func() error { w.sandboxes.Run(ctx); return nil })
	group.Go(func() error { w.report(ctx); return nil })
	group.Go(func() error { w.network.Run(ctx); return nil })
	group.Go(func() error { w.reprobe(ctx); return nil })
	group.Go(func() error {
		webhook.Reader{Records: w.store, App: w.app, People: w.chat, Log: w.log}.Run(ctx)
		return nil
	})
	group.Go(func() error {
		webhook.Sweeper{Hooks: w.app, Received: w.store, Now: time.Now, Log: w.log}.Run(ctx)
		return nil
	})
	err := group.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWait)
	defer cancel()
	w.network.FlushAll(end) // nothing connects any more
	w.tokens.Close(end)
	if alone {
		if removeErr := w.sandboxes.RemoveAll(end); removeErr != nil {
			w.log.WarnContext(end, "remove containers", "error", removeErr)
		}
	}
	return err
}

// report writes what pages show of this worker, until ctx ends.
func (w *worker) report(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		w.observe(ctx)
		if err := w.store.SaveWorker(ctx, *w.self.Load()); err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "report worker", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// observe looks at Docker and the disk.
func (w *worker) observe(ctx context.Context) {
	self := *w.self.Load()
	seen := w.sandboxes.Status(ctx)
	self.Status.Docker, self.Status.Runtime, self.Status.Image, self.Status.RunningBoxes = seen.Docker, seen.Runtime, seen.Image, seen.RunningBoxes
	if host, err := w.runtime.Host(ctx); err == nil {
		self.Host = host
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(w.cfg.DataDir, &disk); err == nil {
		self.Status.DiskFreeMiB = int64(disk.Bavail) * disk.Bsize >> 20
	}
	if app := w.probed.Load(); app != nil {
		self.Status.AppSlug, self.Status.AppProblem = app.info.Slug, app.problem
	}
	w.self.Store(&self)
}
