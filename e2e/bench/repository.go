package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"agent-sandboxing/core"
)

// repository is one commit of text files, as the mirror has it after a fetch. It is the sandbox
// service's Source: each checkout is packed anew, as the mirror does it.
type repository struct {
	dir     string
	head    string
	archive []byte // the same files as a tar

	mu   sync.Mutex
	read map[core.SessionID]time.Time // when a session's sandbox began to unpack
}

// newRepository writes files of about 4 KB each below dir.
func newRepository(ctx context.Context, dir string, files int) (*repository, error) {
	s := &repository{dir: dir, read: map[core.SessionID]time.Time{}}
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
	s.archive, err = s.git(ctx, "archive", "HEAD")
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

// Checkout streams the commit as one pack.
func (s *repository) Checkout(ctx context.Context, session core.ChatSession, _ bool) (core.Checkout, io.ReadCloser, error) {
	cmd := exec.CommandContext(ctx, "git", "-C", s.dir, "pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset")
	cmd.Stdin = strings.NewReader(s.head + "\n")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	return s.spec(session), &packing{Reader: out, cmd: cmd, began: func() { s.began(session.ID) }}, err
}

func (s *repository) spec(session core.ChatSession) core.Checkout {
	return core.Checkout{BaseSHA: s.head, Branch: core.BranchFor(session.ID), BaseRef: "main", RemoteURL: "https://github.example/octo/bench.git"}
}

func (s *repository) began(id core.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[id] = time.Now()
}

// unpacks is when a session's sandbox began to unpack: it stood ready until then.
func (s *repository) unpacks(id core.SessionID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read[id]
}

// packing is a pack that git writes.
type packing struct {
	io.Reader
	cmd   *exec.Cmd
	once  sync.Once
	began func()
}

func (p *packing) Read(b []byte) (int, error) {
	p.once.Do(p.began)
	return p.Reader.Read(b)
}

func (p *packing) Close() error {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed, or has ended
	return nil
}

// smallRepository is one commit of one file, as a pack in memory.
func smallRepository(ctx context.Context) (core.Checkout, string, error) {
	dir, err := os.MkdirTemp("", "bench-repository-")
	if err != nil {
		return core.Checkout{}, "", err
	}
	defer os.RemoveAll(dir)
	s, err := newRepository(ctx, dir, 1)
	if err != nil {
		return core.Checkout{}, "", err
	}
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "pack-objects", "--revs", "--stdout", "--quiet")
	cmd.Stdin = strings.NewReader(s.head + "\n")
	pack, err := cmd.Output()
	return s.spec(core.ChatSession{ID: core.NewID[core.SessionID]()}), string(pack), err
}
