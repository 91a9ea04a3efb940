package toolbox_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// packed is a repository of one file, ready for a checkout.
type packed struct {
	spec core.Checkout
	data []byte
}

func (p *packed) pack() io.Reader { return bytes.NewReader(p.data) }

func newPack(t testing.TB, size int) *packed {
	t.Helper()
	dir := t.TempDir()
	git := func(stdin string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
			"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return out
	}
	git("", "init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(dir, "file"), bytes.Repeat([]byte("0123456\n"), size/8), 0o644); err != nil {
		t.Fatal(err)
	}
	git("", "add", "-A")
	git("", "commit", "-qm", "one")
	base := strings.TrimSpace(string(git("", "rev-parse", "HEAD")))
	return &packed{
		spec: core.Checkout{BaseSHA: base, Branch: "agent/x", BaseRef: "main", RemoteURL: "https://example.com/o/r"},
		data: git(base+"\n", "pack-objects", "--revs", "--stdout", "-q"),
	}
}
