package docker_test

import (
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/sandboxtest"
)

// offers are the capabilities of the runtime under test.
func offers() []sandboxtest.Capability {
	have := []sandboxtest.Capability{sandboxtest.CommandsReal, sandboxtest.Contained}
	if dockertest.Runtime() == "runc" {
		have = append(have, sandboxtest.ExhaustionContained, sandboxtest.InitProtected, sandboxtest.NativeFiles)
	}
	return have
}

func TestConformance(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	sandboxtest.Run(t, func(t *testing.T) core.PlatformWorkspace {
		t.Helper()
		return start(t, r, spec()).Client
	}, offers()...)
}

func TestAttacks(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	sandboxtest.Attacks(t, func(t *testing.T) core.PlatformWorkspace {
		t.Helper()
		return start(t, r, spec()).Client
	}, offers()...)
}
