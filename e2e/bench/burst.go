package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core"
)

// burst is S4: more sessions at once than the pool has members.
func (w *world) burst(ctx context.Context, r *report, cold time.Duration) error {
	if err := w.warm.TendPool(ctx); err != nil {
		return err
	}
	before, err := w.count(ctx)
	if err != nil {
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
		if _, err := w.end(ctx, w.warm, s); err != nil {
			return err
		}
	}
	refill, err := timed(func() error { return w.warm.TendPool(ctx) })
	if err != nil {
		return err
	}
	members, err1 := w.store.PoolMembers(ctx, w.worker.Host)
	after, err2 := w.count(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	leaks := after - before - 2*burst
	r.judge(len(all) == burst && len(members) == poolSize && leaks == 0,
		"S4 %s: %d of %d sessions at once came up, the pool was refilled to %d of %d in %.1f s, %d containers or volumes too many",
		w.name, len(all), burst, len(members), poolSize, refill.Seconds(), leaks)
	if len(all) == 0 {
		return nil
	}
	bare, err := w.crowd(ctx)
	if err != nil {
		return err
	}
	p95 := percentile(took, 95)
	r.judge(p95 <= 3*cold, "S4 %s: %d sessions at once on a pool of %d p95 %.0f ms (p50 %.0f), one alone without a pool %.0f ms, ratio %s (budget 3); %d docker run at once p95 %.0f ms",
		w.name, burst, poolSize, ms(p95), ms(percentile(took, 50)), ms(cold), ratio(p95, cold), burst, ms(percentile(bare, 95)))
	return w.warm.DrainPool(ctx)
}

// count is how many containers and volumes there are.
func (w *world) count(ctx context.Context) (int, error) {
	list, err1 := w.List(ctx)
	volumes, err2 := w.Volumes(ctx)
	return len(list) + len(volumes), errors.Join(err1, err2)
}

// crowd is as many bare containers at once as burst has sessions.
func (w *world) crowd(ctx context.Context) ([]time.Duration, error) {
	all := make([]time.Duration, burst)
	group, ctx := errgroup.WithContext(ctx)
	for i := range all {
		group.Go(func() (err error) {
			all[i], err = timed(func() error { _, err := w.bare(ctx, "true"); return err })
			return err
		})
	}
	return all, group.Wait()
}
