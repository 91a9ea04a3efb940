package sandboxtest

import (
	"bytes"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror/gittrap"
)

func gitAttacks() []testCase {
	return []testCase{{name: "everything that a repository can make git do", needs: real, run: gitTraps}}
}

// trapDir is where the traps' programs lie, and what they leave.
const trapDir = "/tmp/traps"

// gitTraps plants one trap after the other and has the platform do all of its work each time. At last
// the work tree goes to another sandbox, with everything that was planted in it.
func gitTraps(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	planted := gittrap.All()
	var archive bytes.Buffer
	var info core.CheckpointInfo
	var tree string
	sprung := 0
	for _, trap := range planted {
		ws.must(t, trap.Plant(trapDir))
		ws.write(t, map[string]string{"changed.txt": trap.Name + "\r\n", "README.md": trap.Name + "\n"})
		state, err := ws.GitState(t.Context())
		if err != nil || !state.Dirty {
			t.Errorf("%s: state %+v, %v", trap.Name, state, err)
		}
		tree = ws.snapshot(t, f).TreeSHA
		archive.Reset()
		if info, err = ws.Checkpoint(t.Context(), &archive, core.MaxCheckpoint); err != nil {
			t.Errorf("%s: checkpoint: %v", trap.Name, err)
		}
		if !trap.Local { // a nested repository is no part of a commit that git makes
			ws.must(t, commitRaw(f.base))
			ws.switchesTo(t, f, fixtureBranch)
		}
		sprung += ws.sprung(t, trap.Name)
	}
	if got := f.git(t, "show", tree+":changed.txt"); got != planted[len(planted)-1].Name+"\r" {
		t.Errorf("the snapshot has changed.txt as %q", got)
	}

	other := box{PlatformWorkspace: ws.open(t), open: ws.open}
	for _, trap := range planted {
		other.must(t, trap.Program(trapDir))
	}
	other.checkout(t, f)
	if err := other.Restore(t.Context(), info, &archive); err != nil {
		t.Fatalf("restore: %v", err)
	}
	if _, err := other.GitState(t.Context()); err != nil {
		t.Errorf("state of what was restored: %v", err)
	}
	if got := other.snapshot(t, f).TreeSHA; got != tree {
		t.Errorf("what was restored is tree %s, not %s", got, tree)
	}
	sprung += other.sprung(t, "rebuilding")
	t.Logf("git traps: %d planted, %d sprung", len(planted), sprung)
}

// commitRaw commits the work tree as it is and leaves HEAD there, by a git that nobody has prepared.
func commitRaw(base string) string {
	return `repo=$PWD
		export GIT_DIR=/tmp/plain.git GIT_WORK_TREE=$repo GIT_OBJECT_DIRECTORY=$repo/.git/objects GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent
		mkdir -p $GIT_DIR/info $GIT_DIR/objects $GIT_DIR/refs && echo 'ref: refs/heads/x' > $GIT_DIR/HEAD && echo '* -text -ident -filter' > $GIT_DIR/info/attributes
		git read-tree ` + base + ` && git add -A && git -c user.name=T -c user.email=t@example.com commit-tree -m x "$(git write-tree)" > $repo/.git/HEAD`
}

// switchesTo demands that a clean work tree on another branch is put on branch, at the base.
func (ws box) switchesTo(t *testing.T, f *fixture, branch string) {
	t.Helper()
	if state, err := ws.GitState(t.Context()); err != nil || state.Dirty || state.Branch == branch {
		t.Errorf("before the switch: %+v, %v", state, err)
	}
	if err := ws.SwitchBranch(t.Context(), branch); err != nil {
		t.Errorf("switch: %v", err)
	}
	want := core.GitState{Base: f.base, Branch: branch, Head: f.base}
	if state, err := ws.GitState(t.Context()); err != nil || state != want {
		t.Errorf("after the switch: %+v, %v", state, err)
	}
}

// sprung counts the canaries, and clears them away.
func (ws box) sprung(t *testing.T, after string) int {
	t.Helper()
	left := strings.Fields(ws.must(t, "cd "+gittrap.Sprung(trapDir)+" && ls -A && rm -rf ./*"))
	for _, canary := range left {
		t.Errorf("after %s: %s sprang", after, canary)
	}
	return len(left)
}
