package docker

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"agent-sandboxing/core"
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
	session(&config, &host, spec, r.config.Instance, toolboxVolume, volumeName)

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
	session(&config, &host, sandbox.Spec{Limits: spec.Limits, Purpose: spec.Purpose}, r.config.Instance, toolboxVolume, "")
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
		for key, value := range want {
			if there.Config.Labels[key] != value {
				return core.Fail(core.Conflict, "spec_changed", "The sandbox was made with other settings. It has to be made again on the same workspace.")
			}
		}
		ref, started = there.ID, there.State.Status != container.StateCreated
		return nil
	})
	return ref, started, err
}

// volume makes the sandbox's volume, or demands that the kept one is there and is the sandbox's. The
// session is in no label of a volume that was made for the pool; the sandbox's id is in all of them,
// and one session has it for good.
func (r *Runtime) volume(ctx context.Context, name string, fresh bool, spec sandbox.Spec) error {
	if fresh {
		return r.work(ctx, "make the workspace volume", func(ctx context.Context) error {
			_, err := r.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: labels(spec, r.config.Instance)})
			return err
		})
	}
	return r.ask(ctx, "look for the workspace volume", func(ctx context.Context) error {
		there, err := r.api.VolumeInspect(ctx, name)
		if err != nil && !cerrdefs.IsNotFound(err) {
			return err
		}
		if err != nil || there.Labels[labelInstance] != r.config.Instance || there.Labels[labelSandbox] != string(spec.Sandbox) {
			return core.Fail(core.Unavailable, "volume_lost", "The session's workspace volume is gone. It is rebuilt from the last checkpoint.").Because(err)
		}
		return nil
	})
}

// furnish gives a new volume the folders that belong to the sandbox's user, the toolbox's own beside
// repo and home. The volume's root stays the host's: no command can put another folder in their place.
func (r *Runtime) furnish(ctx context.Context, ref string) error {
	return r.unpack(ctx, ref, workspaceDir,
		file{name: "repo/", mode: 0o755, uid: 1000},
		file{name: "home/", mode: 0o700, uid: 1000},
		file{name: ".platform/", mode: 0o700, uid: 1000})
}

func (r *Runtime) dropVolume(ctx context.Context, name string) {
	_ = r.work(context.WithoutCancel(ctx), "remove a volume", func(ctx context.Context) error {
		return r.api.VolumeRemove(ctx, name, true)
	})
}
