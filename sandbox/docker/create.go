package docker

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"agent-sandboxing/sandbox"
)

// Create makes the container of one generation, and its volume unless the spec names an older one.
func (r *Runtime) Create(ctx context.Context, spec sandbox.Spec) (string, error) {
	image, err := r.image(ctx, spec.Image)
	if err != nil {
		return "", err
	}
	if err := r.usable(ctx, image.ID); err != nil {
		return "", err
	}
	toolboxVolume, err := r.inject(ctx, image.Architecture, image.ID)
	if err != nil {
		return "", err
	}
	name, volumeName, fresh := name(spec.Sandbox, spec.Generation), spec.Volume, spec.Volume == ""
	if fresh {
		volumeName = name
	}
	config, host := hardened(image.ID, r.config.Runtime, spec.Limits)
	r.session(&config, &host, spec, toolboxVolume, volumeName)

	if ref, started, err := r.adopt(ctx, name, config.Labels); err != nil || ref != "" {
		if err == nil && fresh && !started {
			err = r.furnish(ctx, ref) // whoever made it may not have come that far
		}
		return ref, err
	}
	if err := r.volume(ctx, volumeName, fresh, spec); err != nil {
		return "", err
	}
	var ref string
	err = r.work(ctx, "create the container", func(ctx context.Context) error {
		made, err := r.api.ContainerCreate(ctx, &config, &host, nil, nil, name)
		ref = made.ID
		return err
	})
	if err == nil && fresh {
		err = r.furnish(ctx, ref)
	}
	if err != nil {
		if ref != "" {
			r.discard(ctx, ref)
		}
		if fresh {
			r.dropVolume(ctx, volumeName)
		}
		return "", err
	}
	return ref, nil
}

// Fingerprint is the spec's label as a container without ids and volume would have it.
func (r *Runtime) Fingerprint(ctx context.Context, spec sandbox.Spec) (string, error) {
	image, err := r.image(ctx, spec.Image)
	if err != nil {
		return "", err
	}
	toolboxVolume, err := r.inject(ctx, image.Architecture, image.ID)
	if err != nil {
		return "", err
	}
	config, host := hardened(image.ID, r.config.Runtime, spec.Limits)
	r.session(&config, &host, sandbox.Spec{Limits: spec.Limits, Purpose: spec.Purpose}, toolboxVolume, "")
	return config.Labels[labelSpec], nil
}

// adopt finds the container of a name. One with other labels is never touched.
func (r *Runtime) adopt(ctx context.Context, name string, want map[string]string) (ref string, started bool, err error) {
	err = r.ask(ctx, "look for the container", func(ctx context.Context) error {
		there, err := r.api.ContainerInspect(ctx, name)
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if !same(there.Config.Labels, want) {
			return taken()
		}
		ref, started = there.ID, there.State.Status != container.StateCreated
		return nil
	})
	return ref, started, err
}

// furnish gives a new volume the folders that belong to the sandbox's user, the toolbox's own beside
// repo and home. The volume's root stays the host's: no command can put another folder in their place.
func (r *Runtime) furnish(ctx context.Context, ref string) error {
	return r.unpack(ctx, ref, workspaceDir,
		file{name: "repo/", mode: 0o755, uid: 1000},
		file{name: "home/", mode: 0o700, uid: 1000},
		file{name: ".platform/", mode: 0o700, uid: 1000})
}
