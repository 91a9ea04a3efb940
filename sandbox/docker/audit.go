package docker

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/container"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/toolbox"
)

// Verdict is how one control of the table stands on a live sandbox.
type Verdict struct {
	Name, Why string
	// Held says that daemon and sandbox both show what the table demands; Differs is how they do not.
	Held    bool
	Differs string
	Remedy  string
}

// Audit makes a sandbox of the default image with these limits, holds every control of the table against
// it, from inside and as the daemon has it, and removes it again. Errors are those of Create and Start.
func (r *Runtime) Audit(ctx context.Context, limits sandbox.Limits) ([]Verdict, error) {
	ref, err := r.Create(ctx, sandbox.Spec{
		Session: core.NewID[core.SessionID](), Sandbox: core.NewID[core.SandboxID](), Generation: 1, Limits: limits,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Remove(context.WithoutCancel(ctx), ref, true) }()
	box, err := sandbox.Launch(ctx, r, ref, toolbox.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = box.Close() }()
	return r.audit(ctx, ref, limits, func(shell string) (string, error) {
		result, err := box.Run(ctx, core.Command{Shell: shell})
		return string(result.Head) + string(result.Tail), err
	})
}

// audit holds the table against the container ref, in which run runs shell texts as the sandbox's user.
func (r *Runtime) audit(ctx context.Context, ref string, limits sandbox.Limits, run func(shell string) (string, error)) ([]Verdict, error) {
	var there container.InspectResponse
	if err := r.ask(ctx, "inspect the container", func(ctx context.Context) (err error) {
		there, err = r.api.ContainerInspect(ctx, ref)
		return err
	}); err != nil {
		return nil, err
	}
	runtime := cmp.Or(r.config.Runtime, there.HostConfig.Runtime)
	var all []Verdict
	for _, c := range controls() {
		want := filled(c.want, runtime, limits)
		prints := c.prints
		if runtime == gvisor && c.gvisor != "" {
			prints = c.gvisor
		}
		prints = filled(prints, runtime, limits)
		said, err := run(c.inside)
		if err != nil {
			return nil, err
		}
		v := Verdict{Name: c.name, Why: c.why, Remedy: c.remedy}
		var differs []string
		if got := fmt.Sprint(c.daemon(there)); got != want {
			differs = append(differs, fmt.Sprintf("the daemon shows %.200q, not %q", got, want))
		}
		if said = strings.TrimSpace(said); said != prints {
			differs = append(differs, fmt.Sprintf("inside it shows %.200q, not %q", said, prints))
		}
		v.Held, v.Differs = len(differs) == 0, strings.Join(differs, "; ")
		all = append(all, v)
	}
	return all, nil
}
