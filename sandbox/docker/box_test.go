package docker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/toolbox"
)

// box is one running sandbox, without a service around it.
type box struct {
	*toolbox.Client
	ref string
}

func spec() sandbox.Spec {
	memory := int64(256 << 20)
	if dockertest.Runtime() != "runc" {
		memory = 1 << 30 // gVisor's own is in it, 5 MB a process
	}
	return sandbox.Spec{
		Session:    core.NewID[core.SessionID](),
		Sandbox:    core.NewID[core.SandboxID](),
		Generation: 1,
		Limits:     sandbox.Limits{MemoryBytes: memory, CPUs: 1, PIDs: 128, DiskBytes: 1 << 30},
	}
}

// start launches a container of spec.
func start(t testing.TB, r *docker.Runtime, spec sandbox.Spec) box {
	t.Helper()
	ref, err := r.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return speak(t, r, ref, sandbox.Launch)
}

// attach speaks to a container that runs already.
func attach(t testing.TB, r *docker.Runtime, ref string) box {
	t.Helper()
	return speak(t, r, ref, sandbox.Attach)
}

func speak(t testing.TB, r *docker.Runtime, ref string, open func(context.Context, sandbox.Runtime, string, toolbox.Options) (*toolbox.Client, error)) box {
	t.Helper()
	client, err := open(t.Context(), r, ref, toolbox.Options{OutOfMemory: func(ctx context.Context, within time.Duration) int64 {
		if met, err := r.OutOfMemory(ctx, ref, within); err != nil || !met { // a daemon that is away tells nothing
			return 0
		}
		return spec().Limits.MemoryBytes
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return box{Client: client, ref: ref}
}

// sh runs a shell text and returns its exit status and output.
func (b box) sh(t testing.TB, text string) (int, string) {
	t.Helper()
	result, err := b.Run(t.Context(), core.Command{Shell: text})
	if err != nil {
		t.Fatalf("run %q: %v", text, err)
	}
	return result.Exit, strings.TrimSpace(string(result.Head) + string(result.Tail))
}

func inspect(t testing.TB, ref, format string) string {
	t.Helper()
	return dockertest.Docker(t, "inspect", "--format", format, ref)
}
