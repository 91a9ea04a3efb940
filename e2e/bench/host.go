package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/toolbox"
)

// limits are those of every measured sandbox, and of the containers that it is compared with.
var limits = sandbox.Limits{MemoryBytes: 1 << 30, CPUs: 2, PIDs: 512}

// host is a Docker daemon as an installation of its own, which clean removes again.
type host struct {
	*docker.Runtime        // nil until open
	name            string // of the runtime
	image           string
	instance        string
	dirs            []string // of this machine
}

// open is done once.
func (h *host) open() (err error) {
	if h.Runtime != nil {
		return nil
	}
	h.image, h.instance = os.Getenv("SANDBOX_IMAGE"), "bench-"+core.NewID[string]()
	if h.image == "" {
		return errors.New("SANDBOX_IMAGE is not set: scripts/bench sets it")
	}
	h.Runtime, err = docker.New(docker.Config{Host: os.Getenv("DOCKER_HOST"), Image: h.image, Runtime: h.name, Instance: h.instance})
	return err
}

// stop removes the containers that are left. Their volumes stay until clean: on a file system that has
// just lost many files, new ones may cost several times what they do otherwise.
func (h *host) stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	list, err := h.List(ctx)
	failures := []error{err}
	for _, there := range list {
		failures = append(failures, h.Remove(ctx, there.Ref, false))
	}
	return errors.Join(failures...)
}

// clean removes whatever is left, when nothing is measured any more.
func (h *host) clean(ctx context.Context) error {
	if h.Runtime == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	failures := []error{h.stop(ctx)}
	for _, dir := range h.dirs {
		failures = append(failures, os.RemoveAll(dir))
	}
	volumes, err := h.Volumes(ctx)
	failures = append(failures, err)
	for _, v := range volumes {
		failures = append(failures, h.RemoveVolume(ctx, v.Name))
	}
	return errors.Join(append(failures, h.Close())...)
}

// box is a sandbox without a service around it.
type box struct {
	*toolbox.Client
	ref string
}

func (h *host) box(ctx context.Context) (*box, error) {
	ref, err := h.Create(ctx, sandbox.Spec{
		Session: core.NewID[core.SessionID](), Sandbox: core.NewID[core.SandboxID](), Generation: 1, Limits: limits,
	})
	if err != nil {
		return nil, err
	}
	client, err := sandbox.Launch(ctx, h, ref, toolbox.Options{})
	return &box{Client: client, ref: ref}, err
}

func (h *host) drop(ctx context.Context, b *box) error {
	return errors.Join(b.Close(), h.Remove(ctx, b.ref, true))
}

// sh runs a shell text that must succeed, and returns what it printed.
func sh(ctx context.Context, ws core.Workspace, text string) (string, error) {
	result, err := ws.Run(ctx, core.Command{Shell: text})
	if err == nil && result.Exit != 0 {
		err = fmt.Errorf("%q ended with %d: %s%s", text, result.Exit, result.Head, result.Tail)
	}
	return strings.TrimSpace(string(result.Head) + string(result.Tail)), err
}

// cli runs the docker command.
func cli(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("docker %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// bare runs a command in a container of nothing but Docker's defaults.
func (h *host) bare(ctx context.Context, command ...string) (string, error) {
	args := append([]string{"run", "--rm", "--network", "none", "--runtime", h.name, h.image}, command...)
	return cli(ctx, args...)
}

// knownRuntimes are those of the daemon's that a sandbox may have.
func knownRuntimes(ctx context.Context) ([]string, error) {
	out, err := cli(ctx, "info", "--format", "{{range $name, $_ := .Runtimes}}{{$name}} {{end}}")
	all := strings.Fields(out)
	return slices.DeleteFunc([]string{"runc", "runsc"}, func(name string) bool { return !slices.Contains(all, name) }), err
}
