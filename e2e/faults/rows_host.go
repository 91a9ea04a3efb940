package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hostRows are failures of the sandbox host as a whole: its daemon, its power, its answers.
func hostRows() []row {
	return []row{
		{"F1: dockerd is killed during a command, with live restore", func(ctx context.Context, b *bench) (string, error) { return daemonKilled(ctx, b, true) }},
		{"F1: dockerd is killed during a command, without", func(ctx context.Context, b *bench) (string, error) { return daemonKilled(ctx, b, false) }},
		{"F2: dockerd takes connections and never answers", daemonHangs},
		{"F2: dockerd is down, and the queue waits", daemonDown},
		{"F18: the shim of the container is killed", shimKilled},
		{"F19: dockerd is restarted in order during a command", daemonRestarted},
		{"F26: the host loses its power", hostCrashed},
		{"F28: the container cannot be stopped or removed", stopHangs},
	}
}

// containers are those of a session, of any generation; args go to docker ps. They are found by their
// sandbox, because one of the pool was made before its session was known.
func (b *bench) containers(ctx context.Context, id string, args ...string) ([]string, error) {
	box, err := b.query(ctx, "SELECT id FROM sandboxes WHERE session_id = '"+id+"' ORDER BY generation DESC, created_at DESC LIMIT 1")
	if err != nil || box == "" {
		return nil, err
	}
	return b.host(ctx, append(append([]string{"ps", "-q", "--no-trunc"}, args...), "--filter", "label=agent-sandboxing.sandbox="+box)...)
}

// container is the one running container of a session.
func (b *bench) container(ctx context.Context, id string) (string, error) {
	refs, err := b.containers(ctx, id)
	if err == nil && len(refs) != 1 {
		err = fmt.Errorf("session %s has %d running containers", id, len(refs))
	}
	if err != nil {
		return "", err
	}
	return refs[0], nil
}

// daemonKilled kills dockerd under a running command. With live restore the container lives on; that
// the command's end is not known is said, never a success.
func daemonKilled(ctx context.Context, b *bench, live bool) (string, error) {
	if err := b.daemon.SetLiveRestore(live); err != nil {
		return "", err
	}
	code, err := b.daemonEnds(ctx, live, func() error {
		if err := b.daemon.Kill(ctx); err != nil {
			return err
		}
		if len(b.daemon.Processes()) == 0 {
			return errors.New("the container did not outlive the daemon")
		}
		return nil
	})
	if !live { // the rows behind this one find a daemon as it was
		err = errors.Join(err, b.daemon.SetLiveRestore(true), b.daemon.Stop(ctx), b.daemon.Start(ctx))
	}
	return code, err
}

// daemonRestarted stops dockerd in order, which without live restore stops the containers too.
func daemonRestarted(ctx context.Context, b *bench) (string, error) {
	return b.daemonEnds(ctx, true, func() error { return b.daemon.Stop(ctx) })
}

// daemonEnds takes the daemon from under a command and starts it again. The command's end is recorded as
// unknown, and the session goes on in the same container: with live restore in the same process.
func (b *bench) daemonEnds(ctx context.Context, live bool, end func() error) (string, error) {
	var session string
	var before, after []string
	look := func() ([]string, error) {
		ref, err := b.container(ctx, session)
		if err != nil {
			return nil, err
		}
		return b.host(ctx, "inspect", "--format", "{{.Id}}\n{{.State.Pid}}", ref)
	}
	code, err := b.duringTurn(ctx, func(id string) (err error) {
		session = id
		if before, err = look(); err != nil {
			return err
		}
		return end()
	}, func() error {
		cut, err := b.result(ctx, session, "bash")
		if err == nil && cut.Outcome != "interrupted" {
			err = fmt.Errorf("the command is recorded as %s", cut.Outcome)
		}
		return errors.Join(err, b.daemon.Start(ctx))
	}, "sandbox_lost", "runtime_unavailable")
	if err == nil {
		after, err = look()
	}
	if err == nil && (after[0] != before[0] || live && after[1] != before[1]) {
		err = fmt.Errorf("the container and its process %v became %v", before, after)
	}
	return code, err
}

// daemonHangs stops the daemon's process: the kernel goes on taking connections for it.
func daemonHangs(ctx context.Context, b *bench) (string, error) {
	return b.hostAway(ctx, func() error { return b.daemon.Freeze(ctx) }, func() error { return b.daemon.Thaw(ctx) })
}

func daemonDown(ctx context.Context, b *bench) (string, error) {
	return b.hostAway(ctx, func() error { return b.daemon.Kill(ctx) }, func() error { return b.daemon.Start(ctx) })
}

// hostAway takes the daemon away between two turns. A message that finds out fails within seconds; one
// that comes when it is known waits, and begins by itself when the daemon is back.
func (b *bench) hostAway(ctx context.Context, begin, end func() error) (string, error) {
	id, name, err := b.begun(ctx, "mdlinks")
	if err != nil {
		return "", err
	}
	if err := begin(); err != nil {
		return "", err
	}
	err = b.post(ctx, id, "file "+b.newFile())
	code := ""
	if err == nil {
		code, err = b.knownAway(ctx, id)
	}
	waits := b.newFile()
	if err == nil {
		err = b.post(ctx, id, "file "+waits)
	}
	if err == nil {
		err = b.staysQueued(ctx, id, 2*time.Second)
	}
	if err := errors.Join(err, end()); err != nil {
		return code, err
	}
	if err := b.completed(ctx, id); err != nil {
		return code, fmt.Errorf("the message that waited: %w", err)
	}
	return code, b.goesOn(ctx, id, name, waits)
}

