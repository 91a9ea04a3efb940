package memory

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/interp"

	"agent-sandboxing/sandbox/toolbox/server"
)

// jail maps the paths that commands use onto roots. Nothing else exists, the platform's own folder
// in the workspace included.
type jail struct {
	roots map[string]*os.Root // by the folder that commands see
}

func openJail(layout server.Layout) (*jail, error) {
	j := &jail{roots: map[string]*os.Root{}}
	for name, dir := range map[string]string{
		"/workspace/repo": filepath.Join(layout.Workspace, "repo"),
		"/workspace/home": filepath.Join(layout.Workspace, "home"),
		"/tmp":            layout.Tmp,
	} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, errors.Join(err, j.close())
		}
		j.roots[name] = root
	}
	return j, nil
}

func (j *jail) close() error {
	var errs []error
	for _, root := range j.roots {
		errs = append(errs, root.Close())
	}
	return errors.Join(errs...)
}

// at finds the root of a path; relative ones are below dir.
func (j *jail) at(dir, name string) (*os.Root, string, error) {
	full := name
	if !path.IsAbs(full) {
		full = path.Join(dir, full)
	}
	full = path.Clean(full)
	for prefix, root := range j.roots {
		if full == prefix {
			return root, ".", nil
		}
		if rest, ok := strings.CutPrefix(full, prefix+"/"); ok {
			return root, rest, nil
		}
	}
	return nil, "", &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
}

func (j *jail) openFile(dir, name string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	if name == os.DevNull {
		return nothing{}, nil
	}
	root, rel, err := j.at(dir, name)
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(rel, flag, perm)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return f, nil
}

func (j *jail) stat(dir, name string, follow bool) (fs.FileInfo, error) {
	root, rel, err := j.at(dir, name)
	if err != nil {
		return nil, err
	}
	if follow {
		return root.Stat(rel)
	}
	return root.Lstat(rel)
}

func (j *jail) readDir(dir, name string) ([]fs.DirEntry, error) {
	root, rel, err := j.at(dir, name)
	if err != nil {
		return nil, err
	}
	return fs.ReadDir(root.FS(), rel)
}

// options confine an interpreter.
func (j *jail) options() []interp.RunnerOption {
	return []interp.RunnerOption{
		interp.OpenHandler(func(ctx context.Context, name string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
			return j.openFile(interp.HandlerCtx(ctx).Dir, name, flag, perm)
		}),
		interp.StatHandler(func(ctx context.Context, name string, follow bool) (fs.FileInfo, error) {
			return j.stat(interp.HandlerCtx(ctx).Dir, name, follow)
		}),
		interp.ReadDirHandler2(func(ctx context.Context, name string) ([]fs.DirEntry, error) {
			return j.readDir(interp.HandlerCtx(ctx).Dir, name)
		}),
		interp.AccessHandler(func(ctx context.Context, name string, _ interp.AccessMode) error {
			_, err := j.stat(interp.HandlerCtx(ctx).Dir, name, true)
			return err
		}),
	}
}

// nothing is /dev/null.
type nothing struct{}

func (nothing) Read([]byte) (int, error)    { return 0, io.EOF }
func (nothing) Write(p []byte) (int, error) { return len(p), nil }
func (nothing) Close() error                { return nil }
