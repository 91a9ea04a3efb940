package docker

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
)

// Volumes returns this installation's workspace volumes, used or not.
func (r *Runtime) Volumes(ctx context.Context) ([]sandbox.Volume, error) {
	var list []sandbox.Volume
	err := r.ask(ctx, "list the volumes", func(ctx context.Context) error {
		there, err := r.api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(
			filters.Arg("label", labelInstance+"="+r.config.Instance), filters.Arg("label", labelSandbox))})
		for _, v := range there.Volumes {
			list = append(list, sandbox.Volume{
				Name: v.Name, Session: core.SessionID(v.Labels[labelSession]), Sandbox: core.SandboxID(v.Labels[labelSandbox]),
			})
		}
		return err
	})
	return list, err
}

// RemoveVolume deletes a workspace volume of this installation; absent is fine.
func (r *Runtime) RemoveVolume(ctx context.Context, name string) error {
	return r.work(ctx, "remove a volume", func(ctx context.Context) error {
		there, err := r.api.VolumeInspect(ctx, name)
		if err == nil && there.Labels[labelInstance] == r.config.Instance {
			err = r.api.VolumeRemove(ctx, name, false)
		}
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}
