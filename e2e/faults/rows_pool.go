package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// poolRows are about sandboxes that were started ahead of sessions.
func poolRows() []row {
	return []row{
		{"F23: members of the pool are killed, removed and paused", func(ctx context.Context, b *bench) (string, error) {
			return b.spoiledPool(ctx, []string{"kill"}, []string{"rm", "-f"}, []string{"pause"})
		}},
		{"F23: somebody was in members of the pool", func(ctx context.Context, b *bench) (string, error) {
			return b.spoiledPool(ctx, []string{"exec", "", "touch", "/workspace/repo/planted"}, []string{"exec", "", "touch", "/tmp/planted"}, []string{"exec", "-d", "", "sleep", "1000"})
		}},
		{"F23: the pool has other limits, and its worker was killed", stalePool},
		{"F12: a killed worker's pool, of which nobody keeps one", orphanedPool},
		{"F12: containers that are foreign, old or half made", plantedContainers},
	}
}

// members are the containers of the pool that can be claimed.
func (b *bench) members(ctx context.Context) ([]string, error) {
	refs, err := b.query(ctx, "SELECT runtime_ref FROM pool_members WHERE state = 'ready' ORDER BY created_at")
	return strings.Fields(refs), err
}

// filled waits until the pool has n members, none of them one of old, and returns them.
func (b *bench) filled(ctx context.Context, n int, old ...string) ([]string, error) {
	var refs []string
	var failure error
	err := b.eventually(ctx, fmt.Sprintf("the pool has %d new members", n), func() bool {
		refs, failure = b.members(ctx)
		return failure != nil || len(refs) == n && !slices.ContainsFunc(refs, func(ref string) bool { return slices.Contains(old, ref) })
	})
	if err != nil {
		err = fmt.Errorf("%w; it has %v", err, refs)
	}
	return refs, errors.Join(err, failure)
}

// pooled is an environment with a pool of n, and with room for it beside all that earlier rows may have
// left running: no session's sandbox is stopped for a pool.
func pooled(n int) map[string]string {
	return map[string]string{"SANDBOX_WARM": fmt.Sprint(n), "SANDBOX_MAX_RUNNING": "20"}
}

// withPool runs the worker with a pool of n, and returns its members.
func (b *bench) withPool(ctx context.Context, n int) ([]string, error) {
	if err := b.newWorker(ctx, pooled(n)); err != nil {
		return nil, err
	}
	return b.filled(ctx, n)
}

// withoutPool runs the worker as before. What the pool still had is gone.
func (b *bench) withoutPool(ctx context.Context) error {
	if err := b.newWorker(ctx, nil); err != nil {
		return err
	}
	if err := b.drained(ctx); err != nil {
		return err
	}
	return b.rowsAgree(ctx)
}

// drained waits until there is neither a row nor a container of the pool that no session has.
func (b *bench) drained(ctx context.Context) error {
	left := ""
	err := b.eventually(ctx, "the pool is drained", func() bool {
		rows, err := b.query(ctx, "SELECT count(*) FROM pool_members")
		if err != nil || rows != "0" {
			left = rows + " rows"
			return false
		}
		claimed, err := b.query(ctx, "SELECT runtime_ref FROM sandboxes")
		if err != nil {
			return false
		}
		refs, err := b.host(ctx, "ps", "-aq", "--no-trunc", "--filter", "label=agent-sandboxing.purpose=pool")
		refs = slices.DeleteFunc(refs, func(ref string) bool { return strings.Contains(claimed, ref) })
		left = fmt.Sprint(refs)
		return err == nil && len(refs) == 0
	})
	if err != nil {
		err = fmt.Errorf("%w; left: %s", err, left)
	}
	return err
}

// spoiledPool runs one docker command on each member of a pool ("" in it, or its end, stands for the
// member), while nobody looks, and then has a session for each. None may get one of them.
func (b *bench) spoiledPool(ctx context.Context, spoil ...[]string) (string, error) {
	old, err := b.withPool(ctx, len(spoil))
	if err != nil {
		return "", err
	}
	for i, command := range spoil {
		if at := slices.Index(command, ""); at >= 0 {
			command = slices.Clone(command)
			command[at] = old[i]
		} else {
			command = append(slices.Clone(command), old[i])
		}
		if _, err := b.host(ctx, command...); err != nil {
			return "", err
		}
	}
	ids, names, err := b.sessionsAtOnce(ctx, len(spoil))
	if err != nil {
		return "", err
	}
	var failures []error
	for i, id := range ids {
		failures = append(failures, b.notOneOf(ctx, id, old), b.goesOn(ctx, id, names[i]))
	}
	for _, ref := range old {
		failures = append(failures, b.eventually(ctx, "the spoiled member is removed", func() bool {
			_, err := b.host(ctx, "inspect", ref)
			return err != nil
		}))
	}
	_, err = b.filled(ctx, len(spoil), old...)
	return "none was served", errors.Join(append(failures, err, b.withoutPool(ctx))...)
}

