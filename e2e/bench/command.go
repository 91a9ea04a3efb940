package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"time"

	"agent-sandboxing/core"
)

const (
	commandRounds = 15
	perRound      = 20 // commands of ours for each of the baseline's
	streamBytes   = 200 << 20
	floodBytes    = 1 << 30
	fileSize      = 4 << 10
)

// command is S1, a command's round trip, and the small file requests of S5, which should cost no more.
func (h *host) command(ctx context.Context, r *report) error {
	b, err := h.box(ctx)
	if err != nil {
		return err
	}
	data := make([]byte, fileSize)
	for i := range data {
		data[i] = byte(rand.IntN(256))
	}
	var ours, exec, spawn, write, read []time.Duration
	for i := range commandRounds + 1 {
		var own, put, get []time.Duration
		for range perRound {
			one, err1 := timed(func() error { _, err := sh(ctx, b, "true"); return err })
			two, err2 := timed(func() error {
				_, err := b.Write(ctx, core.WriteFile{Path: "bench.bin", Data: data})
				return err
			})
			three, err3 := timed(func() error { _, err := b.Read(ctx, "bench.bin", 0, 0); return err })
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			own, put, get = append(own, one), append(put, two), append(get, three)
		}
		cost, err := timed(func() error { _, err := cli(ctx, "exec", b.ref, "true"); return err })
		if err != nil {
			return err
		}
		inside, err := spawned(ctx, b)
		if err != nil {
			return err
		}
		if i > 0 { // the first warms up
			ours, write, read = append(ours, own...), append(write, put...), append(read, get...)
			exec, spawn = append(exec, cost), append(spawn, inside)
		}
	}
	share := time.Duration(20)
	if h.name != "runc" {
		share = 5
	}
	p50, p99 := percentile(ours, 50), percentile(ours, 99)
	base, floor := percentile(exec, 50), percentile(spawn, 50)
	r.judge(p50*share <= base, "S1 %s: command %.1f ms, docker exec %.0f ms, ratio %s (budget 1/%d)", h.name, ms(p50), ms(base), ratio(p50, base), share)
	r.judge(p50 <= 2*floor, "S1 %s: command %.1f ms, bash spawned by bash inside %.1f ms, ratio %s (budget 2)", h.name, ms(p50), ms(floor), ratio(p50, floor))
	r.judge(p99 <= 5*p50, "S1 %s: command p99 %.1f ms, p50 %.1f ms, ratio %s (budget 5); docker exec's worst of %d is %s of its p50",
		h.name, ms(p99), ms(p50), ratio(p99, p50), len(exec), ratio(percentile(exec, 100), base))
	for _, file := range []struct {
		verb string
		took time.Duration
	}{{"read", percentile(read, 50)}, {"write", percentile(write, 50)}} {
		r.judge(2*file.took <= 3*p50, "S5 %s: %s of 4 KiB %.1f ms, command %.1f ms, ratio %s (budget 1.5)", h.name, file.verb, ms(file.took), ms(p50), ratio(file.took, p50))
	}
	return h.drop(ctx, b)
}

// spawned is what one bash costs that a bash inside the sandbox starts.
func spawned(ctx context.Context, b *box) (time.Duration, error) {
	const times = 10
	out, err := sh(ctx, b, fmt.Sprintf(
		`b=$EPOCHREALTIME; for ((i=0;i<%d;i++)); do bash --noprofile --norc -c true; done; e=$EPOCHREALTIME; echo $((${e/./}-${b/./}))`, times))
	if err != nil {
		return 0, err
	}
	all, err := micros(out)
	if err != nil || len(all) != 1 {
		return 0, fmt.Errorf("it said %q: %w", out, err)
	}
	return all[0] / times, nil
}

// stream is S6: much output costs neither time nor the worker's memory.
func (h *host) stream(ctx context.Context, r *report) error {
	b, err := h.box(ctx)
	if err != nil {
		return err
	}
	print := func(n int) string { return fmt.Sprintf("head -c %d /dev/zero", n) }
	var ours, theirs []time.Duration
	for range 3 {
		own, err := timed(func() error { _, err := sh(ctx, b, print(streamBytes)); return err })
		if err != nil {
			return err
		}
		other, err := timed(func() error {
			return exec.CommandContext(ctx, "docker", "exec", b.ref, "bash", "-c", print(streamBytes)).Run() // its output goes to /dev/null
		})
		if err != nil {
			return err
		}
		ours, theirs = append(ours, own), append(theirs, other)
	}
	own, other := percentile(ours, 50), percentile(theirs, 50)
	r.judge(own <= other, "S6 %s: 200 MiB of output %.0f MiB/s, docker exec %.0f MiB/s, time ratio %s (budget 1)",
		h.name, 200/own.Seconds(), 200/other.Seconds(), ratio(own, other))

	before := weight()
	if _, err := sh(ctx, b, print(floodBytes)); err != nil {
		return err
	}
	grown := weight() - before
	r.judge(grown <= 8<<20, "S6 %s: the worker grows by %.1f MiB over 1 GiB of output (budget 8 MiB)", h.name, mib(grown))

	// What really passes through the worker: a checkpoint of files that do not compress.
	dir, err := os.MkdirTemp("", "bench-repository-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	small, err := newRepository(ctx, dir, 1)
	if err != nil {
		return err
	}
	spec, pack, err := small.Checkout(ctx, core.ChatSession{ID: core.NewID[core.SessionID]()}, false)
	if err != nil {
		return err
	}
	if err := b.Checkout(ctx, spec, pack); err != nil {
		return err
	}
	if _, err := sh(ctx, b, "head -c 48M /dev/urandom > big"); err != nil {
		return err
	}
	before = weight()
	took, err := timed(func() error { _, err := b.Checkpoint(ctx, io.Discard, core.MaxCheckpoint); return err })
	if err != nil {
		return err
	}
	grown = weight() - before
	r.judge(grown <= 16<<20, "S6 %s: the worker grows by %.1f MiB over a checkpoint of 48 MiB at %.0f MiB/s (budget 16 MiB)", h.name, mib(grown), 48/took.Seconds())
	return h.drop(ctx, b)
}

// weight is what this process, which is the worker here, holds of memory.
func weight() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
