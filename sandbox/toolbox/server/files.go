package server

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// The names by which clients call the two roots, whatever they are called on this machine.
const (
	repoName = "/workspace/repo"
	tmpName  = "/tmp"

	maxLinks = 40 // as the kernel
	// lookFor bounds the time of one find or search; what was found by then is the answer.
	lookFor = 20 * time.Second
	maxPath = 4096
	maxName = 255
)

// Layout says where the workspace lies on this machine. Workspace holds repo, home and the
// platform's own folder, made when absent; neither Workspace nor Tmp may be replaceable by the
// sandbox's programs (they are mount points there).
type Layout struct {
	Workspace string
	Tmp       string
	// Virtual says that commands know the folders as /workspace and /tmp, because they see no others.
	Virtual bool
	// Env is added to the environment of commands.
	Env []string
}

// seen are the folders as commands know them.
func (l Layout) seen() (workspace, tmp string) {
	if l.Virtual {
		return path.Dir(repoName), tmpName
	}
	return l.Workspace, l.Tmp
}

// Files answers for the files below the repository and /tmp, and for nothing else.
type Files struct {
	layout    Layout
	workspace *os.Root
	tmp       *os.Root
	lookFor   time.Duration
	hashes    hashes // of the repository
}

// OpenFiles opens the roots, for the one that serves this workspace.
func OpenFiles(layout Layout) (*Files, error) {
	workspace, err := os.OpenRoot(layout.Workspace)
	if err != nil {
		return nil, err
	}
	f := &Files{layout: layout, workspace: workspace, lookFor: lookFor}
	for _, name := range []string{"repo", "home"} {
		if err := workspace.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			_ = workspace.Close()
			return nil, err
		}
	}
	_ = workspace.RemoveAll(draftsDir) // of a toolbox that was killed
	if f.tmp, err = os.OpenRoot(layout.Tmp); err != nil {
		_ = workspace.Close()
		return nil, err
	}
	return f, nil
}

// Close releases the roots.
func (f *Files) Close() error {
	return errors.Join(f.workspace.Close(), f.tmp.Close())
}

// place is a path that a request named, resolved: below its root and free of links, except that the
// last name may be a link when it was not to be followed.
type place struct {
	root   *os.Root
	prefix string // the root's name for clients, "" for the repository
	rel    string // "." for the root itself
	info   fs.FileInfo
}

// name is the path as clients know it.
func (p place) name() string {
	if p.prefix == "" {
		return p.rel
	}
	return path.Join(p.prefix, p.rel)
}

func (p place) close() { _ = p.root.Close() }

// find resolves name; info is nil when nothing is there. The result has to be closed.
func (f *Files) find(name wire.Name, follow bool) (place, error) {
	p, rest, err := f.locate(string(name))
	if err != nil {
		return place{}, err
	}
	p.rel, p.info, err = resolve(p.root, rest, follow)
	if err != nil {
		p.close()
		return place{}, err
	}
	return p, nil
}

// existing is find for a path that must be there.
func (f *Files) existing(name wire.Name, follow bool) (place, error) {
	p, err := f.find(name, follow)
	if err == nil && p.info == nil {
		p.close()
		err = wire.Fail(wire.NotFound, string(name))
	}
	return p, err
}

// locate picks the root by the text of name alone.
func (f *Files) locate(name string) (p place, rest string, err error) {
	if strings.ContainsRune(name, 0) || len(name) > maxPath {
		return p, "", wire.Fail(wire.BadPath, "")
	}
	switch {
	case name == "":
		rest = "."
	case !path.IsAbs(name):
		rest = name
	case within(path.Clean(name), repoName):
		rest = below(name, repoName)
	case within(path.Clean(name), tmpName):
		p.prefix, rest = tmpName, below(name, tmpName)
	default:
		return p, "", wire.Fail(wire.OutsideWorkspace, path.Clean(name))
	}
	if p.prefix == tmpName {
		p.root, err = f.tmp.OpenRoot(".")
	} else {
		p.root, err = f.repo()
	}
	if err != nil {
		return place{}, "", fileError(err, name)
	}
	return p, rest, nil
}

func within(name, root string) bool {
	return name == root || strings.HasPrefix(name, root+"/")
}

