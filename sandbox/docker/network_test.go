package docker_test

import (
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/sandboxtest"
	"agent-sandboxing/sandbox/toolbox"
)

// letOut starts a sandbox whose programs are let out through way.
func letOut(t testing.TB, r *docker.Runtime, way toolbox.Egress) box {
	t.Helper()
	b := start(t, r, spec())
	if err := b.ServeEgress(t.Context(), way); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNetworkAttacks(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	sandboxtest.RunNetworkAttacks(t, func(t testing.TB, way toolbox.Egress) core.PlatformWorkspace {
		return letOut(t, r, way).Client
	})
}
