package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"agent-sandboxing/agent/modeltest"
)

// planeRows are about several processes and readers of one installation, and a full host.
func planeRows() []row {
	return []row{
		{"F21: 40 readers of a stream stop reading", stalledReaders},
		{"F22: the database is away for a moment of a turn", func(ctx context.Context, b *bench) (string, error) {
			return b.databaseGone(ctx, 2*time.Second)
		}},
		{"F22: the database is away for longer than a lease", func(ctx context.Context, b *bench) (string, error) {
			return b.databaseGone(ctx, 25*time.Second)
		}},
		{"F24: two workers on one host, one of them killed", twoWorkers},
		{"F25: the host has room for one sandbox", oneRoom},
		{"F25: the host's disk is almost full", lowDisk},
	}
}

// stalledReaders hold a session's stream open and never read, while a turn says much. The turn does not
// notice, web keeps little of it, and whoever reads afterwards sees all.
func stalledReaders(ctx context.Context, b *bench) (string, error) {
	id, name, err := b.begun(ctx, "mdlinks")
	if err != nil {
		return "", err
	}
	before, err := b.memory("web")
	if err != nil {
		return "", err
	}
	const readers = 40
	for range readers {
		conn, err := b.stall(ctx, "/chat-sessions/"+id+"/stream")
		if err != nil {
			return "", err
		}
		defer conn.Close()
	}
	p := performance{Answer: strings.Repeat("A long answer. ", 800)}
	for i := range 60 {
		p.Calls = append(p.Calls, modeltest.CallJSON("write", map[string]any{"path": fmt.Sprintf("many/%d.txt", i), "content": strings.Repeat("line\n", 20)}))
	}
	text, err := p.message()
	if err != nil {
		return "", err
	}
	if err := b.post(ctx, id, text); err != nil {
		return "", err
	}
	if err := b.completed(ctx, id); err != nil {
		return "", err
	}
	after, err := b.memory("web")
	if err == nil && after-before > readers*256+24<<10 { // KiB: the streams, and what drawing the page took
		err = fmt.Errorf("web grew from %d to %d KiB", before, after)
	}
	return fmt.Sprintf("%+d KiB", after-before), errors.Join(err, b.goesOn(ctx, id, name))
}

// stall asks for a path as the owner and reads nothing of the answer; its window is as small as can be.
func (b *bench) stall(ctx context.Context, path string) (io.Closer, error) {
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		return errors.Join(err, failed)
	}}
	conn, err := dialer.DialContext(ctx, "tcp", b.productAddr)
	if err != nil {
		return nil, err
	}
	request, err := b.owner.Request(ctx, http.MethodGet, path)
	if err == nil {
		request.Header.Set("Accept", "text/event-stream")
		err = request.Write(conn)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// twoWorkers runs a second worker on the same host and database, sends messages in four sessions at
// once and kills one of the two. No message runs twice, and no session has two containers.
func twoWorkers(ctx context.Context, b *bench) (string, error) {
	if err := b.startAs("worker-2", "worker", nil); err != nil {
		return "", err
	}
	var ids []string
	for range 4 {
		id, err := b.create(ctx, "mdlinks", "file "+b.newFile())
		if err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	for range 2 {
		for _, id := range ids {
			if err := b.post(ctx, id, "file "+b.newFile()); err != nil {
				return "", err
			}
		}
	}
	if err := b.signal(ctx, "worker", syscall.SIGKILL); err != nil {
		return "", err
	}
	var failures []error
	for _, id := range ids {
		_, err := b.ended(ctx, id)
		failures = append(failures, err)
	}
	for _, id := range ids {
		failures = append(failures, b.intact(ctx, id))
	}
	failures = append(failures, b.signal(ctx, "worker-2", syscall.SIGTERM), b.start("worker", nil), b.rowsAgree(ctx))
	return "one end each", errors.Join(failures...)
}

// oneRoom has a host that takes one sandbox at a time. A second session waits for the first's turn, then
// takes its room; the first goes on afterwards.
func oneRoom(ctx context.Context, b *bench) (string, error) {
	if err := b.newWorker(ctx, map[string]string{"SANDBOX_MAX_RUNNING": "1"}); err != nil {
		return "", err
	}
	ids, names, err := b.sessionsAtOnce(ctx, 3)
	failures := []error{err}
	for i, id := range ids {
		if running, err := b.host(ctx, "ps", "-q", "--filter", "label=agent-sandboxing.sandbox"); err != nil || len(running) > 1 {
			failures = append(failures, fmt.Errorf("%d sandboxes run: %w", len(running), err))
		}
		failures = append(failures, b.goesOn(ctx, id, names[i]))
	}
	return "waited", errors.Join(append(failures, b.newWorker(ctx, nil))...)
}

// lowDisk has a host whose reserve is more than it has. A new sandbox is refused before anything of it is
// made.
func lowDisk(ctx context.Context, b *bench) (string, error) {
	if err := b.newWorker(ctx, map[string]string{"SANDBOX_DISK_RESERVE": "1000000000"}); err != nil { // MiB
		return "", err
	}
	id, err := b.create(ctx, "mdlinks", "file "+b.newFile())
	if err != nil {
		return "", err
	}
	code, err := b.failed(ctx, id, "disk_low")
	if made, listing := b.host(ctx, "ps", "-aq", "--filter", "label=agent-sandboxing.session="+id); err == nil && len(made) > 0 {
		err = errors.Join(listing, fmt.Errorf("%d containers were made", len(made)))
	}
	if err := errors.Join(err, b.newWorker(ctx, nil)); err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, id)
}
