package server

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// An archive's first entry lists the paths of base that are gone, each followed by NUL; the others are
// what differs from base, below archiveTree.
const (
	archiveDeleted = "deleted"
	archiveTree    = "tree/"

	// archiveWindow bounds the memory that both ends need. Bytes.
	archiveWindow = 1 << 20
	// entryOverhead and archiveEnd bound what a tar entry's head, and the end of the archive, may take.
	entryOverhead = 8 << 10
	archiveEnd    = 64 << 10
)

// checkpoint writes everything in which the work tree differs from base.
func (w worktree) checkpoint(ctx context.Context, a wire.CheckpointArgs, to io.Writer) (any, error) {
	sha, base, err := w.baseTree(ctx, wire.CheckpointFailed)
	if err != nil {
		return nil, err
	}
	usual, err := w.usualPerm()
	if err != nil {
		return nil, err
	}
	root, err := w.files.repo()
	if err != nil {
		return nil, fileError(err, "repo")
	}
	defer root.Close()
	found, err := w.scan(ctx, root, base, wire.CheckpointFailed)
	if err != nil {
		return nil, err
	}
	changed, deleted := found.against(base, usual)
	for _, dir := range found.nested {
		inner, err := nestedGit(ctx, root, path.Join(dir, ".git"))
		if err != nil {
			return nil, err
		}
		changed = append(changed, inner.leaves...)
		found.folders = append(found.folders, inner.folders...)
	}
	archive, err := newArchive(root, to, a.MaxBytes)
	if err != nil {
		return nil, err
	}
	missing, err := archive.write(ctx, deleted, found.folders, changed)
	if err != nil {
		return nil, err
	}
	return wire.CheckpointResult{
		BaseSHA: sha,
		Deleted: cutNames(deleted),
		Missing: cutNames(missing),
		Files:   len(changed) - len(missing),
	}, nil
}

// against splits what the scan found into what differs from base and what base has more.
func (s *scan) against(base *baseTree, usual fs.FileMode) (changed []leaf, deleted []string) {
	here := make(map[string]bool, len(s.leaves))
	for _, l := range s.leaves {
		here[l.path] = true
		perm := usual
		if l.mode == modeExec {
			perm = runnable(usual)
		}
		plain := l.mode == modeLink || l.mode == modeGitlink || l.perm == perm
		if base.leaves[l.path] != (baseEntry{mode: l.mode, hash: l.hash}) || !plain {
			changed = append(changed, l)
		}
	}
	for name := range base.leaves {
		if !here[name] {
			deleted = append(deleted, name)
		}
	}
	slices.Sort(deleted)
	return changed, deleted
}

// nestedGit lists all that is in the .git of a nested repository, which may be a file too.
func nestedGit(ctx context.Context, root *os.Root, dir string) (*scan, error) {
	s := &scan{}
	add := func(rel string) error {
		info, err := root.Lstat(rel)
		if err != nil {
			return wire.Fail(wire.CheckpointFailed, rel)
		}
		l := leaf{path: rel, mode: modeFile, size: info.Size(), perm: info.Mode().Perm()}
		switch info.Mode().Type() {
		case fs.ModeDir:
			s.folders = append(s.folders, folder{path: rel, perm: l.perm})
			return nil
		case fs.ModeSymlink:
			l.mode = modeLink
		case 0:
		default:
			return nil
		}
		s.leaves = append(s.leaves, l)
		return nil
	}
	if err := add(dir); err != nil || len(s.folders) == 0 {
		return s, err
	}
	walk := &walker{root: root, strict: true, visit: func(rel string, _ fs.DirEntry) error { return add(rel) }}
	if err := walk.walk(ctx, dir); err != nil {
		return nil, err
	}
	if walk.more {
		return nil, wire.Fail(wire.CheckpointFailed, "too many files")
	}
	return s, nil
}

// archive is a zstd tar that never grows over its limit.
type archive struct {
	root    *os.Root
	counted *countingWriter
	zip     *zstd.Encoder
	tar     *tar.Writer
	limit   int64
	pending int64 // bytes that went in since the last flush, so an upper bound of what is to come out
}

