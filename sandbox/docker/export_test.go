package docker

import (
	"context"

	"agent-sandboxing/sandbox"
)

// AuditOf holds the table against a container that was not made by it.
func (r *Runtime) AuditOf(ctx context.Context, ref string, limits sandbox.Limits, run func(shell string) (string, error)) ([]Verdict, error) {
	return r.audit(ctx, ref, limits, run)
}

// NameToolboxVolumes lets a test have toolbox volumes of its own; those of other builds may go at once.
func (r *Runtime) NameToolboxVolumes(prefix string) { r.volumes, r.oldKept = prefix, 0 }
