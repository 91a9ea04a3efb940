package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"agent-sandboxing/core"
)

// repository is one commit of text files, as the mirror has it after a fetch. It is the sandbox
// service's Source.
type repository struct {
	dir     string
	head    string
	archive []byte // the same files as a tar
	index   []byte // of pack
	pack    []byte
}

// newRepository writes files of about 4 KB each below dir.
func newRepository(ctx context.Context, dir string, files int) (*repository, error) {
	s := &repository{dir: dir}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same files each time
	words := strings.Fields("func return if err nil string int package import type struct interface context range map for switch case default make")
	for i := range files {
		path := filepath.Join(dir, fmt.Sprintf("src/pkg%d/file%d.go", i%40, i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		var text strings.Builder
		for text.Len() < 4000 {
			fmt.Fprintf(&text, "%s%d %s%d\n", words[random.IntN(len(words))], random.IntN(1000), words[random.IntN(len(words))], random.IntN(1000))
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil { //nolint:gosec // a work tree
			return nil, err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "."},
		{"-c", "user.name=Bench", "-c", "user.email=bench@example.com", "commit", "-q", "-m", "files"},
		{"repack", "-a", "-d", "-q"},
	} {
		if _, err := s.git(ctx, args...); err != nil {
			return nil, err
		}
	}
	head, err := s.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	s.head = strings.TrimSpace(string(head))
	if s.archive, err = s.git(ctx, "archive", "HEAD"); err != nil {
		return nil, err
	}
	s.index, s.pack, err = s.packed(ctx)
	return s, err
}

func (s *repository) git(ctx context.Context, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", s.dir}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %v: %w\n%s", args, err, stderr.Bytes())
	}
	return out, err
}

// Checkout gives the commit as one pack behind its index.
func (s *repository) Checkout(_ context.Context, session core.ChatSession, _ bool) (core.Checkout, io.ReadCloser, error) {
	spec := core.Checkout{
		BaseSHA: s.head, Branch: core.BranchFor(session.ID), BaseRef: "main", RemoteURL: "https://github.example/octo/bench.git", IndexBytes: int64(len(s.index)),
	}
	return spec, io.NopCloser(io.MultiReader(bytes.NewReader(s.index), bytes.NewReader(s.pack))), nil
}

// packed packs the commit once, as the mirror does for the sessions of one base.
func (s *repository) packed(ctx context.Context) (index, pack []byte, err error) {
	dir, err := os.MkdirTemp("", "bench-pack-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	base := filepath.Join(dir, "base")
	cmd := exec.CommandContext(ctx, "git", "-C", s.dir, "pack-objects", "--revs", "--quiet", "--delta-base-offset", base)
	cmd.Stdin = strings.NewReader(s.head + "\n")
	name, err := cmd.Output()
	if err != nil {
		return nil, nil, err
	}
	base += "-" + strings.TrimSpace(string(name))
	index, err1 := os.ReadFile(base + ".idx")
	pack, err2 := os.ReadFile(base + ".pack")
	return index, pack, errors.Join(err1, err2)
}
