package main

import (
	"context"
	"fmt"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/config"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/toolbox"
)

// staleDoctor is the age at which the sandbox of an examination is one that was killed.
const staleDoctor = 10 * time.Minute

// checkDocker looks at the daemon, at what surrounds a sandbox there, and at a live one.
func checkDocker(ctx context.Context, cfg config.Config) []finding {
	r, err := docker.New(docker.Config{Host: cfg.DockerHost, Image: cfg.Sandbox.Image, Runtime: cfg.Sandbox.Runtime, Instance: "doctor", CAFile: cfg.Sandbox.CAFile})
	if err != nil {
		return []finding{{"docker", absent, core.MessageOf(err), "Check DOCKER_HOST."}}
	}
	defer r.Close()
	c, err := r.Capabilities(ctx)
	if err != nil {
		return []finding{{"docker", absent, core.MessageOf(err), "Start it (scripts/dockerd ensure), or set DOCKER_HOST."}}
	}
	all := []finding{
		{"docker", fine, "version " + c.ServerVersion, ""},
		checkRuntime(c),
		checkImage(cfg.Sandbox.Image, c.ImageReady),
		checkBudget(cfg.Sandbox, c.DiskBudget),
		checkCapacity(cfg.Sandbox, c),
	}
	all = append(all, checkHost(ctx, r)...)
	if !c.ImageReady || !c.RuntimeKnown {
		return append(all, finding{"controls", absent, "without runtime and image no sandbox can be looked at", "See runtime and image."})
	}
	clean(ctx, r)
	return append(all, checkControls(ctx, r, sandbox.Limits{MemoryBytes: cfg.Sandbox.Memory << 20, CPUs: cfg.Sandbox.CPUs, PIDs: cfg.Sandbox.PIDs, DiskBytes: cfg.Sandbox.Disk << 20})...)
}

func checkRuntime(c sandbox.Capabilities) finding {
	if !c.RuntimeKnown {
		return finding{"runtime", absent, "the daemon does not know " + c.Runtime + ", and nothing takes its place", "Register it in the daemon's configuration; OPERATIONS.md says how, under gVisor."}
	}
	return finding{"runtime", fine, c.Runtime, ""}
}

// checkCapacity holds what sandboxes may use against what their host has.
func checkCapacity(s config.Sandbox, c sandbox.Capabilities) finding {
	const name = "capacity"
	detail := fmt.Sprintf("%d sandboxes at once with %d MiB, %g processors and %d processes each; the host has %d MiB and %d processors",
		s.MaxRunning, s.Memory, s.CPUs, s.PIDs, c.MemoryBytes>>20, c.Processors)
	switch {
	case s.Memory<<20 > c.MemoryBytes:
		return finding{name, degraded, detail, "Lower SANDBOX_MEMORY: the host runs out of memory before one sandbox meets its limit."}
	case int64(s.MaxRunning)*s.Memory<<20 > c.MemoryBytes:
		return finding{name, degraded, detail, "Lower SANDBOX_MAX_RUNNING or SANDBOX_MEMORY: together they may use more memory than there is."}
	case s.CPUs > float64(c.Processors):
		return finding{name, degraded, detail, "Lower SANDBOX_CPUS: one sandbox may use every processor of the host."}
	}
	return finding{name, fine, detail, ""}
}

func checkImage(image string, ready bool) finding {
	const remedy = "Run scripts/build-image on the Docker host, then set SANDBOX_IMAGE to the last line that it prints."
	switch {
	case image == "":
		return finding{"image", absent, "SANDBOX_IMAGE is not set", remedy}
	case !ready:
		return finding{"image", absent, image + " is not on the Docker host", remedy}
	}
	return finding{"image", fine, image, ""}
}

// checkBudget says what bounds a workspace's disk.
func checkBudget(s config.Sandbox, by sandbox.DiskBudget) finding {
	const name = "disk budget"
	switch {
	case s.Disk == 0:
		return finding{name, degraded, "SANDBOX_DISK is 0: one session can fill the Docker host's disk", "Set SANDBOX_DISK."}
	case by == sandbox.BudgetQuota:
		return finding{name, fine, fmt.Sprintf("%d MiB for each workspace, by the kernel's quota; the number of files is looked at while commands run", s.Disk), ""}
	}
	return finding{
		name, degraded, fmt.Sprintf("%d MiB for each workspace, looked at while commands run: what one writes between two looks comes on top", s.Disk),
		"Put the Docker host's data folder on an xfs or ext4 that is mounted with project quotas (pquota), and restart the daemon. One preallocated image for the whole folder, loop-mounted, will do.",
	}
}

func checkHost(ctx context.Context, r *docker.Runtime) []finding {
	found, err := r.ExamineHost(ctx)
	if err != nil {
		return []finding{{"docker host", absent, core.MessageOf(err), "Look at the daemon's log."}}
	}
	var all []finding
	for _, f := range found {
		state := fine
		if f.Remedy != "" {
			state = degraded
		}
		all = append(all, finding{"host: " + f.Name, state, f.Detail, f.Remedy})
	}
	return all
}

// checkControls makes a sandbox, holds the table of controls against it, and removes it.
func checkControls(ctx context.Context, r *docker.Runtime, limits sandbox.Limits) []finding {
	verdicts, err := r.Audit(ctx, limits)
	if err != nil {
		return []finding{{"controls", absent, core.MessageOf(err), "No sandbox starts; see the code " + core.CodeOf(err) + " in OPERATIONS.md."}}
	}
	var all []finding
	for _, v := range verdicts {
		f := finding{"control: " + v.Name, fine, v.Why, ""}
		if !v.Held {
			f.state, f.detail, f.remedy = degraded, fmt.Sprintf("%s: %s", v.Why, v.Differs), v.Remedy
			if f.remedy == "" {
				f.remedy = "Update Docker and its runtime; if it stays so, report it."
			}
		}
		all = append(all, f)
	}
	return all
}

// clean removes what an examination left that was killed.
func clean(ctx context.Context, r *docker.Runtime) {
	list, err := r.List(ctx)
	for _, old := range list {
		if err == nil && time.Since(old.CreatedAt) > staleDoctor {
			err = r.Remove(ctx, old.Ref, true)
		}
	}
}

func checkToolbox(context.Context, config.Config) []finding {
	var all []finding
	for _, arch := range []string{"amd64", "arm64"} {
		if _, sum, err := toolbox.Binary(arch); err != nil {
			all = append(all, finding{"toolbox " + arch, absent, core.MessageOf(err), "Build with make build."})
		} else {
			all = append(all, finding{"toolbox " + arch, fine, "sha256 " + sum, ""})
		}
	}
	return all
}
