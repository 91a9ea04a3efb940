package sandbox_test

import (
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/sandboxtest"
)

// Commands own what is in the platform's folder. Whatever they do to it, the next turn works on the same
// work tree, and its work can be saved.
func TestAcquire_SendsADamagedBaseAgain(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "echo work > new.txt; echo edited > README.md; echo '*.log' > .gitignore; echo kept > x.log")
	damages := map[string]string{"another commit": `git --git-dir=../.platform/base.git -c user.name=T -c user.email=t@example.com commit-tree -m x 'refs/heads/base^{tree}' > ../.platform/base`}
	for what, damage := range sandboxtest.DamagedBase {
		damages[what] = damage
	}
	for what, damage := range damages {
		f.turn(t, f.reclaim(f.claim), damage)
		f.claim = f.reclaim(f.claim)
		ws, err := f.Acquire(t.Context(), f.claim)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := run(t, ws, "cat new.txt README.md x.log"); got != "work\nedited\nkept" {
			t.Errorf("%s: the work is %q", what, got)
		}
		f.checkpoint(t, ws)
		if c, err := f.store.Checkpoint(t.Context(), f.claim.Session.ID, 0); err != nil || c.Info.BaseSHA != f.source.head || c.Info.Files != 3 {
			t.Errorf("%s: checkpoint %+v, %v", what, c.Info, err)
		}
		f.Release(t.Context(), f.claim, ws)
	}
	if box := f.store.box(t, f.claim.Session.ID); box.Generation != 1 || box.State != core.SandboxReady {
		t.Errorf("generation %d, %s", box.Generation, box.State)
	}
}

// Nobody can send the base: the message says so, nothing is touched, and the next one works.
func TestAcquire_ADamagedBaseThatNobodyCanSend(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "echo work > new.txt; rm -r ../.platform/*")
	f.source.refuse = core.Fail(core.Unavailable, "github_unavailable", "GitHub does not answer.")
	_, err := f.Acquire(t.Context(), f.reclaim(f.claim))
	wantCode(t, err, "github_unavailable")
	f.source.refuse = nil
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("afterwards: %q", got)
	}
}
