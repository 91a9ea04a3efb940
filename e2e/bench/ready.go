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
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

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
	warm, cold *sandbox.Service
}

// openWorld starts one. What was started has to be closed also after an error.
func openWorld(ctx context.Context, h *host) (w *world, err error) {
	w = &world{host: h}
	if w.dir, err = os.MkdirTemp("/tmp", "bench-ready-"); err != nil {
		return w, err
	}
	if err := os.Chmod(w.dir, 0o755); err != nil {
		return w, err
	}
	log := slog.New(slog.DiscardHandler)
	if w.database, err = localpg.Start(ctx, w.dir, log); err != nil {
		return w, err
	}
	keys, err := seal.Parse(seal.NewKey("bench"))
	if err != nil {
		return w, err
	}
	if w.store, err = store.Open(ctx, w.database.URL(), keys, log); err != nil {
		return w, err
	}
	if err := w.store.Migrate(ctx); err != nil {
		return w, err
	}
	if w.owner, err = w.store.UpsertUser(ctx, core.Person{ID: 1, Login: "bench"}); err != nil {
		return w, err
	}
	at, err := h.Host(ctx)
	if err != nil {
		return w, err
	}
	w.worker = core.Worker{ID: core.NewID[core.WorkerID](), Host: at, Version: "bench", Capacity: burst}
	if err := w.store.SaveWorker(ctx, w.worker); err != nil {
		return w, err
	}
	if w.repository, err = newRepository(ctx, filepath.Join(w.dir, "repository"), repoFiles); err != nil {
		return w, err
	}
	options := sandbox.Options{Runtime: h, Store: w.store, Source: w.repository, Log: log, Limits: limits, Warm: poolSize}
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
	return errors.Join(err, os.RemoveAll(w.dir))
}

// claim makes a session whose first message waits, and leases it.
func (w *world) claim(ctx context.Context) (core.Claim, error) {
	_, err := w.store.CreateSession(ctx, core.NewSession{
		Session: core.ChatSession{
			OwnerID: w.owner.ID, BaseBranch: "main", BaseSHA: w.repository.head, Title: "Bench", BashPolicy: core.PolicySeed,
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
	standing time.Duration // until its sandbox began to unpack
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
	s.ready, s.standing = time.Since(began), w.repository.unpacks(claim.Session.ID).Sub(began)
	s.command, err = timed(func() error { _, err := sh(ctx, s.ws, "true"); return err })
	return s, err
}

// end removes what the session had; released is how long its turn waited for that: it does not.
func (w *world) end(ctx context.Context, service *sandbox.Service, s session) (released, removed time.Duration, err error) {
	released, _ = timed(func() error { service.Release(ctx, s.Claim, s.ws); return nil })
	box, err := w.store.LiveSandbox(ctx, s.Session.ID)
	if err != nil || box == nil {
		return released, 0, fmt.Errorf("the session has no sandbox: %w", err)
	}
	removed, err = timed(func() error { return w.Remove(ctx, box.RuntimeRef, true) })
	return released, removed, err
}

// ready is S2 and S3: a session from nothing to the end of its first command, from the pool and
// without one; S5's filling of a workspace; S4, a burst; and how long S8's removal takes.
func (h *host) ready(ctx context.Context, r *report) (err error) {
	w, err := openWorld(ctx, h)
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if err != nil {
		return err
	}
	if err := w.warm.TendPool(ctx); err != nil {
		return err
	}
	var warm, claimed, cold, container, untar, released, removed []time.Duration
	for i := range readyRounds + 1 {
		var one [2]session
		for at, service := range []*sandbox.Service{w.warm, w.cold} {
			claim, err := w.claim(ctx)
			if err != nil {
				return err
			}
			if one[at], err = w.start(ctx, service, claim); err != nil {
				return err
			}
			gave, took, err := w.end(ctx, service, one[at])
			if err != nil {
				return err
			}
			if i > 0 {
				released, removed = append(released, gave), append(removed, took)
			}
		}
		bare, err1 := timed(func() error { _, err := h.bare(ctx, "true"); return err })
		files, err2 := w.untar(ctx)
		if err := errors.Join(err1, err2, w.warm.TendPool(ctx)); err != nil {
			return err
		}
		if i > 0 {
			warm, cold = append(warm, one[0].ready), append(cold, one[1].ready)
			claimed = append(claimed, one[0].standing+one[0].command)
			container, untar = append(container, bare), append(untar, files)
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
	gave, took := percentile(released, 50), percentile(removed, 50)
	r.judge(4*gave <= took, "S8 %s: a turn's end %.0f ms, the removal that it does not wait for %.0f ms, ratio %s (budget 1/4)", h.name, ms(gave), ms(took), ratio(gave, took))
	return errors.Join(w.fill(ctx, r), w.burst(ctx, r, slow))
}

// untar unpacks the repository's files on the host.
func (w *world) untar(ctx context.Context) (time.Duration, error) {
	dir, err := os.MkdirTemp(w.dir, "untar-")
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	cmd.Stdin = bytes.NewReader(w.repository.archive)
	took, err := timed(cmd.Run)
	return took, errors.Join(err, os.RemoveAll(dir))
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
		if err := errors.Join(err, pack.Close(), w.drop(ctx, b)); err != nil {
			return err
		}
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

// burst is S4: more sessions at once than the pool has members.
func (w *world) burst(ctx context.Context, r *report, cold time.Duration) error {
	if err := w.warm.TendPool(ctx); err != nil {
		return err
	}
	claims := make([]core.Claim, burst)
	for i := range claims {
		var err error
		if claims[i], err = w.claim(ctx); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var all []session
	var group errgroup.Group
	for _, claim := range claims {
		group.Go(func() error {
			s, err := w.start(ctx, w.warm, claim)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				all = append(all, s)
			}
			return nil // counted below
		})
	}
	_ = group.Wait()
	var took []time.Duration
	for _, s := range all {
		took = append(took, s.ready)
		if _, _, err := w.end(ctx, w.warm, s); err != nil {
			return err
		}
	}
	refill, err := timed(func() error { return w.warm.TendPool(ctx) })
	if err != nil {
		return err
	}
	members, err1 := w.store.PoolMembers(ctx, w.worker.Host)
	list, err2 := w.List(ctx)
	volumes, err3 := w.Volumes(ctx)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	leaks := len(list) + len(volumes) - 2*poolSize
	r.judge(len(all) == burst && len(members) == poolSize && leaks == 0,
		"S4 %s: %d of %d sessions at once came up, the pool was refilled to %d of %d in %.1f s, %d containers or volumes too many",
		w.name, len(all), burst, len(members), poolSize, refill.Seconds(), leaks)
	if len(all) == 0 {
		return nil
	}
	p95 := percentile(took, 95)
	r.judge(p95 <= 3*cold, "S4 %s: %d sessions at once on a pool of %d p95 %.0f ms (p50 %.0f), one alone without a pool %.0f ms, ratio %s (budget 3)",
		w.name, burst, poolSize, ms(p95), ms(percentile(took, 50)), ms(cold), ratio(p95, cold))
	return w.warm.DrainPool(ctx)
}