// below returns what follows root in an absolute name. It works on the cleaned text: no link can
// stand before the root's end.
func below(name, root string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(path.Clean(name), root), "/")
	if rest == "" {
		return "."
	}
	return rest
}

// repo opens the repository's folder anew, because a command may have replaced it. It must be a real
// folder: a link would move the boundary. Rights that a command took from its owner are given back: without
// them nothing runs or is read there any more, not even what would give them back.
func (f *Files) repo() (*os.Root, error) {
	before, err := f.workspace.Lstat("repo")
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, wire.Fail(wire.OutsideWorkspace, repoName)
	}
	if rights := before.Mode().Perm(); rights&0o700 != 0o700 {
		if err := f.workspace.Chmod("repo", rights|0o700); err != nil {
			return nil, err
		}
	}
	root, err := f.workspace.OpenRoot("repo")
	if err != nil {
		return nil, err
	}
	after, err := root.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = wire.Fail(wire.OutsideWorkspace, repoName)
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

// resolve walks rel name by name and follows links as the kernel does, but below root only. What is
// not there stays as it was written, info is nil then. The walk decides what is said and where a write
// goes; that nothing outside is touched when a name is swapped meanwhile is root's promise.
func resolve(root *os.Root, rel string, follow bool) (at string, info fs.FileInfo, err error) {
	at = "." // resolved so far, no links in it
	if info, err = root.Lstat(at); err != nil {
		return "", nil, fileError(err, rel)
	}
	leaving := rel // what to name when the path leaves: the last link's target
	links := 0
	for todo := strings.Split(rel, "/"); len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if len(name) > maxName {
			return "", nil, wire.Fail(wire.BadPath, "")
		}
		if info != nil && !info.IsDir() {
			return "", nil, wire.Fail(wire.NotADirectory, at)
		}
		switch name {
		case "", ".":
			continue
		case "..":
			if info == nil {
				return "", nil, wire.Fail(wire.NotFound, at)
			}
			if at == "." {
				return "", nil, wire.Fail(wire.OutsideWorkspace, leaving)
			}
			at = path.Dir(at)
		default:
			next := path.Join(at, name)
			if info == nil {
				at = next
				continue
			}
			found, err := root.Lstat(next)
			if errors.Is(err, fs.ErrNotExist) {
				at, info = next, nil
				continue
			}
			if err != nil {
				return "", nil, fileError(err, next)
			}
			if found.Mode().Type() != fs.ModeSymlink || len(todo) == 0 && !follow {
				at, info = next, found
				continue
			}
			if leaving, err = root.Readlink(next); err != nil {
				return "", nil, fileError(err, next)
			}
			if links++; links > maxLinks || path.IsAbs(leaving) {
				return "", nil, wire.Fail(wire.OutsideWorkspace, leaving)
			}
			todo = append(strings.Split(leaving, "/"), todo...)
		}
		if info, err = root.Lstat(at); err != nil {
			return "", nil, fileError(err, at)
		}
	}
	return at, info, nil
}

// fileError words an operating system error about name.
func fileError(err error, name string) error {
	var known *wire.Error
	if errors.As(err, &known) {
		return err
	}
	for _, m := range []struct {
		is   error
		code wire.Code
	}{
		{fs.ErrNotExist, wire.NotFound},
		{fs.ErrExist, wire.AlreadyExists},
		{fs.ErrPermission, wire.PermissionDenied},
		{syscall.EROFS, wire.PermissionDenied},
		{syscall.ENOSPC, wire.DiskFull},
		{syscall.EDQUOT, wire.DiskFull},
		{syscall.EFBIG, wire.DiskFull},
		{syscall.EISDIR, wire.IsDirectory},
		{syscall.ENOTDIR, wire.NotADirectory},
		{syscall.ENXIO, wire.NotRegular},
		{syscall.ENAMETOOLONG, wire.BadPath},
		{syscall.ELOOP, wire.OutsideWorkspace},
	} {
		if errors.Is(err, m.is) {
			return wire.Fail(m.code, name)
		}
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return wire.Fail(wire.Failed, name)
	}
	// What os.Root refuses has no exported error: a name was swapped for a link during the request.
	return wire.Fail(wire.OutsideWorkspace, name)
}
