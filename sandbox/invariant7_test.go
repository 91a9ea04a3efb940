package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// hostile are programs that do not want to end.
var hostile = map[string]string{
	"ignores what can be ignored": `trap '' TERM INT HUP QUIT; touch started; while :; do sleep 1000; done`,
	"a session of its own":        `setsid bash -c 'trap "" TERM; touch started; sleep 1000' & wait`,
	"daemons": `for i in 1 2 3 4 5; do (setsid bash -c '(trap "" TERM; touch started; sleep 1000) & exit' &); done
sleep 1000`,
	"a fork bomb": `python3 -c '
import os
open("started", "w").close()
while True:
    try: os.fork()
    except OSError: pass
'`,
	"holds the output": `exec 3>&1; (sleep 1000 >&3 2>&3 &); touch started; sleep 1000`,
	"stopped":          `bash -c 'touch started; kill -STOP $$' & wait; sleep 1000`,
}

// TestInvariant7_NoProcessOfTheTurnOutlivesItsCancel: when a cancelled command has returned, nothing but
// the toolbox is alive in the sandbox, whatever the command was, and the next one works.
func TestInvariant7_NoProcessOfTheTurnOutlivesItsCancel(t *testing.T) {
	t.Parallel()
	for name, shell := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			ws := f.acquire(t, f.claim)
			ref := f.store.box(t, f.claim.Session.ID).RuntimeRef
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := ws.Run(ctx, core.Command{Shell: shell})
				ended <- err
			}()
			eventually(t, "the command runs", func() bool {
				_, err := ws.Stat(t.Context(), "started")
				return err == nil
			})
			cancel()
			asked := time.Now()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the command ended with %v", err)
			}
			took := time.Since(asked)
			if left := dockertest.Programs(t, ref); !slices.Equal(left, []string{"toolboxd"}) {
				t.Errorf("after the cancel these live: %q", left)
			}
			t.Logf("cancelled in %d ms", took.Milliseconds())
			if got := run(t, ws, "echo next"); got != "next" {
				t.Errorf("the next command printed %q", got)
			}
			f.Release(t.Context(), f.claim, ws)
			if box := f.store.box(t, f.claim.Session.ID); box.State != core.SandboxReady {
				t.Errorf("the sandbox is %s (%s)", box.State, box.FailureCode)
			}
		})
	}
}
