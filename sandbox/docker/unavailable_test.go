package docker_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
)

// verbs are all ways to ask the daemon something.
var verbs = map[string]func(context.Context, *docker.Runtime) error{
	"host": func(ctx context.Context, r *docker.Runtime) error { _, err := r.Host(ctx); return err },
	"create": func(ctx context.Context, r *docker.Runtime) error {
		_, err := r.Create(ctx, sandbox.Spec{})
		return err
	},
	"attach":       func(ctx context.Context, r *docker.Runtime) error { _, err := r.Attach(ctx, "ref"); return err },
	"start":        func(ctx context.Context, r *docker.Runtime) error { return r.Start(ctx, "ref") },
	"stop":         func(ctx context.Context, r *docker.Runtime) error { return r.Stop(ctx, "ref") },
	"remove":       func(ctx context.Context, r *docker.Runtime) error { return r.Remove(ctx, "ref", true) },
	"inspect":      func(ctx context.Context, r *docker.Runtime) error { _, err := r.Inspect(ctx, "ref"); return err },
	"list":         func(ctx context.Context, r *docker.Runtime) error { _, err := r.List(ctx); return err },
	"capabilities": func(ctx context.Context, r *docker.Runtime) error { _, err := r.Capabilities(ctx); return err },
}

func TestUnavailable_WithinFiveSecondsWhenTheDaemonNeverAnswers(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "docker.sock")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		var held []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				for _, c := range held {
					_ = c.Close()
				}
				return
			}
			held = append(held, conn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-accepted
	})
	var asked sync.WaitGroup // not parallel subtests: there are more than processors
	for name, ask := range verbs {
		r := open(t, "unix://"+socket)
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // 5 s and what a busy machine adds
			defer cancel()
			if err := ask(ctx, r); core.CodeOf(err) != "runtime_unavailable" { // the caller's own limit has no code
				t.Errorf("%s: error %v", name, err)
			}
		})
	}
	asked.Wait()
}

func TestUnavailable_AtOnceWhenThereIsNoDaemon(t *testing.T) {
	t.Parallel()
	for name, ask := range verbs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := ask(t.Context(), open(t, "unix:///nonexistent/docker.sock")); core.CodeOf(err) != "runtime_unavailable" {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestUnavailable_ACancelIsTheCallersNotTheDaemons(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(core.ErrCancelledByUser)
	_, err := open(t, "unix:///nonexistent/docker.sock").Host(ctx)
	if core.CodeOf(err) == "runtime_unavailable" {
		t.Errorf("error %v", err)
	}
}

func open(t *testing.T, host string) *docker.Runtime {
	t.Helper()
	r, err := docker.New(docker.Config{Host: host, Image: "any", Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}
