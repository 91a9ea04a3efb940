package toolbox_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/sandboxtest"
)

// packed is a repository of one commit, ready for a checkout.
type packed struct {
	spec core.Checkout
	data []byte
}

func (p *packed) pack() io.Reader { return bytes.NewReader(p.data) }

func newPack(t testing.TB, size int) *packed {
	t.Helper()
	return packOf(t, map[string][]byte{"file": bytes.Repeat([]byte("0123456\n"), size/8)})
}

// newTree has many files of a few KiB in forty folders.
func newTree(t testing.TB, n int) *packed {
	t.Helper()
	files := map[string][]byte{}
	for i := range n {
		files[fmt.Sprintf("dir%d/file%d", i%40, i)] = bytes.Repeat(fmt.Appendf(nil, "line of file %d\n", i), 400)
	}
	return packOf(t, files)
}

func packOf(t testing.TB, files map[string][]byte) *packed {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
			"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return out
	}
	git("init", "-q", "-b", "main")
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("add", "-A")
	git("commit", "-qm", "one")
	base := strings.TrimSpace(string(git("rev-parse", "HEAD")))
	data, index := sandboxtest.Pack(t, dir, base)
	return &packed{
		spec: core.Checkout{BaseSHA: base, Branch: "agent/x", BaseRef: "main", RemoteURL: "https://example.com/o/r", IndexBytes: index},
		data: data,
	}
}
