package docker_test

import (
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
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
