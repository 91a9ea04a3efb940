package sandbox_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"

	"agent-sandboxing/core"
)

// secrets are the settings of a worker that must never reach a sandbox.
var secrets = []string{
	"OPENROUTER_API_KEY", "GITHUB_APP_PRIVATE_KEY_FILE", "GITHUB_CLIENT_SECRET", "GITHUB_WEBHOOK_SECRET", "ENCRYPTION_KEYS",
	"DATABASE_URL", "LANGFUSE_SECRET_KEY", "GITHUB_TOKEN", "GH_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK",
}

// TestInvariant1_NoSecretInSandbox plants a canary for every secret in the worker's environment and in
// the git configuration of what it fetches from, runs a turn, and looks for them wherever a sandbox's
// program or the Docker host could read.
func TestInvariant1_NoSecretInSandbox(t *testing.T) {
	mark := []byte("canary-" + core.NewID[string]())
	for i, name := range secrets {
		t.Setenv(name, fmt.Sprintf("%s-%d", mark, i))
	}
	f := setup(t)
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

func holds(t *testing.T, mark []byte, docker []string) (found bool, size int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", docker...).Output()
	if err != nil {
		t.Fatalf("docker %v: %v", docker, err)
	}
	return bytes.Contains(out, mark), len(out)
}
