package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	idleBoxes  = 50
	idlePeriod = 10 * time.Second
	clockTick  = 100 // per second, on every Linux
)

// idle is S8: what sandboxes cost in which nothing happens.
func (h *host) idle(ctx context.Context, r *report) error {
	var refs []string
	for range idleBoxes {
		b, err := h.box(ctx)
		if err != nil {
			return err
		}
		refs = append(refs, b.ref)
		if err := b.Close(); err != nil { // as between two turns
			return err
		}
	}
	pids, err := h.processes(ctx, refs)
	if err != nil || len(pids) == 0 {
		r.note("S8 %s: the daemon is on another machine, so the weight of its containers cannot be seen (%v)", h.name, err)
		return nil
	}
	before := cpuTicks(pids)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idlePeriod):
	}
	used := float64(cpuTicks(pids)-before) / clockTick / idlePeriod.Seconds() * 100
	var memory int64
	for _, pid := range pids {
		memory += pss(pid)
	}
	each := memory / idleBoxes
	most := int64(12 << 20)
	if h.name != "runc" {
		most = 40 << 20
	}
	r.judge(each <= most, "S8 %s: an idle sandbox weighs %.1f MiB with all processes of its runtime (budget %d MiB)", h.name, mib(each), most>>20)
	r.judge(used < 2, "S8 %s: %d idle sandboxes use %.2f %% of one processor (budget 2 %%)", h.name, idleBoxes, used)
	var failures []error
	for _, ref := range refs {
		failures = append(failures, h.Remove(ctx, ref, true))
	}
	return errors.Join(failures...)
}

// processes are those of the containers and of the runtime around them: what names one of the
// containers in its arguments, and the first process of each.
func (h *host) processes(ctx context.Context, refs []string) ([]int, error) {
	out, err := cli(ctx, append([]string{"inspect", "--format", "{{.State.Pid}}"}, refs...)...)
	if err != nil {
		return nil, err
	}
	found := map[int]bool{}
	for line := range strings.Lines(out) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			found[pid] = true
		}
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range commands {
		text, readErr := os.ReadFile(path)
		pid, pidErr := strconv.Atoi(strings.Split(path, "/")[2])
		if errors.Join(readErr, pidErr) != nil {
			continue // gone meanwhile
		}
		for _, ref := range refs {
			if bytes.Contains(text, []byte(ref)) {
				found[pid] = true
			}
		}
	}
	var pids []int
	for pid := range found {
		pids = append(pids, pid)
	}
	return pids, err
}

// cpuTicks is what the processes have used of the processor; one that is gone counts nothing.
func cpuTicks(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, at := range []int{11, 12} { // user and system
			if at < len(fields) {
				n, _ := strconv.ParseInt(fields[at], 10, 64)
				sum += n
			}
		}
	}
	return sum
}

// pss is a process's memory in bytes, what it shares divided among those that share it.
func pss(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if kb, ok := strings.CutPrefix(line, "Pss:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kb), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}
