package docker_test

import (
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/sandboxtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	sandboxtest.Run(t, func(t *testing.T) core.PlatformWorkspace {
		t.Helper()
		return start(t, r, spec()).Client
	}, sandboxtest.CommandsReal, sandboxtest.Contained)
}

func TestAttacks(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	sandboxtest.Attacks(t, func(t *testing.T) core.PlatformWorkspace {
		t.Helper()
		return start(t, r, spec()).Client
	}, sandboxtest.CommandsReal, sandboxtest.Contained)
}
