// Package dockertest gives tests a runtime on the real Docker daemon, as an installation of their own
// that is gone, container and volume, when the test ends.
package dockertest

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker"
)

// New returns a runtime that nothing else shares. It fails the test when Docker does not answer or the
// small image is missing.
func New(t testing.TB) *docker.Runtime {
	t.Helper()
	return Open(t, Config(t))
}

// Config is what New uses, for tests that change something of it.
func Config(t testing.TB) docker.Config {
	t.Helper()
	config := docker.Config{
		Host:     os.Getenv("DOCKER_HOST"),
		Image:    Image(t),
		Runtime:  Runtime(),
		Instance: "test-" + core.NewID[string](),
	}
	t.Cleanup(func() { clean(t, config.Instance) })
	return config
}

// Runtime is the one under test: runc, or what TEST_SANDBOX_RUNTIME names.
func Runtime() string { return cmp.Or(os.Getenv("TEST_SANDBOX_RUNTIME"), "runc") }

// NewDaemon is OpenDaemon for one test, with the small image and gone when the test ends.
func NewDaemon(t testing.TB, options DaemonOptions) *Daemon {
	t.Helper()
	options.Images = append(options.Images, Image(t))
	d, err := OpenDaemon(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Config is what tests of this daemon open their runtime with. Nothing has to be cleaned up: it goes
// with the daemon.
func (d *Daemon) Config(t testing.TB) docker.Config {
	t.Helper()
	return docker.Config{Host: d.Host(), Image: Image(t), Runtime: Runtime(), Instance: "test-" + core.NewID[string]()}
}

// Docker runs the docker command against this daemon and returns what it printed.
func (d *Daemon) Docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := d.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Open makes a runtime from a Config of this package.
func Open(t testing.TB, config docker.Config) *docker.Runtime {
	t.Helper()
	r, err := docker.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the runtime: %v", err)
		}
	})
	return r
}

// Image is the reference of the small image, which must be on the host.
func Image(t testing.TB) string {
	t.Helper()
	image := os.Getenv("TEST_SANDBOX_IMAGE")
	if image == "" {
		_, here, _, _ := runtime.Caller(0)
		script := filepath.Join(filepath.Dir(here), "..", "..", "..", "scripts", "build-image")
		out, err := exec.CommandContext(t.Context(), script, "--small", "--tag").Output()
		if err != nil {
			t.Fatalf("%s --small --tag: %v", script, err)
		}
		image = strings.TrimSpace(string(out))
	}
	if err := exec.CommandContext(t.Context(), "docker", "version").Run(); err != nil {
		t.Fatal("Docker does not answer. Run scripts/dockerd ensure and export the DOCKER_HOST that it prints.")
	}
	if err := exec.CommandContext(t.Context(), "docker", "image", "inspect", image).Run(); err != nil {
		t.Fatalf("The image %s is not on the Docker host. Run scripts/build-image --small.", image)
	}
	return image
}

// Docker runs the docker command and returns what it printed.
func Docker(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute) // clean-up too
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Programs are the names of what runs in a container, without what looks. (docker top shows the host's
// processes of the same numbers under gVisor.)
func Programs(t testing.TB, container string) []string {
	t.Helper()
	all := strings.Fields(Docker(t, "exec", container, "bash", "-c", "cat /proc/[0-9]*/comm"))
	if i := slices.Index(all, "cat"); i >= 0 {
		all = slices.Delete(all, i, i+1)
	}
	return all
}

// clean removes whatever an instance left. A volume that is still in use, or a container that cannot
// be removed, fails the test.
func clean(t testing.TB, instance string) {
	filter := "label=agent-sandboxing.instance=" + instance
	if left := strings.Fields(Docker(t, "ps", "-aq", "--filter", filter)); len(left) > 0 {
		Docker(t, append([]string{"rm", "-f", "-v"}, left...)...)
	}
	if left := strings.Fields(Docker(t, "volume", "ls", "-q", "--filter", filter)); len(left) > 0 {
		Docker(t, append([]string{"volume", "rm"}, left...)...)
	}
	if left := Docker(t, "ps", "-aq", "--filter", filter) + Docker(t, "volume", "ls", "-q", "--filter", filter); left != "" {
		t.Errorf("left behind: %s", left)
	}
}
