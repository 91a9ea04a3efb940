package dockertest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/sandbox/docker/dockertest"
)

func TestDaemon_IsKilledStartedAgainAndLeavesNothing(t *testing.T) {
	t.Parallel()
	d, err := dockertest.OpenDaemon(t.Context(), dockertest.DaemonOptions{LiveRestore: true, Images: []string{dockertest.Image(t)}})
	if err != nil {
		t.Fatal(err)
	}
	killed(t, d)
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(d.Socket())
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("mounts are left: %v", err)
	}
	for pattern, holds := range map[string]bool{
		"/proc/[0-9]*/cmdline": true, "/sys/fs/cgroup/" + filepath.Base(dir): false, "/sys/fs/cgroup/*/" + filepath.Base(dir): false,
	} {
		left, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range left {
			if text, err := os.ReadFile(path); !holds || err == nil && strings.Contains(string(text), dir) {
				t.Errorf("left: %s %q", path, text)
			}
		}
	}
}

// killed kills and starts the daemon under a container, which lives on.
func killed(t *testing.T, d *dockertest.Daemon) {
	t.Helper()
	ref, err := d.Run(t.Context(), "run", "-d", "--network", "none", dockertest.Image(t), "sleep", "1000")
	if err != nil {
		t.Error(err)
		return
	}
	if err := d.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := d.Run(t.Context(), "version"); err == nil {
		t.Error("a killed daemon answers")
	}
	if err := d.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := d.Run(t.Context(), "inspect", "--format", "{{.State.Running}}", ref); got != "true" {
		t.Errorf("after the restart the container runs: %s, %v", got, err)
	}
}
