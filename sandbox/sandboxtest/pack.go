package sandboxtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Pack packs a commit of the repository in dir, with all that it needs, as a checkout takes it: index is
// how many bytes of data come before the pack.
func Pack(t testing.TB, dir, commit string) (data []byte, index int64) {
	t.Helper()
	return packed(t, dir, commit+"\n", "--revs")
}

// packed packs what stdin lists.
func packed(t testing.TB, dir, stdin string, args ...string) (data []byte, index int64) {
	t.Helper()
	base := filepath.Join(t.TempDir(), "base")
	cmd := exec.CommandContext(t.Context(), "git", append(append([]string{"-C", dir, "pack-objects", "-q"}, args...), base)...)
	cmd.Stdin = bytes.NewReader([]byte(stdin))
	name, err := cmd.Output()
	if err != nil {
		t.Fatalf("git pack-objects: %v", err)
	}
	base += "-" + string(bytes.TrimSpace(name))
	data, err = os.ReadFile(base + ".idx")
	if err != nil {
		t.Fatal(err)
	}
	pack, err := os.ReadFile(base + ".pack")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, pack...), int64(len(data))
}
