package server

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"strings"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// The platform's own folder in the workspace. baseGit holds the base's objects apart from the
// repository's .git, which the agent may break; baseFile names the base, and is written last.
const (
	platformDir = ".platform"
	baseGit     = platformDir + "/base.git"
	baseFile    = platformDir + "/base"
	startedFile = platformDir + "/started"
	draftsDir   = platformDir + "/drafts" // files that are being written
)

// worktree is the repository as the platform handles it. Git runs only to unpack objects, to list
// trees and to write the first checkout; what the work tree holds is read, hashed and packed here, so
// that no attribute, filter, hook or configuration of the repository has a say.
type worktree struct {
	files    *Files
	commands Commands
}

// git runs one git command in a git directory of the workspace and returns what it prints. Its
// failure is named by step.
func (w worktree) git(ctx context.Context, step string, run gitCall) error {
	env := []string{
		"HOME=/nonexistent",
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL=none",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_DIR=" + path.Join(w.files.layout.Workspace, run.dir),
	}
	argv := []string{
		"git", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false",
		"-c", "core.symlinks=true", "-c", "core.fileMode=true", "-c", "gc.auto=0",
	}
	exit, err := w.commands.Program(ctx, Program{
		Argv:   append(argv, run.args...),
		Dir:    path.Join(w.files.layout.Workspace, run.cwd),
		Env:    append(env, run.env...),
		Stdin:  run.stdin,
		Stdout: run.stdout,
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case exit.Code != 0:
		return wire.Fail(wire.Failed, step)
	}
	return nil
}

// gitCall is what one git command needs; folders are below the workspace.
type gitCall struct {
	dir    string // git directory
	cwd    string
	args   []string
	env    []string
	stdin  io.ReadCloser
	stdout io.Writer
}

// base reads which commit the checkout was made of.
func (w worktree) base() (string, error) {
	text, err := w.files.workspace.ReadFile(baseFile)
	sha := strings.TrimSpace(string(text))
	if err != nil || !isSHA1(sha) {
		return "", wire.Fail(wire.CheckoutMissing, "")
	}
	return sha, nil
}

// baseEntry is a leaf of the base's tree.
type baseEntry struct {
	mode string
	hash string
}

// baseTree is a commit's tree: its leaves by path, the folders above them, every object in it.
type baseTree struct {
	leaves  map[string]baseEntry
	folders map[string]bool
	objects map[string]bool
}

// tree lists a commit's tree from the base's objects and those of the repository.
func (w worktree) tree(ctx context.Context, commit string) (*baseTree, error) {
	var out bytes.Buffer
	err := w.git(ctx, "ls-tree", gitCall{
		dir:    baseGit,
		args:   []string{"ls-tree", "-r", "-t", "-z", "--full-tree", commit},
		env:    []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + path.Join(w.files.layout.Workspace, "repo/.git/objects")},
		stdout: &out,
	})
	if err != nil {
		return nil, err
	}
	t := &baseTree{leaves: map[string]baseEntry{}, folders: map[string]bool{}, objects: map[string]bool{}}
	for line := range strings.SplitSeq(out.String(), "\x00") {
		if line == "" {
			continue
		}
		head, name, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head) // mode, type, hash
		if !ok || len(fields) != 3 || !isSHA1(fields[2]) {
			return nil, wire.Fail(wire.Failed, "ls-tree")
		}
		t.objects[fields[2]] = true
		if fields[1] == "tree" {
			t.folders[name] = true
			continue
		}
		t.leaves[name] = baseEntry{mode: fields[0], hash: fields[2]}
	}
	return t, nil
}

// has says whether the base holds a path, as a folder or as a leaf.
func (t *baseTree) has(name string, folder bool) bool {
	_, leaf := t.leaves[name]
	return leaf || folder && t.folders[name]
}

// put writes a small file of the platform's, in one step.
func (w worktree) put(name, text string) error {
	root := w.files.workspace
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	temp := name + ".new"
	_ = root.RemoveAll(temp)
	if err := root.WriteFile(temp, []byte(text), 0o666); err != nil {
		return err
	}
	return root.Rename(temp, name)
}

func isSHA1(text string) bool {
	return len(text) == 40 && strings.Trim(text, "0123456789abcdef") == ""
}
