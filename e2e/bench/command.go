package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
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
	least := time.Duration(20)
	if h.name != "runc" {
		least = 5
	}
	p50, p99 := percentile(ours, 50), percentile(ours, 99)
	base, floor := percentile(exec, 50), percentile(spawn, 50)
	r.judge(p50*least <= base, "S1 %s: command %.1f ms, docker exec %.0f ms, ratio %s (budget 1/%d)", h.name, ms(p50), ms(base), ratio(p50, base), least)
	r.judge(p50 <= 2*floor, "S1 %s: command %.1f ms, bash spawned by bash inside %.1f ms, ratio %s (budget 2)", h.name, ms(p50), ms(floor), ratio(p50, floor))
	r.judge(p99 <= 5*p50, "S1 %s: command p99 %.1f ms, p50 %.1f ms, ratio %s (budget 5); docker exec's worst of %d is %s of its p50",
		h.name, ms(p99), ms(p50), ratio(p99, p50), len(exec), ratio(percentile(exec, 100), base))
	for name, all := range map[string][]time.Duration{"read": read, "write": write} {
		got := percentile(all, 50)
		r.judge(2*got <= 3*p50, "S5 %s: %s of 4 KiB %.1f ms, command %.1f ms, ratio %s (budget 1.5)", h.name, name, ms(got), ms(p50), ratio(got, p50))
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
	micros, err := strconv.ParseInt(out, 10, 64)
	return time.Duration(micros) * time.Microsecond / times, err
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
	spec, pack, err := smallRepository(ctx)
	if err != nil {
		return err
	}
	if err := b.Checkout(ctx, spec, strings.NewReader(pack)); err != nil {
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

// work is S7: the processor is as fast inside as in any container.
func (h *host) work(ctx context.Context, r *report) error {
	// It compiles the library's own sources: nothing but the processor takes part.
	const build = `python3 - <<'END'
import glob, time
sources = [open(f, 'rb').read() for f in sorted(glob.glob('/usr/lib/python3*/*.py'))[:120]]
began = time.perf_counter()
for text in sources:
    compile(text, 'x', 'exec')
print(int((time.perf_counter() - began) * 1e6))
END`
	b, err := h.box(ctx)
	if err != nil {
		return err
	}
	var ours, theirs []time.Duration
	for range 10 {
		own, err1 := sh(ctx, b, build)
		other, err2 := h.bare(ctx, "bash", "-c", build)
		a, err3 := strconv.ParseInt(own, 10, 64)
		c, err4 := strconv.ParseInt(other, 10, 64)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return err
		}
		ours, theirs = append(ours, time.Duration(a)*time.Microsecond), append(theirs, time.Duration(c)*time.Microsecond)
	}
	// The fastest of each: what the processor gives when nobody else wants it.
	own, other := percentile(ours, 0), percentile(theirs, 0)
	r.judge(own*100 <= other*103, "S7 %s: a build %.0f ms, in a bare container %.0f ms, ratio %s (budget 1.03)", h.name, ms(own), ms(other), ratio(own, other))
	return h.drop(ctx, b)
}
