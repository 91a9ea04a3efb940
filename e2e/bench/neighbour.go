package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core"
)

const neighbourCommands = 150

// What a neighbour may do that wants to hurt. Each is bounded by its own sandbox's limits and ends
// with its time.
var abuses = []string{
	`bomb() { bomb | bomb & }; bomb; sleep 600`, // processes
	`python3 -c 'x=[]
while True: x.append(bytearray(1<<20))'; sleep 600`, // memory
	`yes`, // output
	`while :; do head -c 512M /dev/zero > fill; done`, // disk
}

// neighbour is R5: commands of one sandbox while others misbehave.
func (h *host) neighbour(ctx context.Context, r *report) error {
	victim, err := h.box(ctx)
	if err != nil {
		return err
	}
	var boxes []*box
	for range abuses {
		b, err := h.box(ctx)
		if err != nil {
			return err
		}
		boxes = append(boxes, b)
	}
	bare, err := cli(ctx, "run", "--rm", "-d", "--network", "none", "--runtime", h.name, h.image, "sleep", "600")
	if err != nil {
		return err
	}
	defer func() { _, _ = cli(context.WithoutCancel(ctx), "rm", "-f", bare) }()
	if _, err := probe(ctx, victim); err != nil { // warms up
		return err
	}
	solo, err1 := probe(ctx, victim)
	bareSolo, err2 := probeBare(ctx, bare)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	abuse, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	for i, b := range boxes {
		group.Go(func() error {
			for abuse.Err() == nil { // one that its limits ended begins again
				_, _ = b.Run(abuse, core.Command{Shell: abuses[i], Timeout: 10 * time.Minute})
				if b.Err() != nil {
					return nil
				}
			}
			return nil
		})
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Second): // until all of them are at it
	}
	beside, err1 := probe(ctx, victim)
	bareBeside, err2 := probeBare(ctx, bare)
	stop()
	_ = group.Wait()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	alone, abused := percentile(solo, 95), percentile(beside, 95)
	r.judge(abused <= 2*alone, "R5 %s: a command beside a fork bomb, a memory hog, an output flood and a full disk p95 %.1f ms, without them %.1f ms, ratio %s (budget 2); bash in a bare container %.1f ms and %.1f ms, ratio %s",
		h.name, ms(abused), ms(alone), ratio(abused, alone), ms(percentile(bareBeside, 95)), ms(percentile(bareSolo, 95)), ratio(percentile(bareBeside, 95), percentile(bareSolo, 95)))
	for _, b := range append(boxes, victim) {
		if err := h.drop(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// probe runs small commands one after the other and says how long each took.
func probe(ctx context.Context, b *box) ([]time.Duration, error) {
	var all []time.Duration
	for range neighbourCommands {
		took, err := timed(func() error { _, err := sh(ctx, b, "echo x > probe && cat probe"); return err })
		if err != nil {
			return nil, err
		}
		all = append(all, took)
	}
	return all, nil
}

// probeBare has a bash in a bare container run the same, with nothing of ours on the way.
func probeBare(ctx context.Context, container string) ([]time.Duration, error) {
	out, err := cli(ctx, "exec", container, "bash", "-c", fmt.Sprintf(
		`cd /tmp; for ((i=0;i<%d;i++)); do b=$EPOCHREALTIME; bash --noprofile --norc -c 'echo x > probe && cat probe >/dev/null'; e=$EPOCHREALTIME; echo $((${e/./}-${b/./})); done`, neighbourCommands))
	if err != nil {
		return nil, err
	}
	return micros(out)
}
