package server

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxDeletedList bounds the list of deleted paths in an archive. Bytes.
const maxDeletedList = 64 << 20

// restore applies an archive of checkpoint on a fresh checkout of its base. It writes through no
// link: what stands in the way of a path is removed.
func (w worktree) restore(ctx context.Context, a wire.RestoreArgs, body io.Reader) error {
	sha, err := w.base()
	if err != nil {
		return err
	}
	if sha != a.BaseSHA {
		return wire.Fail(wire.RestoreFailed, "another base")
	}
	root, err := w.files.repo()
	if err != nil {
		return fileError(err, "repo")
	}
	defer root.Close()
	usual, err := w.usualPerm()
	if err != nil {
		return err
	}
	zip, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(2*archiveWindow))
	if err != nil {
		return wire.Fail(wire.RestoreFailed, "archive")
	}
	defer zip.Close()
	r := &restorer{root: root, folderPerm: runnable(usual)}
	entries := tar.NewReader(zip)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		head, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return wire.Fail(wire.RestoreFailed, "archive")
		}
		if err := r.entry(ctx, head, entries); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errorCode(err) == wire.DiskFull {
				return wire.Fail(wire.DiskFull, head.Name)
			}
			return wire.Fail(wire.RestoreFailed, head.Name)
		}
	}
	if err := r.finish(); err != nil {
		return wire.Fail(wire.RestoreFailed, "folders")
	}
	_, err = copyContext(ctx, io.Discard, body) // the client sends to its end
	return err
}

type restorer struct {
	root       *os.Root
	folderPerm fs.FileMode
	folders    []folder // whose modes are set when everything is in them
}

var errArchive = errors.New("the archive holds what no checkpoint has")

func (r *restorer) entry(ctx context.Context, head *tar.Header, content io.Reader) error {
	if head.Name == archiveDeleted {
		list, err := io.ReadAll(io.LimitReader(content, maxDeletedList))
		if err != nil {
			return err
		}
		return r.remove(strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00"))
	}
	name, ok := strings.CutPrefix(strings.TrimSuffix(head.Name, "/"), archiveTree)
	if !ok || !isTreePath(name) {
		return errArchive
	}
	perm := fs.FileMode(head.Mode).Perm()
	if err := r.parents(name); err != nil {
		return err
	}
	switch head.Typeflag {
	case tar.TypeDir:
		r.folders = append(r.folders, folder{path: name, perm: perm})
		return r.mkdir(name)
	case tar.TypeSymlink:
		if err := r.clear(name); err != nil {
			return err
		}
		return r.root.Symlink(head.Linkname, name)
	case tar.TypeReg:
		return r.file(ctx, name, perm, content)
	default:
		return errArchive
	}
}

// isTreePath accepts a clean path below the repository that is not the repository's own .git.
func isTreePath(name string) bool {
	return name != "" && name != "." && path.Clean(name) == name && !path.IsAbs(name) &&
		name != ".." && !strings.HasPrefix(name, "../") && name != ".git" && !strings.HasPrefix(name, ".git/") &&
		!strings.ContainsRune(name, 0)
}

// remove deletes base's paths that are gone, and the folders that are empty then.
func (r *restorer) remove(names []string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		if !isTreePath(name) {
			return errArchive
		}
		if err := r.root.RemoveAll(name); err != nil {
			return err
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if r.root.Remove(dir) != nil {
				break // something is left in it
			}
		}
	}
	return nil
}

// parents makes every folder above name a real one.
func (r *restorer) parents(name string) error {
	dir := path.Dir(name)
	if dir == "." {
		return nil
	}
	if err := r.parents(dir); err != nil {
		return err
	}
	return r.mkdir(dir)
}

func (r *restorer) mkdir(name string) error {
	info, err := r.root.Lstat(name)
	if err == nil && info.IsDir() {
		return nil
	}
	if err := r.clear(name); err != nil {
		return err
	}
	return r.root.Mkdir(name, r.folderPerm)
}

// clear removes what stands at name.
func (r *restorer) clear(name string) error {
	if _, err := r.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return r.root.RemoveAll(name)
}

func (r *restorer) file(ctx context.Context, name string, perm fs.FileMode, content io.Reader) error {
	if err := r.clear(name); err != nil {
		return err
	}
	file, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = copyContext(ctx, file, content)
	return errors.Join(err, file.Chmod(perm), file.Close())
}

// finish sets the folders' modes, the deepest first: a folder may forbid to reach into it.
func (r *restorer) finish() error {
	slices.SortFunc(r.folders, func(a, b folder) int { return strings.Compare(b.path, a.path) })
	for _, f := range r.folders {
		// By an open folder: changing a name's mode without following links needs fchmodat2 (Linux 6.6, not in
		// gVisor) or our own descriptors in /proc, which are closed to us because we are not dumpable.
		dir, err := r.root.OpenFile(f.path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(dir.Chmod(f.perm), dir.Close()); err != nil {
			return err
		}
	}
	return nil
}
