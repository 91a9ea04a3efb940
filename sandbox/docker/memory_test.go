package docker_test

import (
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// Under either runtime a command that was killed for want of memory says so, and one that was killed
// otherwise does not.
func TestOutOfMemory_IsToldFromOtherDeaths(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	b := start(t, r, spec())
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
	// gVisor's kernel is in the same limit, and may be what the host's kernel kills.
	res, err := b.Run(t.Context(), core.Command{Shell: "exec python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'"})
	if err != nil && (dockertest.Runtime() == "runc" || core.CodeOf(err) != "sandbox_lost" || !strings.Contains(core.MessageOf(err), "memory (1024 MiB)")) {
		t.Errorf("in small pieces: %v", err)
	}
	if err == nil && !res.OOMKilled {
		t.Errorf("in small pieces: %+v", res)
	}
}

// A fork bomb ends at its limit, and leaves gVisor's kernel the memory that so many processes need there.
func TestForkBomb_LeavesTheSandboxAlive(t *testing.T) {
	t.Parallel()
	wide := spec()
	wide.Limits.MemoryBytes = 1 << 30 // more than 128 processes take under runc
	if dockertest.Runtime() != "runc" {
		wide.Limits.PIDs = 4096
	}
	b := start(t, dockertest.New(t), wide)
	res, err := b.Run(t.Context(), core.Command{Shell: "python3 -c 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'", Timeout: 3 * time.Second})
	if err != nil || !res.TimedOut {
		t.Errorf("%+v, %v", res, err)
	}
	if exit, out := b.sh(t, "echo well"); exit != 0 || out != "well" {
		t.Errorf("afterwards: exit %d, %q", exit, out)
	}
}
