package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// listing is all of a work tree but its own .git: kind, mode, target, name and content of everything.
const listing = `find . -path ./.git -prune -o -printf '%y %m %l %p\0' | sort -z | tr '\0\n' '\n?'
find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum -z | tr '\0\n' '\n?'`

// changes is everything that a turn can do to a tree.
const changes = `
printf 'one\r\ntwo\r\nthree\r\n' > crlf.txt; printf 'lf\n' > lf.bat; printf 'a\r\nb\n' > new-mixed.txt
chmod 755 README.md; chmod 600 src/main.c; chmod 644 tool.sh; mkdir -m 700 private; echo x > private/x
mkdir -p empty/inner; ln -s /etc/passwd outside; ln -s ../../.. up; ln -sfn other link; ln -s nowhere dangling
rm src/gone.c; rm -r old
rm file; mkdir file; echo in > file/in; rm -r folder; echo now a file > folder; rm -r tree; ln -s src tree
echo 1 > "$(printf 'caf\351')"; echo 2 > "$(printf 'new\nline')"; echo 3 > ' lead'; echo 4 > -rf; echo 5 > 'quo"te\'
printf 'a\0b\377' > binary; : > nothing; head -c 3000000 /dev/urandom > noise
mkdir nested; cd nested; git init -q; echo y > y; git add y; git -c user.name=A -c user.email=a@example.com commit -qm y; echo z > z; cd ..
mkdir -p deep/a/b/c/d/e/f; echo deep > deep/a/b/c/d/e/f/g`

// newTree is a repository whose files invite git to change them.
func newTree(t *testing.T) *source {
	t.Helper()
	s := newSource(t)
	for name, text := range map[string]string{
		".gitattributes": "* text=auto\n*.bat text eol=crlf\n*.c ident\n", "crlf.txt": "one\r\ntwo\r\n", "lf.bat": "echo\n",
		"src/main.c": "// $Id$\n", "src/gone.c": "x\n", "old/a/b": "x\n", "file": "x\n", "folder/x": "x\n", "tree/a/x": "x\n", "tool.sh": "#!/bin/sh\n",
		".git/info/attributes": "* -text -ident -filter\n",
	} {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(s.dir, "tool.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("src/main.c", filepath.Join(s.dir, "link")); err != nil {
		t.Fatal(err)
	}
	s.commit(t)
	return s
}

// The turn could not save its work; the stop does. Then the volume is lost.
func TestStop_SavesTheWorkFirstAndALostVolumeIsRebuiltByteForByte(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.Idle = time.Nanosecond })
	f.source = newTree(t)
	f.Service = sandbox.New(sandbox.Options{
		Runtime: f.runtime, Store: f.store, Source: f.source, Log: f.log(t), Idle: time.Nanosecond,
		Limits: sandbox.Limits{MemoryBytes: 512 << 20, CPUs: 1, PIDs: 256},
	})
	f.claim = f.newClaim()
	f.turn(t, f.claim, changes)
	want := f.turn(t, f.reclaim(f.claim), listing)
	f.store.own(f.claim.Session.ID, "")
	f.store.types(f.claim.Session.ID)
	if err := f.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "checkpoint_saved", "sandbox_stopping idle", "sandbox_stopped")

	box := f.store.box(t, f.claim.Session.ID)
	dockertest.Docker(t, "rm", "-f", box.RuntimeRef)
	dockertest.Docker(t, "volume", "rm", box.Volume)
	got := f.turn(t, f.reclaim(f.claim), listing)
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("rebuilt (-want +got)\n%s", diff)
	}
	if lines := strings.Count(want, "\n"); lines < 60 {
		t.Errorf("the listing has only %d lines:\n%s", lines, want)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_creating", "sandbox_creating volume_lost",
		"repo_checkout_started", "repo_checkout_completed", "sandbox_restored", "sandbox_ready")
	if got := f.turn(t, f.reclaim(f.claim), "cd nested && git log --format=%s && git status --porcelain"); got != "y\n?? z" {
		t.Errorf("the nested repository says %q", got)
	}
}

func TestStop_SavesOnlyWhatNoCheckpointHas(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.Idle = time.Nanosecond })
	ws := f.acquire(t, f.claim)
	run(t, ws, "echo work > new.txt")
	f.checkpoint(t, ws)
	f.Release(t.Context(), f.claim, ws)
	f.store.own(f.claim.Session.ID, "")
	f.store.types(f.claim.Session.ID)
	if err := f.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "sandbox_stopping idle", "sandbox_stopped")
}

func TestRemoveAll_SavesTheWorkFirst(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.turn(t, f.claim, "echo work > new.txt")
	f.store.own(f.claim.Session.ID, "")
	f.store.types(f.claim.Session.ID)
	volume := f.store.box(t, f.claim.Session.ID).Volume
	if err := f.RemoveAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "checkpoint_saved", "sandbox_stopping server_stopped", "sandbox_stopped")
	dockertest.Docker(t, "volume", "rm", volume)
	if got := f.turn(t, f.reclaim(f.claim), "cat new.txt"); got != "work" {
		t.Errorf("without the volume: %q", got)
	}
}

