package server

import (
	"context"
	"errors"
	"io"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxResultNames bounds the paths in an answer, in bytes, so that it fits into a result.
const maxResultNames = 1 << 20

// snapshot writes the work tree as a pack of what base lacks and names its tree. Nested repositories
// become plain files.
func (w worktree) snapshot(ctx context.Context, pack io.Writer) (any, error) {
	sha, base, err := w.baseTree(ctx, wire.SnapshotFailed)
	if err != nil {
		return nil, err
	}
	root, err := w.files.repo()
	if err != nil {
		return nil, fileError(err, "repo")
	}
	defer root.Close()
	found, err := w.scan(ctx, root, base, wire.SnapshotFailed)
	if err != nil {
		return nil, err
	}
	for _, l := range found.leaves {
		if l.hash == "" {
			return nil, wire.Fail(wire.SnapshotFailed, l.path+" (over 1 GiB)")
		}
	}
	o := &objects{known: base.objects}
	tree := o.collect(found.leaves)
	if err := o.write(ctx, root, pack); err != nil {
		return nil, err
	}
	return wire.SnapshotResult{TreeSHA: tree, BaseSHA: sha, Nested: cutNames(found.nested)}, nil
}

// baseTree is the tree that the checkout was made of. A base that cannot be read counts as missing.
func (w worktree) baseTree(ctx context.Context, code wire.Code) (string, *baseTree, error) {
	sha, err := w.base()
	if err != nil {
		return "", nil, err
	}
	tree, err := w.tree(ctx, sha)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, errTreeTooLarge):
		err = wire.Fail(code, "too many files")
	default:
		err = wire.Fail(wire.CheckoutMissing, "")
	}
	return sha, tree, err
}

// cutNames keeps as many names as an answer may hold.
func cutNames(names []string) []wire.Name {
	size := 0
	for i, n := range names {
		if size += len(n) + 8; size > maxResultNames || i >= maxNames {
			return wire.Names(names[:i])
		}
	}
	return wire.Names(names)
}

// maxNames is the number of paths that the client takes in one answer.
const maxNames = 20_000
