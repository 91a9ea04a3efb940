package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"agent-sandboxing/core"
)

// Checkout makes sure of the session's base and gives it as one pack of the last commits, behind the
// pack's index. A session that was never checked out must find its branch unmoved (base_moved); again says that it was,
// perhaps by another host, and then the base is fetched wherever the branch is now. Errors are core.Errors:
// base_moved, base_missing, branch_missing, empty_repository, clone_timeout, clone_too_large, github_unavailable,
// github_forbidden, repository_rejected, disk_full, checkout_failed, and what Tokens answered. The
// reader must be closed.
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
	pack, err := m.pack(ctx, dir, &spec)
	return spec, pack, err
}

// address is the checkout's remote: never with a credential, and for a fixture nowhere at all.
func (m *Mirror) address(repo core.Repository) string {
	if repo.IsFixture() {
		return "https://fixtures.invalid/" + repo.Name + ".git"
	}
	return m.gitURL(repo)
}

// pack makes a pack of the base down to the boundary. It names the boundary itself and ignores the
// mirror's own, which a fetch may move meanwhile. The files have lost their names when it returns, so
// that nothing is left behind whoever dies.
func (m *Mirror) pack(ctx context.Context, dir string, spec *core.Checkout) (io.ReadCloser, error) {
	var revs strings.Builder
	for _, sha := range spec.Shallow {
		fmt.Fprintf(&revs, "--shallow %s\n", sha)
	}
	fmt.Fprintf(&revs, "%s\n", spec.BaseSHA)
	at, err := os.MkdirTemp(m.quarantines, "pack-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the pack: %w", err)
	}
	defer func() { _ = os.RemoveAll(at) }() // else the next start's sweep does
	name, err := m.git.line(ctx, call{
		dir: dir, config: []string{"core.fsync=none"},
		args:  []string{"--shallow-file", "", "pack-objects", "--revs", "--quiet", "--delta-base-offset", "--shallow", filepath.Join(at, "base")},
		stdin: strings.NewReader(revs.String()), timeout: fetchTimeout,
	})
	if err != nil {
		return nil, packError(err)
	}
	index, err := os.Open(filepath.Join(at, "base-"+name+".idx"))
	if err != nil {
		return nil, fmt.Errorf("open the index of a pack: %w", err)
	}
	pack, err := os.Open(filepath.Join(at, "base-"+name+".pack"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a pack: %w", err), index.Close())
	}
	info, err := index.Stat()
	if err != nil {
		return nil, errors.Join(err, index.Close(), pack.Close())
	}
	spec.IndexBytes = info.Size()
	return &indexed{Reader: io.MultiReader(index, pack), files: []io.Closer{index, pack}}, nil
}

// indexed is a pack behind its index.
type indexed struct {
	io.Reader
	files []io.Closer
}

func (p *indexed) Close() error {
	var failures []error
	for _, f := range p.files {
		failures = append(failures, f.Close())
	}
	return errors.Join(failures...)
}
