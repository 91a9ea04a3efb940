package docker_test

import (
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// Under either runtime a command that was killed for want of memory says so, and one that was killed
// otherwise does not.
func TestOutOfMemory_IsToldFromOtherDeaths(t *testing.T) {
	t.Parallel()
	b := start(t, dockertest.New(t), spec())
	for _, test := range []struct {
		shell string
		oom   bool
	}{
		{"kill -KILL $$", false},
		{"exec python3 -c 'x = []\nwhile True: x.append(bytearray(8 << 20))'", true},
		{"exit 137", false},
	} {
		res, err := b.Run(t.Context(), core.Command{Shell: test.shell})
		if err != nil {
			t.Fatalf("%s: %v", test.shell, err)
		}
		if res.Exit != 137 || res.OOMKilled != test.oom || (res.MemoryLimit == spec().Limits.MemoryBytes) != test.oom {
			t.Errorf("%s: %+v", test.shell, res)
		}
	}
}
