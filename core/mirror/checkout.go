package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	var pack io.ReadCloser
	err := m.withBase(ctx, s, !again, func(dir, base string) (err error) {
		spec.BaseSHA = base
		if spec.Shallow, err = m.boundary(ctx, dir, base); err != nil {
			return err
		}
		pack, err = m.pack(ctx, dir, &spec)
		return err
	})
	return spec, pack, err
}

// address is the checkout's remote: never with a credential, and for a fixture nowhere at all.
func (m *Mirror) address(repo core.Repository) string {
	if repo.IsFixture() {
		return "https://fixtures.invalid/" + repo.Name + ".git"
	}
	return m.gitURL(repo)
}

// pack opens the pack of the base down to the boundary. The mirror keeps the last one that it made,
// because sessions often begin from the same commit. The boundary is the session's, not the mirror's
// own. The caller holds the lock.
func (m *Mirror) pack(ctx context.Context, dir string, spec *core.Checkout) (io.ReadCloser, error) {
	var revs strings.Builder
	for _, sha := range spec.Shallow {
		fmt.Fprintf(&revs, "--shallow %s\n", sha)
	}
	fmt.Fprintf(&revs, "%s\n", spec.BaseSHA)
	digest := sha256.Sum256([]byte(revs.String()))
	name, kept := hex.EncodeToString(digest[:]), filepath.Join(dir, "checkout")
	pack, err := openPack(filepath.Join(kept, name), spec)
	if !errors.Is(err, fs.ErrNotExist) {
		return pack, err
	}
	fresh := kept + ".new" // a dead process may have left one
	if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o700)); err != nil {
		return nil, fmt.Errorf("make a folder for the pack: %w", err)
	}
	made, err := m.git.line(ctx, call{
		dir:   dir,
		args:  []string{"--shallow-file", "", "pack-objects", "--revs", "--quiet", "--delta-base-offset", "--shallow", filepath.Join(fresh, "base")},
		stdin: strings.NewReader(revs.String()), timeout: fetchTimeout,
	})
	if err != nil {
		_ = os.RemoveAll(fresh) // else the next one does
		return nil, packError(err)
	}
	for _, suffix := range []string{".pack", ".idx"} {
		if err := os.Rename(filepath.Join(fresh, "base-"+made+suffix), filepath.Join(fresh, name+suffix)); err != nil {
			return nil, fmt.Errorf("name the pack: %w", err)
		}
	}
	if err := errors.Join(os.RemoveAll(kept), os.Rename(fresh, kept)); err != nil { // who reads the old one goes on
		return nil, fmt.Errorf("keep the pack: %w", err)
	}
	return openPack(filepath.Join(kept, name), spec)
}

// openPack opens a pack behind its index.
func openPack(name string, spec *core.Checkout) (io.ReadCloser, error) {
	index, err := os.Open(name + ".idx")
	if err != nil {
		return nil, fmt.Errorf("open the index of a pack: %w", err)
	}
	pack, err := os.Open(name + ".pack")
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
