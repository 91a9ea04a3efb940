// Package memory is a workspace without a container, for evals and tests: the toolbox's own handler
// served in process over a folder. File verbs are the toolbox's; commands are a shell interpreter
// over a small table of programs written in Go, confined to the same folder.
//
// It keeps a well-meaning agent inside the folder. It is no sandbox: never give it what a stranger
// may steer.
package memory

import (
	"context"
	"errors"
	"net"
	"os"
	"path"
	"path/filepath"

	"agent-sandboxing/sandbox/toolbox"
	"agent-sandboxing/sandbox/toolbox/server"
)

// Workspace is a core.PlatformWorkspace over a folder.
type Workspace struct {
	*toolbox.Client
	layout server.Layout
	files  *server.Files
	jail   *jail
	served chan error
	stop   context.CancelFunc
}

// New serves dir until Close. It makes the folders workspace/repo, workspace/home and tmp in it, and
// keeps what they hold.
func New(dir string) (*Workspace, error) {
	layout := server.Layout{Workspace: filepath.Join(dir, "workspace"), Tmp: filepath.Join(dir, "tmp"), Virtual: true}
	for _, d := range []string{layout.Workspace, layout.Tmp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	files, err := server.OpenFiles(layout)
	if err != nil {
		return nil, err
	}
	jail, err := openJail(layout)
	if err != nil {
		return nil, errors.Join(err, files.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &Workspace{layout: layout, files: files, jail: jail, served: make(chan error, 1), stop: stop}
	ours, theirs := net.Pipe()
	go func() { w.served <- server.Serve(ctx, theirs, files, &shell{jail: jail}, nil) }()
	if w.Client, err = toolbox.Dial(ctx, ours, toolbox.Options{}); err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// Close ends what runs and waits for it. The folder stays.
func (w *Workspace) Close() error {
	return errors.Join(w.Client.Close(), w.end())
}

func (w *Workspace) end() error {
	w.stop()
	return errors.Join(<-w.served, w.files.Close(), w.jail.close())
}

// Seed writes files into the repository's folder, by path relative to it. A path that ends in a slash
// makes an empty folder.
func (w *Workspace) Seed(files map[string]string) error {
	root, err := os.OpenRoot(filepath.Join(w.layout.Workspace, "repo"))
	if err != nil {
		return err
	}
	defer root.Close()
	for name, text := range files {
		dir := path.Dir(name)
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if dir+"/" == name {
			continue
		}
		if err := root.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