// A server that ends takes no sandbox from a turn of another worker on its host.
func TestRemoveAll_LeavesWhatAnotherWorkerUses(t *testing.T) {
	t.Parallel()
	f := setup(t)
	idle := f.newClaim()
	f.turn(t, idle, "true")
	f.store.own(idle.Session.ID, "")
	ws := f.acquire(t, f.claim)
	ending := sandbox.New(sandbox.Options{Runtime: f.runtime, Store: f.store, Source: f.source, Log: f.log(t)})
	if err := ending.RemoveAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := run(t, ws, "echo goes on"); got != "goes on" {
		t.Errorf("the other's turn says %q", got)
	}
	if left, err := f.runtime.List(t.Context()); err != nil || len(left) != 1 || left[0].Session != f.claim.Session.ID {
		t.Errorf("left %+v, %v, want the one in use", left, err)
	}
}

// A work tree that cannot be saved is stopped all the same: the volume has it, and the log says so.
func TestStop_SaysWhenTheWorkCouldNotBeSaved(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *sandbox.Options) { o.Idle = time.Nanosecond })
	f.turn(t, f.claim, "mkdir closed; echo x > closed/x; chmod 000 closed")
	f.store.own(f.claim.Session.ID, "")
	f.store.types(f.claim.Session.ID)
	if err := f.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, f.store.types(f.claim.Session.ID), "capture_failed", "sandbox_stopping idle", "sandbox_stopped")
	if got := f.turn(t, f.reclaim(f.claim), "chmod 755 closed; cat closed/x"); got != "x" {
		t.Errorf("afterwards: %q", got)
	}
}

func TestRebuild_NamesWhatACheckpointHadNoRoomFor(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ws := f.acquire(t, f.claim)
	run(t, ws, "head -c 70000000 /dev/urandom > big; echo small > small; head -c 90000000 /dev/zero > easy")
	f.checkpoint(t, ws)
	f.Release(t.Context(), f.claim, ws)
	box := f.store.box(t, f.claim.Session.ID)
	dockertest.Docker(t, "rm", "-f", box.RuntimeRef)
	dockertest.Docker(t, "volume", "rm", box.Volume)
	if got := f.turn(t, f.reclaim(f.claim), "cat small; stat -c %s easy; ls"); got != "small\n90000000\nREADME.md\neasy\nsmall" {
		t.Errorf("rebuilt: %q", got)
	}
	var missing [][]string
	for _, payload := range f.store.all(f.claim.Session.ID) {
		switch e := payload.(type) {
		case core.CheckpointSaved:
			missing = append(missing, e.Missing)
		case core.SandboxRestored:
			missing = append(missing, e.Missing)
		}
	}
	if !slices.EqualFunc(missing, [][]string{{"big"}, {"big"}}, slices.Equal) {
		t.Errorf("the log names as missing: %q", missing)
	}
}

// What cannot be applied is passed over for an older checkpoint, and nothing of it stays; without any
// that can, the session goes on at its base. The log says which it was.
func TestRebuild_PassesOverCheckpointsThatCannotBeApplied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		older bool
		files string
		want  core.SandboxRestored
	}{
		"an older one": {older: true, files: "README.md\nold", want: core.SandboxRestored{Files: 1, PassedOver: 2}},
		"none":         {files: "README.md", want: core.SandboxRestored{PassedOver: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			ws := f.acquire(t, f.claim)
			run(t, ws, "echo old > old")
			f.checkpoint(t, ws)
			run(t, ws, "head -c 3000000 /dev/urandom > new")
			f.checkpoint(t, ws)
			f.checkpoint(t, ws)
			f.Release(t.Context(), f.claim, ws)
			id := f.claim.Session.ID
			f.store.mu.Lock()
			list := f.store.checkpoint[id]
			list[1].Archive = list[1].Archive[:len(list[1].Archive)/2]
			list[2].Info.BaseSHA = strings.Repeat("b", 40)
			c.want.CheckpointID = list[0].ID
			if !c.older {
				c.want.CheckpointID, f.store.checkpoint[id] = "", list[1:]
			}
			f.store.mu.Unlock()
			box := f.store.box(t, id)
			dockertest.Docker(t, "rm", "-f", box.RuntimeRef)
			dockertest.Docker(t, "volume", "rm", box.Volume)
			f.store.types(id)

			if got := f.turn(t, f.reclaim(f.claim), "ls; git status --short"); got != c.files+strings.Repeat("\n?? old", c.want.Files) {
				t.Errorf("rebuilt: %q", got)
			}
			var restored []core.Payload
			for _, payload := range f.store.all(id) {
				if payload.EventType() == (core.SandboxRestored{}).EventType() {
					restored = append(restored, payload)
				}
			}
			if diff := cmp.Diff([]core.Payload{c.want}, restored); diff != "" {
				t.Errorf("sandbox_restored (-want +got)\n%s", diff)
			}
			if list, err := f.runtime.Volumes(t.Context()); err != nil || len(list) != 1 {
				t.Errorf("volumes %+v, %v, want only the session's", list, err)
			}
		})
	}
}
