package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"agent-sandboxing/core"
)

// Checkout makes sure of the session's base and streams it as one pack of the last commits. A
// session that was never checked out must find its branch unmoved (base_moved); again says that it was,
// perhaps by another host, and then the base is fetched wherever the branch is now. Errors are core.Errors:
// base_moved, base_missing, branch_missing, empty_repository, clone_timeout, clone_too_large, github_unavailable,
// github_forbidden, repository_rejected, disk_full, and what Tokens answered. The reader fails
// rather than end early; it must be closed.
func (m *Mirror) Checkout(ctx context.Context, s core.ChatSession, again bool) (core.Checkout, io.ReadCloser, error) {
	spec := core.Checkout{Branch: core.BranchFor(s.ID), BaseRef: s.BaseBranch, RemoteURL: m.address(s.Repository)}
	var dir string
	err := m.withBase(ctx, s, !again, func(at, base string) (err error) {
		dir, spec.BaseSHA = at, base
		spec.Shallow, err = m.boundary(ctx, at, base)
		return err
	})
	if err != nil {
		return core.Checkout{}, nil, err
	}
	pack, err := m.pack(ctx, dir, spec)
	return spec, pack, err
}

// address is the checkout's remote: never with a credential, and for a fixture nowhere at all.
func (m *Mirror) address(repo core.Repository) string {
	if repo.IsFixture() {
		return "https://fixtures.invalid/" + repo.Name + ".git"
	}
	return m.gitURL(repo)
}

// pack streams the base down to the boundary. It names the boundary itself and ignores the
// mirror's own, which a fetch may move meanwhile.
func (m *Mirror) pack(ctx context.Context, dir string, spec core.Checkout) (io.ReadCloser, error) {
	var revs strings.Builder
	for _, sha := range spec.Shallow {
		fmt.Fprintf(&revs, "--shallow %s\n", sha)
	}
	fmt.Fprintf(&revs, "%s\n", spec.BaseSHA)
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pack pipe: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	started, err := m.git.start(ctx, call{
		dir:   dir,
		args:  []string{"--shallow-file", "", "pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset", "--shallow"},
		stdin: strings.NewReader(revs.String()), stdout: write, timeout: fetchTimeout,
	})
	_ = write.Close() // the child has its own
	if err != nil {
		cancel()
		return nil, errors.Join(err, read.Close())
	}
	return &packStream{pipe: read, child: started, cancel: cancel}, nil
}

// packStream ends with io.EOF only when git has ended well.
type packStream struct {
	pipe   *os.File
	child  *child
	cancel context.CancelFunc
	once   sync.Once
	err    error
}

func (p *packStream) Read(b []byte) (int, error) {
	n, err := p.pipe.Read(b)
	if errors.Is(err, io.EOF) {
		if ended := p.wait(); ended != nil {
			return n, core.Fail(core.Internal, "checkout_failed",
				"The repository could not be read from the server's mirror. Try again.").Because(ended)
		}
	}
	return n, err
}

// Close ends the producer when it has not ended by itself. It never fails.
func (p *packStream) Close() error {
	p.cancel()
	_ = p.pipe.Close()
	_ = p.wait()
	return nil
}

func (p *packStream) wait() error {
	p.once.Do(func() { p.err = p.child.wait() })
	return p.err
}
