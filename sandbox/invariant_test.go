package sandbox_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
)

// secrets are the settings of a worker that must never reach a sandbox.
var secrets = []string{
	"OPENROUTER_API_KEY", "GITHUB_APP_PRIVATE_KEY_FILE", "GITHUB_CLIENT_SECRET", "GITHUB_WEBHOOK_SECRET", "ENCRYPTION_KEYS",
	"DATABASE_URL", "LANGFUSE_SECRET_KEY", "GITHUB_TOKEN", "GH_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK",
}

// tap is a runtime that keeps what goes to the toolbox: a sandbox has no other line to the world.
type tap struct {
	*docker.Runtime
	mu   sync.Mutex
	sent bytes.Buffer
}

func (p *tap) Attach(ctx context.Context, ref string) (sandbox.Stream, error) {
	stream, err := p.Runtime.Attach(ctx, ref)
	return tapped{stream, p}, err
}

type tapped struct {
	sandbox.Stream
	tap *tap
}

func (s tapped) Write(b []byte) (int, error) {
	s.tap.mu.Lock()
	defer s.tap.mu.Unlock()
	s.tap.sent.Write(b)
	return s.Stream.Write(b)
}

// TestInvariant1_NoSecretInSandbox plants a canary for every secret in the worker's environment and in
// the git configuration of what it fetches from, runs a turn, and looks for them wherever a sandbox's
// program or the Docker host could read, in all that was ever sent into the sandbox, and in what is
// kept of the turn.
func TestInvariant1_NoSecretInSandbox(t *testing.T) {
	mark := []byte("canary-" + core.NewID[string]())
	for i, name := range secrets {
		t.Setenv(name, fmt.Sprintf("%s-%d", mark, i))
	}
	var line tap
	var log bytes.Buffer
	f := setup(t, func(o *sandbox.Options) {
		line.Runtime = o.Runtime.(*docker.Runtime)
		o.Runtime = &line
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	f.source.git(t, "config", "http.extraHeader", fmt.Sprintf("Authorization: Bearer %s", mark))
	f.source.git(t, "remote", "add", "origin", fmt.Sprintf("https://x-access-token:%s@github.example/octo/demo.git", mark))
	ws := f.acquire(t, f.claim)
	run(t, ws, "git status; env > env.txt; sleep 1000 >/dev/null 2>&1 &")
	box := f.store.box(t, f.claim.Session.ID)

	places := map[string][]string{
		"root file system":       {"export", box.RuntimeRef},
		"mounts":                 {"exec", box.RuntimeRef, "sh", "-c", "tar -cf - /workspace /tmp /run /dev/shm /opt/toolbox 2>/dev/null"},
		"processes":              {"exec", box.RuntimeRef, "sh", "-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/mounts 2>/dev/null; env; true"},
		"container as inspected": {"inspect", box.RuntimeRef},
		"image as inspected":     {"inspect", box.Image},
		"volume as inspected":    {"inspect", box.Volume},
	}
	for place, args := range places {
		if found, size := holds(t, mark, args); found || size == 0 {
			t.Errorf("%s: %d bytes, canary found: %v", place, size, found)
		}
	}

	line.mu.Lock()
	sent := bytes.Clone(line.sent.Bytes())
	line.mu.Unlock()
	kept := map[string][]byte{
		"the line to the toolbox": sent, "the checkpoint": checkpointed(t, ws),
		"the log": log.Bytes(), "the events": fmt.Appendf(nil, "%+v", f.store.log[f.claim.Session.ID]),
	}
	for place, text := range kept {
		for _, form := range [][]byte{mark, []byte(base64.StdEncoding.EncodeToString(mark)), []byte(hex.EncodeToString(mark))} {
			if bytes.Contains(text, form) {
				t.Errorf("%s holds the canary", place)
			}
		}
		if len(text) == 0 && place != "the log" {
			t.Errorf("%s is empty", place)
		}
	}

	// The search itself must find what is there.
	for _, path := range []string{"planted.txt", "/tmp/planted.txt"} {
		if _, err := ws.Write(t.Context(), core.WriteFile{Path: path, Data: mark}); err != nil {
			t.Fatal(err)
		}
		if found, _ := holds(t, mark, places["mounts"]); !found {
			t.Errorf("a canary planted at %s was not found", path)
		}
		run(t, ws, "rm "+path)
	}
	f.Release(t.Context(), f.claim, ws)
}

// checkpointed is the session's checkpoint, unpacked.
func checkpointed(t *testing.T, ws core.PlatformWorkspace) []byte {
	t.Helper()
	var archive bytes.Buffer
	if _, err := ws.Checkpoint(t.Context(), &archive, 64<<20); err != nil {
		t.Fatal(err)
	}
	plain, err := zstd.NewReader(&archive)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	all, err := io.ReadAll(plain)
	if err != nil || !bytes.Contains(all, []byte("env.txt")) {
		t.Fatalf("the checkpoint lacks what the turn wrote: %v", err)
	}
	return all
}

func holds(t *testing.T, mark []byte, docker []string) (found bool, size int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", docker...).Output()
	if err != nil {
		t.Fatalf("docker %v: %v", docker, err)
	}
	return bytes.Contains(out, mark), len(out)
}
