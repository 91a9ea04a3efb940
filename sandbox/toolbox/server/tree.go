package server

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strings"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxTree bounds what is read of one list of a tree, which has at most maxWalk entries. Bytes.
const maxTree = 64 << 20

// errTreeTooLarge says that a tree is there but has more entries than any work tree here. A few objects
// that name each other again and again are enough for that.
var errTreeTooLarge = errors.New("the tree has too many entries")

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

// tree lists a commit's tree from the base's objects, and from those that env names besides.
func (w worktree) tree(ctx context.Context, commit string, env ...string) (*baseTree, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	list := treeList{
		tree: &baseTree{leaves: map[string]baseEntry{}, folders: map[string]bool{}, objects: map[string]bool{}},
		stop: stop,
	}
	err := w.git(ctx, "ls-tree", gitCall{
		dir:    baseGit,
		args:   []string{"ls-tree", "-r", "-t", "-z", "--full-tree", commit},
		env:    env,
		stdout: &list,
	})
	switch {
	case list.err != nil:
		return nil, list.err
	case err != nil:
		return nil, err
	case len(list.rest) > 0:
		return nil, wire.Fail(wire.Failed, "ls-tree")
	}
	return list.tree, nil
}

// repositoryObjects is the environment in which git in the base's directory finds the repository's objects.
func (w worktree) repositoryObjects() string {
	return "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + path.Join(w.files.layout.Workspace, "repo/.git/objects")
}

// treeList makes a tree of what git ls-tree -z writes, while it writes.
type treeList struct {
	tree    *baseTree
	stop    context.CancelCauseFunc // ends git, which would wait for a reader otherwise
	rest    []byte                  // of an entry that is not complete yet
	entries int
	size    int
	err     error
}

func (l *treeList) Write(p []byte) (int, error) {
	if l.size += len(p); l.size > maxTree {
		return 0, l.fail(errTreeTooLarge)
	}
	l.rest = append(l.rest, p...)
	whole := l.rest
	for {
		line, after, ok := bytes.Cut(whole, []byte{0})
		if !ok {
			break
		}
		if l.entries++; l.entries > maxWalk {
			return 0, l.fail(errTreeTooLarge)
		}
		if !l.tree.add(string(line)) {
			return 0, l.fail(wire.Fail(wire.Failed, "ls-tree"))
		}
		whole = after
	}
	l.rest = append(l.rest[:0], whole...)
	return len(p), nil
}

func (l *treeList) fail(err error) error {
	l.err = err
	l.stop(err)
	return err
}

// add takes one entry: mode, type and hash, a tab, the path.
func (t *baseTree) add(line string) bool {
	head, name, ok := strings.Cut(line, "\t")
	fields := strings.Fields(head)
	if !ok || len(fields) != 3 || !isSHA1(fields[2]) {
		return false
	}
	t.objects[fields[2]] = true
	if fields[1] == "tree" {
		t.folders[name] = true
	} else {
		t.leaves[name] = baseEntry{mode: fields[0], hash: fields[2]}
	}
	return true
}

// has says whether the base holds a path, as a folder or as a leaf.
func (t *baseTree) has(name string, folder bool) bool {
	_, leaf := t.leaves[name]
	return leaf || folder && t.folders[name]
}