type countingWriter struct {
	to io.Writer
	n  int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

func newArchive(root *os.Root, to io.Writer, limit int64) (*archive, error) {
	a := &archive{root: root, counted: &countingWriter{to: to}, limit: limit}
	zip, err := newZip(a.counted)
	if err != nil {
		return nil, err
	}
	a.zip, a.tar = zip, tar.NewWriter(zip)
	return a, nil
}

func newZip(to io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(archiveWindow))
}

// write adds everything that fits, small files first, and returns the paths that did not.
func (a *archive) write(ctx context.Context, deleted []string, folders []folder, leaves []leaf) (missing []string, err error) {
	defer func() { err = errors.Join(err, a.zip.Close()) }()
	list := strings.Join(deleted, "\x00")
	if len(deleted) > 0 {
		list += "\x00"
	}
	if !a.fits(int64(len(list))) {
		return nil, wire.Fail(wire.CheckpointFailed, "the list of deleted files")
	}
	head := &tar.Header{Typeflag: tar.TypeReg, Name: archiveDeleted, Mode: 0o644, Size: int64(len(list))}
	if err := a.entry(ctx, head, strings.NewReader(list)); err != nil {
		return nil, err
	}
	for _, f := range folders {
		if !a.fits(0) {
			missing = append(missing, f.path)
			continue
		}
		head := &tar.Header{Typeflag: tar.TypeDir, Name: archiveTree + f.path + "/", Mode: int64(f.perm)}
		if err := a.entry(ctx, head, nil); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(leaves, func(x, y leaf) int { return cmp.Compare(x.size, y.size) })
	for _, l := range leaves {
		if l.mode == modeGitlink {
			continue
		}
		if l.size > maxLeaf || !a.fits(l.size) && !a.fits(a.compressed(ctx, l)) {
			missing = append(missing, l.path)
			continue
		}
		if err := a.leaf(ctx, l); err != nil {
			return nil, err
		}
	}
	slices.Sort(missing)
	return missing, a.tar.Close()
}

// fits says whether an entry of size bytes can be added under the limit even when nothing of it can
// be compressed.
func (a *archive) fits(size int64) bool {
	need := size + size>>10 + entryOverhead + archiveEnd
	if a.counted.n+a.pending+need <= a.limit {
		return true
	}
	if a.tar.Flush() != nil || a.zip.Flush() != nil {
		return false // the next write says why
	}
	a.pending = 0
	return a.counted.n+need <= a.limit
}

// compressed is about what a file that is too large as it is would take in the archive.
func (a *archive) compressed(ctx context.Context, l leaf) int64 {
	none := a.limit + 1
	content, err := openLeaf(a.root, l)
	if err != nil {
		return none
	}
	defer content.Close()
	counted := &countingWriter{to: io.Discard}
	zip, err := newZip(counted)
	if err != nil {
		return none
	}
	if _, err := copyContext(ctx, zip, content); err != nil {
		return none
	}
	if zip.Close() != nil {
		return none
	}
	return counted.n + counted.n/32
}

func (a *archive) leaf(ctx context.Context, l leaf) error {
	content, err := openLeaf(a.root, l)
	if err != nil {
		return wire.Fail(wire.CheckpointFailed, l.path)
	}
	defer content.Close()
	head := &tar.Header{Typeflag: tar.TypeReg, Name: archiveTree + l.path, Mode: int64(l.perm), Size: l.size}
	if l.mode == modeLink {
		target, err := io.ReadAll(content)
		if err != nil {
			return wire.Fail(wire.CheckpointFailed, l.path)
		}
		head.Typeflag, head.Linkname, head.Size = tar.TypeSymlink, string(target), 0
		return a.entry(ctx, head, nil)
	}
	if err := a.entry(ctx, head, content); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return wire.Fail(wire.CheckpointFailed, l.path)
	}
	return nil
}

func (a *archive) entry(ctx context.Context, head *tar.Header, content io.Reader) error {
	head.Format = tar.FormatPAX
	if err := a.tar.WriteHeader(head); err != nil {
		return err
	}
	a.pending += head.Size + head.Size>>10 + entryOverhead // more than it can become
	if content == nil {
		return nil
	}
	n, err := copyContext(ctx, a.tar, io.LimitReader(content, head.Size))
	if err == nil && n != head.Size {
		err = errChanged
	}
	return err
}
