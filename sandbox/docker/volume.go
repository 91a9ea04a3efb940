package docker

import (
	"context"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
)

// volume makes the sandbox's volume, or demands that the kept one is there and is the sandbox's. No
// label of a volume that was made for the pool names a session; each names the sandbox, whose id one
// session has for good.
func (r *Runtime) volume(ctx context.Context, name string, fresh bool, spec sandbox.Spec) error {
	if !fresh {
		return r.kept(ctx, name, spec)
	}
	options := volume.CreateOptions{Name: name, Labels: labels(spec, r.config.Instance)}
	if spec.Limits.DiskBytes > 0 {
		budget, err := r.budget(ctx)
		if err != nil {
			return err
		}
		if budget == sandbox.BudgetQuota {
			options.DriverOpts = sized(spec.Limits.DiskBytes)
		}
	}
	return r.work(ctx, "make the workspace volume", func(ctx context.Context) error {
		made, err := r.api.VolumeCreate(ctx, options)
		if err == nil && !same(made.Labels, options.Labels) { // the daemon hands out what has the name already
			return taken()
		}
		return err
	})
}

func (r *Runtime) kept(ctx context.Context, name string, spec sandbox.Spec) error {
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

// Volumes lists this installation's workspace volumes.
func (r *Runtime) Volumes(ctx context.Context) ([]sandbox.Volume, error) {
	var list []sandbox.Volume
	err := r.ask(ctx, "list the volumes", func(ctx context.Context) error {
		there, err := r.api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(
			filters.Arg("label", labelInstance+"="+r.config.Instance), filters.Arg("label", labelSandbox))})
		if err != nil {
			return err
		}
		for _, v := range there.Volumes {
			list = append(list, sandbox.Volume{
				Name: v.Name, Session: core.SessionID(v.Labels[labelSession]), Sandbox: core.SandboxID(v.Labels[labelSandbox]),
			})
		}
		return nil
	})
	return list, err
}

// RemoveVolume deletes a volume of this installation. The daemon refuses one that a container has.
func (r *Runtime) RemoveVolume(ctx context.Context, name string) error {
	return r.work(ctx, "remove the workspace volume", func(ctx context.Context) error {
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

// budget asks the daemon once whether its volumes can have a size, by making one that has.
func (r *Runtime) budget(ctx context.Context) (sandbox.DiskBudget, error) {
	r.mu.Lock()
	known := r.disk
	r.mu.Unlock()
	if known != "" {
		return known, nil
	}
	name := "agent-quota-" + r.config.Instance
	err := r.work(ctx, "try a volume with a quota", func(ctx context.Context) error {
		_, err := r.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: helper(r.config.Instance), DriverOpts: sized(1 << 20)})
		switch {
		case err == nil:
			known = sandbox.BudgetQuota
			if err = r.api.VolumeRemove(ctx, name, false); cerrdefs.IsNotFound(err) { // another worker asks too
				return nil
			}
			return err
		case strings.Contains(err.Error(), "no quota support"): // the API has no status for it
			known = sandbox.BudgetSampled
			return nil
		default:
			return err
		}
	})
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disk = known
	return known, nil
}

func sized(bytes int64) map[string]string {
	return map[string]string{"size": strconv.FormatInt(bytes, 10)}
}

// dropVolume removes what a creation that failed had made.
func (r *Runtime) dropVolume(ctx context.Context, name string) {
	_ = r.RemoveVolume(context.WithoutCancel(ctx), name) // else it has no row, and the next reconciles remove it
}

// same says that labels agree with all that are wanted.
func same(labels, want map[string]string) bool {
	for key, value := range want {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func taken() error {
	return core.Fail(core.Conflict, "spec_changed", "The sandbox was made with other settings. It has to be made again on the same workspace.")
}
