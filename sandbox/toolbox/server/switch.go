package server

import (
	"context"
	"errors"
	"os"
	"path"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// switchIndex is the index of the branch that is switched to, until it is the repository's.
const switchIndex = platformDir + "/index"

// switchTo puts a clean work tree on a branch of the repository. As for a checkout git runs in the
// platform's own directory, so that no hook, filter or setting of the repository has a say; then HEAD
// and index of the repository follow. Without the branch, the commit that the work tree shows becomes
// it. Nothing is changed when a file that git does not know is where the branch has one.
func (w worktree) switchTo(ctx context.Context, a wire.SwitchArgs) error {
	if !isRefName(a.Branch) {
		return wire.Fail(wire.BadRequest, "switch")
	}
	root, err := w.files.repo()
	if err != nil {
		return fileError(err, "repo")
	}
	defer root.Close()
	_, from := headOf(root)
	ref := "refs/heads/" + a.Branch
	to := resolveRef(root, ref)
	steps := []struct {
		name string
		do   func() error
	}{
		{"branch", func() error {
			if to != "" || from == "" {
				return nil
			}
			to = from
			return w.put(path.Join("repo/.git", ref), to+"\n")
		}},
		{"files in the way", func() error { return w.nothingBetween(ctx, root, from, to) }},
		{"attributes", func() error { return w.put(baseGit+"/info/attributes", rawAttributes) }},
		{"index", func() error { return w.onTree(ctx, "read-tree", from) }},
		{"compare", func() error { return w.onTree(ctx, "update-index", "-q", "--refresh") }},
		{"files", func() error { return w.onTree(ctx, "read-tree", "-m", "-u", from, to) }},
		{"head", func() error { return w.put("repo/.git/HEAD", "ref: "+ref+"\n") }},
		{"finish", func() error { return w.files.workspace.Rename(switchIndex, "repo/.git/index") }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return wire.Fail(wire.SwitchFailed, s.name)
		}
	}
	return nil
}

var errInTheWay = errors.New("a file that git does not know is where the branch has one")

// nothingBetween fails when a file that only the commit to has is there already: git would take one that
// it ignores for dispensable.
func (w worktree) nothingBetween(ctx context.Context, root *os.Root, from, to string) error {
	old, err := w.tree(ctx, from, w.repositoryObjects())
	if err != nil {
		return err
	}
	next, err := w.tree(ctx, to, w.repositoryObjects())
	if err != nil {
		return err
	}
	for name := range next.leaves {
		if old.has(name, true) {
			continue
		}
		if _, err := root.Lstat(name); err == nil {
			return errInTheWay
		}
	}
	return nil
}

// onTree runs git in the platform's own directory, with the work tree and the objects of the repository.
func (w worktree) onTree(ctx context.Context, args ...string) error {
	at := w.files.layout.Workspace
	return w.git(ctx, args[0], gitCall{dir: baseGit, cwd: "repo", args: args, env: []string{
		"GIT_WORK_TREE=" + path.Join(at, "repo"),
		"GIT_INDEX_FILE=" + path.Join(at, switchIndex),
		w.repositoryObjects(),
	}})
}
