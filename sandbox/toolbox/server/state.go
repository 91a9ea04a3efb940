package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxRefFile bounds what is read of a file that commands can write. Bytes.
const maxRefFile = 4 << 20

// state reads where the repository stands, without running git in it. A repository that is no longer
// one has neither branch nor head and counts as dirty. The base, which is the platform's, must be whole.
func (w worktree) state(ctx context.Context) (any, error) {
	base, err := w.base()
	if err != nil {
		return nil, err
	}
	// Without the base's trees nothing can be compared or saved. Too large a base is at least there.
	limited, stop := context.WithTimeout(ctx, w.files.lookFor) // git waits for a pipe that it takes for a file
	defer stop()
	tree, err := w.tree(limited, base)
	if err != nil && !errors.Is(err, errTreeTooLarge) {
		return nil, cmp.Or(ctx.Err(), error(wire.Fail(wire.CheckoutMissing, "")))
	}
	root, err := w.files.repo()
	if err != nil {
		return nil, fileError(err, "repo")
	}
	defer root.Close()
	state := wire.GitState{Base: base, Dirty: true}
	state.Branch, state.Head = headOf(root)
	if state.Head == "" {
		return state, nil
	}
	if state.Head != base {
		tree, err = w.tree(limited, state.Head, w.repositoryObjects())
	}
	if err != nil {
		return state, ctx.Err()
	}
	found, err := w.scan(ctx, root, tree, wire.Failed)
	if err != nil {
		return state, ctx.Err()
	}
	state.Dirty = !tree.equal(found.leaves)
	return state, nil
}

// headOf is the branch that HEAD names, "" when there is none, and its commit, "" when there is none.
func headOf(root *os.Root) (branch, commit string) {
	head := strings.TrimSpace(readGitFile(root, "HEAD"))
	if ref, ok := strings.CutPrefix(head, "ref: "); ok {
		if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok && isRefName(branch) {
			return branch, resolveRef(root, ref)
		}
		return "", ""
	}
	if isSHA1(head) {
		return "", head
	}
	return "", ""
}

// equal says whether the tree has exactly these leaves.
func (t *baseTree) equal(leaves []leaf) bool {
	for _, l := range leaves {
		if t.leaves[l.path] != (baseEntry{mode: l.mode, hash: l.hash}) {
			return false
		}
	}
	return len(leaves) == len(t.leaves)
}

// resolveRef reads a branch's commit from its own file or from the packed ones.
func resolveRef(root *os.Root, ref string) string {
	if sha := strings.TrimSpace(readGitFile(root, ref)); isSHA1(sha) {
		return sha
	}
	for line := range strings.SplitSeq(readGitFile(root, "packed-refs"), "\n") {
		if sha, name, ok := strings.Cut(line, " "); ok && name == ref && isSHA1(sha) {
			return sha
		}
	}
	return ""
}

// readGitFile reads a regular file in .git, "" when there is none.
func readGitFile(root *os.Root, name string) string {
	return readRegular(root, path.Join(".git", name))
}

// readRegular reads a regular file, "" when there is none: never a pipe, which nobody may ever write to.
func readRegular(root *os.Root, name string) string {
	rel, info, err := resolve(root, name, true)
	if err != nil || info == nil {
		return ""
	}
	p := place{root: root, rel: rel, info: info}
	file, err := p.open()
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxRefFile))
	if err != nil {
		return ""
	}
	return string(text)
}
