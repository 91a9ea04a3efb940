package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	dockerimage "github.com/docker/docker/api/types/image"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
)

// What an image must hold. Coreutils is asked by the tools of it that the toolbox's commands lean on.
const (
	gitMajor, gitMinor = 2, 34
	probe              = `for tool in git cat cp env head mkdir mv rm sort stat tail timeout tr wc; do
	command -v "$tool" >/dev/null || echo "missing $tool"
done
git --version`
)

// image finds an image on the host by reference or id. It is never pulled here: a turn must not wait for
// a registry, and must not get another image than the one that was looked at.
func (r *Runtime) image(ctx context.Context, ref string) (dockerimage.InspectResponse, error) {
	var found dockerimage.InspectResponse
	if ref == "" {
		ref = r.config.Image
	}
	err := r.ask(ctx, "look for the image", func(ctx context.Context) (err error) {
		found, err = r.api.ImageInspect(ctx, ref)
		if ref == "" || cerrdefs.IsNotFound(err) {
			return core.Fail(core.Unavailable, "image_missing",
				"The sandbox image is not on the Docker host. Ask an operator to run scripts/build-image, or to load the image that SANDBOX_IMAGE names.").Because(err)
		}
		return err
	})
	return found, err
}

// usable looks into an image once: it must have bash, git and coreutils.
func (r *Runtime) usable(ctx context.Context, id string) error {
	if r.knows(r.images, id) {
		return nil
	}
	r.checking.Lock()
	defer r.checking.Unlock()
	if r.knows(r.images, id) {
		return nil
	}
	output, err := r.probe(ctx, id)
	if err != nil {
		return err
	}
	if lack := lacks(output); lack != "" {
		return unsupported(lack, nil)
	}
	r.learn(r.images, id)
	return nil
}

func (r *Runtime) knows(what map[string]bool, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return what[id]
}

func (r *Runtime) learn(what map[string]bool, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what[id] = true
}

func unsupported(lack string, cause error) error {
	return core.Fail(core.Unavailable, "image_unsupported",
		fmt.Sprintf("The sandbox image lacks %s. Ask an operator for an image with bash, git %d.%d or newer, and coreutils.", lack, gitMajor, gitMinor)).Because(cause)
}

// probe runs the probe in a container of its own, as locked down as any, and returns what it printed.
func (r *Runtime) probe(ctx context.Context, id string) (string, error) {
	config, host := hardened(id, r.config.Runtime, sandbox.Limits{MemoryBytes: 128 << 20, CPUs: 1, PIDs: 64})
	config.Entrypoint = []string{"bash", "--noprofile", "--norc", "-c", probe}
	config.OpenStdin, config.AttachStdin = false, false
	config.Labels = helper(r.config.Instance)
	var ref string
	err := r.work(ctx, "create a container to look into the image", func(ctx context.Context) error {
		made, err := r.api.ContainerCreate(ctx, &config, &host, nil, nil, "")
		ref = made.ID
		return err
	})
	if err != nil {
		return "", err
	}
	defer r.discard(ctx, ref)

	out, err := r.Attach(ctx, ref)
	if err != nil {
		return "", err
	}
	defer func() { _ = out.Close() }()
	if err := r.Start(ctx, ref); err != nil {
		if text := err.Error(); strings.Contains(text, "executable file not found") || strings.Contains(text, "no such file or directory") {
			return "", unsupported("bash", err)
		}
		return "", err
	}
	var text []byte
	err = bounded(ctx, workWithin, "look into the image", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = out.Close() })
		defer stop()
		text, err = io.ReadAll(io.LimitReader(out, 64<<10))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	})
	if err == nil && len(text) == 0 && strings.Contains(string(out.Stderr()), notExecutable) { // the start itself succeeds
		return "", foreignImage()
	}
	return string(text), err
}

// lacks judges what the probe printed; "" means nothing is missing.
func lacks(output string) string {
	var missing []string
	version := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if tool, ok := strings.CutPrefix(line, "missing "); ok {
			missing = append(missing, tool)
		}
		if text, ok := strings.CutPrefix(line, "git version "); ok {
			version = text
		}
	}
	switch {
	case len(missing) > 0:
		return strings.Join(missing, ", ")
	case !newEnough(version):
		return fmt.Sprintf("git %d.%d (it has %q)", gitMajor, gitMinor, version)
	default:
		return ""
	}
}

func newEnough(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if errors.Join(err1, err2) != nil {
		return false
	}
	return major > gitMajor || major == gitMajor && minor >= gitMinor
}

// discard removes a container that was only a means; what cannot be removed now goes with the next reconcile.
func (r *Runtime) discard(ctx context.Context, ref string) {
	_ = r.work(context.WithoutCancel(ctx), "remove a container", func(ctx context.Context) error {
		return r.api.ContainerRemove(ctx, ref, container.RemoveOptions{Force: true, RemoveVolumes: true})
	})
}
