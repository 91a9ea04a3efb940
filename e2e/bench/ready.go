package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/localpg"
	"agent-sandboxing/core/seal"
	"agent-sandboxing/core/store"
	"agent-sandboxing/sandbox"
)

const (
	readyRounds = 15
	repoFiles   = 2000
	burst       = 20
	poolSize    = 8
)

// world is a whole execution plane: Docker, a Postgres of its own and a repository.
type world struct {
	*host
	dir        string
	database   *localpg.Server
	store      *store.Store
	repository *repository
	owner      core.User
	worker     core.Worker
	internet   *internet
	warm, cold *sandbox.Service
	over       []string // containers that were used
}

// openWorld needs a close when it succeeded.
func openWorld(ctx context.Context, h *host, files int) (_ *world, err error) {
	w := &world{host: h}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(ctx))
		}
	}()
	if w.dir, err = os.MkdirTemp("/tmp", "bench-ready-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(w.dir, 0o755); err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	if w.database, err = localpg.Start(ctx, w.dir, log); err != nil {
		return nil, err
	}
	keys, err := seal.Parse(seal.NewKey("bench"))
	if err != nil {
		return nil, err
	}
	if w.store, err = store.Open(ctx, w.database.URL(), keys, log); err != nil {
		return nil, err
	}
	if err := w.store.Migrate(ctx); err != nil {
		return nil, err
	}
	if w.owner, err = w.store.UpsertUser(ctx, core.Person{ID: 1, Login: "bench"}); err != nil {
		return nil, err
	}
	at, err := h.Host(ctx)
	if err != nil {
		return nil, err
	}
	w.worker = core.Worker{ID: core.NewID[core.WorkerID](), Host: at, Version: "bench", Capacity: burst}
	if err := w.store.SaveWorker(ctx, w.worker); err != nil {
		return nil, err
	}
	if w.repository, err = newRepository(ctx, filepath.Join(w.dir, "repository"), files); err != nil {
		return nil, err
	}
	if w.internet, err = openInternet(w.store, log); err != nil {
		return nil, err
	}
	options := sandbox.Options{Runtime: h, Store: w.store, Source: w.repository, Network: w.internet, Log: log, Limits: limits, Warm: poolSize}
	w.warm = sandbox.New(options)
	options.Warm = 0
	w.cold = sandbox.New(options)
	return w, nil
}

func (w *world) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if w.store != nil {
		w.store.Close()
	}
	var err error
	if w.database != nil {
		err = w.database.Stop(ctx)
	}
	if w.internet != nil {
		err = errors.Join(err, w.internet.Close())
	}
	return err
}

// claim makes a session whose first message waits, and leases it.
func (w *world) claim(ctx context.Context) (core.Claim, error) {
	_, err := w.store.CreateSession(ctx, core.NewSession{
		Session: core.ChatSession{
			OwnerID: w.owner.ID, BaseBranch: "main", BaseSHA: w.repository.head, Title: "Bench", BashPolicy: core.PolicySeed, EgressMode: core.EgressOpen,
			Repository: core.Repository{ID: 1, InstallationID: 1, Owner: "octo", Name: "bench", DefaultBranch: "main", CanPull: true, CanPush: true},
		},
		Text: "Bench",
	})
	if err != nil {
		return core.Claim{}, err
	}
	return w.store.Claim(ctx, w.worker, time.Hour, core.Budgets{})
}

// session is one that has run its first command.
type session struct {
	core.Claim
	ws       core.PlatformWorkspace
	ready    time.Duration // until the first command has ended
	standing time.Duration // until its sandbox was the session's
	command  time.Duration // one more command
}

func (w *world) start(ctx context.Context, service *sandbox.Service, claim core.Claim) (session, error) {
	s := session{Claim: claim}
	began := time.Now()
	var err error
	if s.ws, err = service.Acquire(ctx, claim); err != nil {
		return s, err
	}
	if _, err := sh(ctx, s.ws, "git rev-parse HEAD"); err != nil {
		return s, err
	}
	s.ready, s.standing = time.Since(began), w.internet.stood(claim.Session.ID).Sub(began)
	s.command, err = timed(func() error { _, err := sh(ctx, s.ws, "true"); return err })
	return s, err
}

// end is the session's end of a turn, and how long the turn waited for it.
func (w *world) end(ctx context.Context, service *sandbox.Service, s session) (time.Duration, error) {
	released, _ := timed(func() error { service.Release(ctx, s.Claim, s.ws); return nil })
	box, err := w.store.LiveSandbox(ctx, s.Session.ID)
	if err != nil || box == nil {
		return released, fmt.Errorf("the session has no sandbox: %w", err)
	}
	w.over = append(w.over, box.RuntimeRef)
	return released, nil
}

