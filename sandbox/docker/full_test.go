package docker_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/sandboxtest"
)

// A full disk costs a write, and never what was there before.
func TestFullDisk_LeavesTheOldFile(t *testing.T) {
	t.Parallel()
	wide := spec()
	wide.Limits.MemoryBytes = 800 << 20 // /tmp is in memory, and shall be full before that is
	b := start(t, dockertest.New(t), wide)
	if _, err := b.Write(t.Context(), core.WriteFile{Path: "/tmp/kept", Data: []byte("old\n")}); err != nil {
		t.Fatal(err)
	}
	if _, got := b.sh(t, "head -c 600M /dev/zero > /tmp/all 2>/dev/null; df /tmp | awk 'NR==2 {print $4}'"); got != "0" {
		t.Fatalf("%s KiB are left", got)
	}
	data := make([]byte, core.MaxWrite)
	for range 2 {
		_, err := b.Write(t.Context(), core.WriteFile{Path: "/tmp/kept", Data: data})
		if core.CodeOf(err) != "disk_full" {
			t.Errorf("err = %v, want disk_full", err)
		}
	}
	if _, got := b.sh(t, "cat /tmp/kept; ls -A /tmp | tr '\\n' ' '"); got != "old\nall kept" {
		t.Errorf("/tmp holds %q", got)
	}
	// Output is not kept then, and the command does not notice.
	res, err := b.Run(t.Context(), core.Command{Shell: "yes | head -n 200000; echo end", LogName: "x.log"})
	if err != nil || res.Exit != 0 || res.Total != 400_004 {
		t.Errorf("%d bytes, exit %d, %v", res.Total, res.Exit, err)
	}
	if _, err := b.Write(t.Context(), core.WriteFile{Path: "elsewhere", Data: data}); err != nil {
		t.Errorf("elsewhere: %v", err)
	}
	b.sh(t, "rm /tmp/all")
	if _, err := b.Write(t.Context(), core.WriteFile{Path: "/tmp/kept", Data: data}); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// A full disk keeps nobody from recording the work: diff and checkpoint leave by the stream alone.
func TestDiskFull_TheWorkIsStillRecorded(t *testing.T) {
	t.Parallel()
	for what, fill := range map[string]string{
		"bytes":  "head -c 100000000 /dev/zero > filler",
		"inodes": "mkdir many; for i in $(seq 5000); do : > many/$i || exit 1; done",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			config := dockertest.Config(t)
			r, s := dockertest.Open(t, config), spec()
			s.Volume = "small-" + config.Instance
			dockertest.Docker(t, "volume", "create", "--opt", "type=tmpfs", "--opt", "device=tmpfs", "--opt", "o=size=24m,nr_inodes=3000,uid=1000,gid=1000",
				"--label", "agent-sandboxing.instance="+config.Instance, "--label", "agent-sandboxing.sandbox="+string(s.Sandbox), s.Volume)
			b := start(t, r, s)
			head, pack, index := oneCommit(t)
			checkout := core.Checkout{BaseSHA: head, Branch: "agent/x", BaseRef: "main", RemoteURL: "https://github.example/octo/demo.git", IndexBytes: index}
			if err := b.Checkout(t.Context(), checkout, bytes.NewReader(pack)); err != nil {
				t.Fatal(err)
			}
			b.sh(t, "echo work > new.txt")
			if exit, out := b.sh(t, fill); exit == 0 || !strings.Contains(out, "No space left on device") {
				t.Fatalf("the disk is not full: exit %d, %s", exit, out)
			}
			_, err := b.Write(t.Context(), core.WriteFile{Path: "another.txt", Data: make([]byte, 1<<20)})
			wantCode(t, err, "disk_full")

			var objects, archive bytes.Buffer
			snap, err := b.Snapshot(t.Context(), &objects)
			if err != nil || objects.Len() == 0 || snap.BaseSHA != head {
				t.Errorf("snapshot: %+v, %d bytes, %v", snap, objects.Len(), err)
			}
			info, err := b.Checkpoint(t.Context(), &archive, core.MaxCheckpoint)
			if err != nil || len(info.Missing) != 0 || info.Files < 2 {
				t.Errorf("checkpoint: %+v, %v", info, err)
			}
			if exit, out := b.sh(t, "rm -r filler many 2>/dev/null; cat new.txt && echo more > more.txt"); exit != 0 || out != "work" {
				t.Errorf("afterwards: exit %d, %s", exit, out)
			}
		})
	}
}

// oneCommit is a repository's only commit, as a pack behind its index.
func oneCommit(t *testing.T) (head string, pack []byte, index int64) {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=Test", "-c", "user.email=test@example.com"}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return out
	}
	git("init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "files")
	head = strings.TrimSpace(string(git("rev-parse", "HEAD")))
	pack, index = sandboxtest.Pack(t, dir, head)
	return head, pack, index
}