// sessionsAtOnce begins n sessions side by side, and returns them with their files once their first
// messages have completed.
func (b *bench) sessionsAtOnce(ctx context.Context, n int) (ids, names []string, err error) {
	ids, names = make([]string, n), make([]string, n)
	failures := make([]error, n)
	target, err := b.owner.Target(ctx, "mdlinks")
	if err != nil {
		return nil, nil, err
	}
	for i := range names {
		names[i] = b.newFile()
	}
	var creating sync.WaitGroup
	for i, name := range names {
		creating.Go(func() {
			var made state
			failures[i] = b.owner.Ask(ctx, "POST", "/chat-sessions", "", newSession{target, "file " + name}, &made)
			ids[i] = made.ID
		})
	}
	creating.Wait()
	b.sessions = append(b.sessions, ids...)
	for i, id := range ids {
		if failures[i] == nil {
			failures[i] = b.completed(ctx, id)
		}
	}
	return ids, names, errors.Join(failures...)
}

// notOneOf demands that a session's container is none of some.
func (b *bench) notOneOf(ctx context.Context, id string, refs []string) error {
	ref, err := b.container(ctx, id)
	if err == nil && slices.Contains(refs, ref) {
		err = fmt.Errorf("session %s was given the container %s", id, ref)
	}
	return err
}

// stalePool kills the worker of a pool and starts one with another memory limit. Members that a session
// would not get made like that are never served, and go once they are old enough to be nobody's.
func stalePool(ctx context.Context, b *bench) (string, error) {
	old, err := b.withPool(ctx, 2)
	if err != nil {
		return "", err
	}
	other := pooled(2)
	other["SANDBOX_MEMORY"] = "448"
	if _, err := b.crashWorker(ctx, other); err != nil {
		return "", err
	}
	name := b.newFile()
	id, err := b.create(ctx, "mdlinks", "file "+name)
	if err != nil {
		return "", err
	}
	if err := errors.Join(b.completed(ctx, id), b.notOneOf(ctx, id, old), b.ageMembers(ctx)); err != nil {
		return "", err
	}
	fresh, err := b.filled(ctx, 2, old...)
	if err != nil {
		return "", err
	}
	limits, err := b.host(ctx, append([]string{"inspect", "--format", "{{.HostConfig.Memory}}"}, fresh...)...)
	if err != nil {
		return "", err
	}
	for _, limit := range limits {
		if limit != "469762048" { // 448 MiB
			return "", fmt.Errorf("the members' limits are %v", limits)
		}
	}
	return "not served", errors.Join(b.goesOn(ctx, id, name), b.withoutPool(ctx))
}

// ageMembers makes members old enough that a worker removes them which would not have made them.
func (b *bench) ageMembers(ctx context.Context) error {
	_, err := b.query(ctx, "UPDATE pool_members SET created_at = created_at - interval '2 minutes'")
	return err
}

// orphanedPool kills the worker of a pool and starts one that keeps none. One of the members has lost its
// row too.
func orphanedPool(ctx context.Context, b *bench) (string, error) {
	old, err := b.withPool(ctx, 2)
	if err != nil {
		return "", err
	}
	if err := b.signal(ctx, "worker", syscall.SIGKILL); err != nil {
		return "", err
	}
	if _, err := b.query(ctx, "DELETE FROM pool_members WHERE runtime_ref = '"+old[0]+"'"); err != nil {
		return "", err
	}
	if err := errors.Join(b.ageMembers(ctx), b.start("worker", nil), b.drained(ctx)); err != nil {
		return "", err
	}
	id, err := b.create(ctx, "mdlinks", "file "+b.newFile())
	if err != nil {
		return "", err
	}
	return "both removed", errors.Join(b.goesOn(ctx, id), b.rowsAgree(ctx))
}

// plantedContainers puts containers beside a session's. Of this installation those go that no row speaks
// for; what belongs to others stays.
func plantedContainers(ctx context.Context, b *bench) (string, error) {
	name := b.newFile()
	id, err := b.create(ctx, "mdlinks", "file "+name)
	if err != nil {
		return "", err
	}
	if err := b.completed(ctx, id); err != nil {
		return "", err
	}
	box, err := b.query(ctx, "SELECT id FROM sandboxes WHERE session_id = '"+id+"'")
	if err != nil {
		return "", err
	}
	plant := func(labels ...string) (string, error) {
		args := []string{"create", "--network", "none"}
		for _, l := range labels {
			args = append(args, "--label", "agent-sandboxing."+l)
		}
		return b.daemon.Run(ctx, append(args, b.env["SANDBOX_IMAGE"], "sleep", "1000")...)
	}
	ours := "instance=" + b.instance
	foreign, err1 := plant()
	others, err2 := plant("instance=another", "purpose=session", "session="+id, "sandbox="+box, "generation=0")
	old, err3 := plant(ours, "purpose=session", "session="+id, "sandbox="+box, "generation=0")
	half, err4 := plant(ours, "purpose=session", "session="+id, "sandbox=00000000-0000-7000-8000-000000000000", "generation=1")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return "", err
	}
	err = b.eventually(ctx, "what no row speaks for is removed", func() bool {
		left, err := b.host(ctx, "ps", "-aq", "--no-trunc")
		return err == nil && !slices.Contains(left, old) && !slices.Contains(left, half)
	})
	if _, missing := b.host(ctx, "rm", foreign, others); missing != nil {
		err = errors.Join(err, fmt.Errorf("what belongs to others was touched: %w", missing))
	}
	return "ours removed", errors.Join(err, b.goesOn(ctx, id, name))
}