// ready is S2 and S3: a session from nothing to the end of its first command, from the pool and
// without one; S5's filling of a workspace; S4, a burst; and how long S8's removal takes.
func (h *host) ready(ctx context.Context, r *report) (err error) {
	w, err := openWorld(ctx, h, repoFiles)
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if err != nil {
		return err
	}
	var warm, claimed, cold, container, untar, released []time.Duration
	for i := range readyRounds + 1 {
		if err := w.warm.TendPool(ctx); err != nil { // full before the claim is measured
			return err
		}
		var one [2]session
		var gave [2]time.Duration
		for at, service := range []*sandbox.Service{w.warm, w.cold} {
			claim, err := w.claim(ctx)
			if err != nil {
				return err
			}
			if one[at], err = w.start(ctx, service, claim); err != nil {
				return err
			}
			if gave[at], err = w.end(ctx, service, one[at]); err != nil {
				return err
			}
		}
		bare, err1 := timed(func() error { _, err := h.bare(ctx, "true"); return err })
		files, err2 := w.untar(ctx)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if i > 0 {
			warm, cold = append(warm, one[0].ready), append(cold, one[1].ready)
			claimed = append(claimed, one[0].standing+one[0].command)
			container, untar = append(container, bare), append(untar, files)
			released = append(released, gave[:]...)
		}
	}
	bare, tar := percentile(container, 50), percentile(untar, 50)
	got, alone, slow := percentile(warm, 50), percentile(claimed, 50), percentile(cold, 50)
	r.judge(5*got <= 2*bare, "S2 %s: session ready from the pool with %d files %.0f ms (p95 %.0f), docker run %.0f ms, ratio %s (budget 0.40); tar x of the files alone %.0f ms",
		h.name, repoFiles, ms(got), ms(percentile(warm, 95)), ms(bare), ratio(got, bare), ms(tar))
	r.judge(30*alone <= bare, "S2 %s: claim and first command alone %.1f ms (p95 %.1f), docker run %.0f ms, ratio %s (budget 1/30)",
		h.name, ms(alone), ms(percentile(claimed, 95)), ms(bare), ratio(alone, bare))
	allowed := bare*105/100 + 2*tar
	if h.name != "runc" {
		allowed = bare*3/2 + 2*tar
	}
	r.judge(slow <= allowed, "S3 %s: session ready without a pool %.0f ms (p95 %.0f), docker run %.0f ms and tar x of the files %.0f ms, ratio to the budget %s",
		h.name, ms(slow), ms(percentile(cold, 95)), ms(bare), ms(tar), ratio(slow, allowed))
	if err := errors.Join(w.fill(ctx, r), w.burst(ctx, r, slow)); err != nil {
		return err
	}
	var removed []time.Duration
	for _, ref := range w.over {
		took, err := timed(func() error { return w.Remove(ctx, ref, false) })
		if err != nil {
			return err
		}
		removed = append(removed, took)
	}
	gave, took := percentile(released, 50), percentile(removed, 50)
	r.judge(4*gave <= took, "S8 %s: a turn's end %.0f ms, the removal that it does not wait for %.0f ms, ratio %s (budget 1/4)", h.name, ms(gave), ms(took), ratio(gave, took))
	return nil
}

// untar unpacks the repository's files on the host.
func (w *world) untar(ctx context.Context) (time.Duration, error) {
	dir, err := os.MkdirTemp(w.dir, "untar-")
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	cmd.Stdin = bytes.NewReader(w.repository.archive)
	return timed(cmd.Run)
}

// fill is S5's first half: the files' way into a sandbox that stands ready.
func (w *world) fill(ctx context.Context, r *report) error {
	var ours, theirs []time.Duration
	for range readyRounds {
		b, err := w.box(ctx)
		if err != nil {
			return err
		}
		spec, pack, err := w.repository.Checkout(ctx, core.ChatSession{ID: core.NewID[core.SessionID]()}, false)
		if err != nil {
			return err
		}
		own, err := timed(func() error { return b.Checkout(ctx, spec, pack) })
		if err := errors.Join(err, pack.Close(), b.Close()); err != nil {
			return err
		}
		w.over = append(w.over, b.ref)
		other, err := w.untar(ctx)
		if err != nil {
			return err
		}
		ours, theirs = append(ours, own), append(theirs, other)
	}
	own, other := percentile(ours, 50), percentile(theirs, 50)
	r.judge(own <= 2*other, "S5 %s: %d files into a workspace %.0f ms, tar x on the host %.0f ms, ratio %s (budget 2)", w.name, repoFiles, ms(own), ms(other), ratio(own, other))
	return nil
}
