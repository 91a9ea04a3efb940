package docker

import (
	"context"
	"strconv"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
)

// Start starts a container that was made or stopped; a running one is fine.
func (r *Runtime) Start(ctx context.Context, ref string) error {
	return r.work(ctx, "start the container", func(ctx context.Context) error {
		return r.api.ContainerStart(ctx, ref, container.StartOptions{})
	})
}

// Stop kills the container; nothing in it is given time, because the toolbox keeps nothing.
func (r *Runtime) Stop(ctx context.Context, ref string) error {
	return r.work(ctx, "stop the container", func(ctx context.Context) error {
		r.thaw(ctx, ref)
		err := r.api.ContainerKill(ctx, ref, "KILL")
		if cerrdefs.IsConflict(err) { // it is not running
			return nil
		}
		return err
	})
}

// Remove deletes the container, and its workspace volume when volume is true.
func (r *Runtime) Remove(ctx context.Context, ref string, volume bool) error {
	status, err := r.Inspect(ctx, ref)
	if core.CodeOf(err) == "sandbox_lost" {
		return nil
	}
	if err != nil {
		return err
	}
	err = r.work(ctx, "remove the container", func(ctx context.Context) error {
		r.thaw(ctx, ref)
		return r.gone(ctx, ref)
	})
	if err != nil {
		return err
	}
	r.collect(ctx) // it may have been the last one of an older build
	if !volume || status.Volume == "" {
		return nil
	}
	return r.RemoveVolume(ctx, status.Volume)
}

// thaw resumes a container that somebody paused: the daemon needs 10 s to kill such a one of gVisor's.
func (r *Runtime) thaw(ctx context.Context, ref string) {
	if r.config.Runtime == gvisor {
		_ = r.api.ContainerUnpause(ctx, ref) // most are not paused
	}
}

// gone removes a container and waits until it is: the daemon answers "in progress" to the second of two.
func (r *Runtime) gone(ctx context.Context, ref string) error {
	for {
		err := r.api.ContainerRemove(ctx, ref, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || cerrdefs.IsNotFound(err) {
			return nil
		}
		if !cerrdefs.IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Inspect describes one container of this installation; any other is sandbox_lost.
func (r *Runtime) Inspect(ctx context.Context, ref string) (sandbox.Status, error) {
	var status sandbox.Status
	if ref == "" {
		return status, lost()
	}
	err := r.ask(ctx, "inspect the container", func(ctx context.Context) error {
		there, err := r.api.ContainerInspect(ctx, ref)
		if err != nil {
			return err
		}
		if there.Config.Labels[labelInstance] != r.config.Instance {
			return lost()
		}
		status = described(there.ID, there.Config.Labels)
		status.Running, status.Paused = there.State.Running, there.State.Paused
		status.OOMKilled = there.State.OOMKilled
		status.ExitCode = there.State.ExitCode
		status.ImageID = there.Image
		status.Volume = workspaceVolume(there.Mounts)
		status.CreatedAt, err = time.Parse(time.RFC3339Nano, there.Created)
		return err
	})
	return status, err
}

// List returns this installation's containers, running or not. Exit codes come by Inspect only.
func (r *Runtime) List(ctx context.Context) ([]sandbox.Status, error) {
	var list []sandbox.Status
	err := r.ask(ctx, "list the containers", func(ctx context.Context) error {
		there, err := r.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(
			filters.Arg("label", labelInstance+"="+r.config.Instance))})
		if err != nil {
			return err
		}
		for _, c := range there {
			status := described(c.ID, c.Labels)
			status.Paused = c.State == container.StatePaused
			status.Running = c.State == container.StateRunning || status.Paused || c.State == container.StateRestarting
			status.ImageID = c.ImageID
			status.Volume = workspaceVolume(c.Mounts)
			status.CreatedAt = time.Unix(c.Created, 0)
			list = append(list, status)
		}
		return nil
	})
	return list, err
}

func described(ref string, labels map[string]string) sandbox.Status {
	generation, err := strconv.Atoi(labels[labelGeneration])
	if err != nil {
		generation = 0 // older than any
	}
	return sandbox.Status{
		Ref:        ref,
		Purpose:    sandbox.Purpose(labels[labelPurpose]),
		Session:    core.SessionID(labels[labelSession]),
		Sandbox:    core.SandboxID(labels[labelSandbox]),
		Generation: generation,
	}
}

func workspaceVolume(mounts []container.MountPoint) string {
	for _, m := range mounts {
		if m.Type == mount.TypeVolume && m.Destination == workspaceDir {
			return m.Name
		}
	}
	return ""
}
