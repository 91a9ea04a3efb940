package server

import (
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

// base reads which commit the checkout was made of. Rights that a command took from the platform's folder
// are given back, as those of the repository's.
func (w worktree) base() (string, error) {
	if info, err := w.files.workspace.Lstat(platformDir); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		_ = w.files.workspace.Chmod(platformDir, 0o700) // without them the base is not found
	}
	sha := strings.TrimSpace(readRegular(w.files.workspace, baseFile))
	if !isSHA1(sha) {
		return "", wire.Fail(wire.CheckoutMissing, "")
	}
	return sha, nil
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