// knownAway returns when the worker has found out with a session's last message that Docker is away:
// it failed within seconds, or it waits and its page says why.
func (b *bench) knownAway(ctx context.Context, id string) (string, error) {
	asked := time.Now()
	s, err := b.until(ctx, id, "was told that Docker is away", func(s state) bool {
		if _, _, state := s.last(); state == "failed" {
			return true
		}
		page, err := b.owner.Do(ctx, http.MethodGet, "/chat-sessions/"+id, http.Header{"Accept": {"text/html"}}, nil)
		return err == nil && strings.Contains(string(page.Body), "Docker does not answer")
	})
	if err != nil {
		return "", err
	}
	code, text, state := s.last()
	if state == "queued" {
		return "waits", nil
	}
	if took := time.Since(asked); took > 10*time.Second { // 5 s, the poll of this and a busy machine
		return code, fmt.Errorf("it took %s to fail", took)
	}
	if code != "runtime_unavailable" {
		return code, fmt.Errorf("the message is %s with %s: %s", state, code, text)
	}
	return code, sentence(text)
}

// staysQueued watches the last message for a while.
func (b *bench) staysQueued(ctx context.Context, id string, long time.Duration) error {
	watch, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := b.read(ctx, id)
		if err != nil {
			return err
		}
		if code, text, state := s.last(); state != "queued" {
			return fmt.Errorf("a message that should wait is %s with %s: %s", state, code, text)
		}
		select {
		case <-watch.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// shimKilled kills what keeps a container's streams and exit. The container's processes may go on
// behind the daemon's back: they must not outlive the sandbox.
func shimKilled(ctx context.Context, b *bench) (string, error) {
	code, err := b.duringTurn(ctx, func(id string) error {
		ref, err := b.container(ctx, id)
		if err != nil {
			return err
		}
		pid, err := b.daemon.Shim(ref)
		if err != nil {
			return err
		}
		return b.daemon.Signal(ctx, "KILL", strconv.Itoa(pid))
	}, nil, "sandbox_lost")
	if err != nil {
		return code, err
	}
	return code, b.onlyKnownProcesses(ctx)
}

// onlyKnownProcesses demands that the processes in cgroups of containers are of containers that run, as
// the daemon knows.
func (b *bench) onlyKnownProcesses(ctx context.Context) error {
	var failure error
	err := b.eventually(ctx, "every process of a container is known", func() bool {
		failure = b.unknownProcesses(ctx)
		return failure == nil
	})
	return errors.Join(err, failure)
}

func (b *bench) unknownProcesses(ctx context.Context) error {
	all, err := b.strangers(ctx)
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("the daemon does not know of %+v", all)
	}
	return err
}

// stranger is a process in the cgroup of a container that does not run, as the daemon knows.
type stranger struct {
	pid              int
	command          string
	container, state string // "" when there is no such container any more
}

func (b *bench) strangers(ctx context.Context) ([]stranger, error) {
	running, err := b.host(ctx, "ps", "-q", "--no-trunc")
	if err != nil {
		return nil, err
	}
	var all []stranger
	for _, pid := range b.daemon.Processes() {
		group, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil {
			continue // it has ended meanwhile
		}
		_, name, _ := strings.Cut(string(group), "private-docker-")
		_, name, _ = strings.Cut(name, "/")
		name, _, _ = strings.Cut(name, "\n")
		name, _, _ = strings.Cut(name, "/")
		if slices.Contains(running, name) {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // for the message alone
		state, _ := b.host(ctx, "inspect", "--format", "{{.State.Status}}", name)
		all = append(all, stranger{
			pid: pid, command: strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")), container: name, state: strings.Join(state, ""),
		})
	}
	return all, nil
}

// hostCrashed ends the daemon and all containers at once, with a second session that nobody uses. All
// is stopped afterwards; the next message of each starts it again.
func hostCrashed(ctx context.Context, b *bench) (string, error) {
	other, idle, err := b.begun(ctx, "stockroom")
	if err != nil {
		return "", err
	}
	id, name, err := b.working(ctx)
	if err != nil {
		return "", err
	}
	if err := b.daemon.Crash(ctx); err != nil {
		return "", err
	}
	code, err := b.failed(ctx, id, "sandbox_lost", "runtime_unavailable")
	if err := errors.Join(err, b.daemon.Start(ctx)); err != nil {
		return code, err
	}
	return code, errors.Join(b.goesOn(ctx, id, name), b.goesOn(ctx, other, idle))
}

// stopHangs has the daemon never answer a kill or a removal, for a container that is lost in a turn.
// The session is terminal and usable all the same, and what could not be removed goes later.
func stopHangs(ctx context.Context, b *bench) (string, error) {
	id, name, err := b.working(ctx)
	if err != nil {
		return "", err
	}
	ref, err := b.container(ctx, id)
	if err != nil {
		return "", err
	}
	b.docker.lose(request{"POST ", "/containers/" + ref + "/kill"}, request{"DELETE ", "/containers/" + ref})
	if _, err := b.host(ctx, "pause", ref); err != nil { // the toolbox does not answer any more either
		return "", err
	}
	code, err := b.failed(ctx, id, "sandbox_lost")
	if err == nil {
		err = b.goesOn(ctx, id, name)
	}
	b.docker.lose()
	if err := errors.Join(err, b.newWorker(ctx, nil)); err != nil { // it compares rows and containers at once
		return code, err
	}
	return code, b.eventually(ctx, "the container that hung is removed", func() bool {
		_, err := b.host(ctx, "inspect", ref)
		return err != nil
	})
}
