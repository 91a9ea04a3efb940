package toolbox_test

import (
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/sandboxtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, func(t *testing.T) core.PlatformWorkspace {
		return dial(t, startBox(t))
	}, sandboxtest.CommandsReal, sandboxtest.NativeFiles)
}
