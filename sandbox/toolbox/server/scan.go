package server

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// Modes of git's tree entries.
const (
	modeFile    = "100644"
	modeExec    = "100755"
	modeLink    = "120000"
	modeGitlink = "160000"
	modeFolder  = "40000"
)

// maxLeaf is the size of a file that is not read: it can neither be published nor kept. Bytes.
const maxLeaf = 1 << 30

// leaf is a file or link of the work tree.
type leaf struct {
	path string
	mode string
	hash string // "" of a file over maxLeaf
	size int64
	perm fs.FileMode
}

// folder is one that the leaves do not imply: it holds nothing, or has an unusual mode.
type folder struct {
	path string
	perm fs.FileMode
}

// scan is the whole work tree: everything that git would add, in the order of the paths' bytes.
type scan struct {
	leaves  []leaf
	folders []folder
	nested  []string // folders with a .git of their own
}

// scan reads and hashes the work tree. Anything that cannot be read is a failure of code: a path that
// is left out would look deleted.
func (w worktree) scan(ctx context.Context, root *os.Root, base *baseTree, code wire.Code) (*scan, error) {
	usual, err := w.usualPerm()
	if err != nil {
		return nil, err
	}
	s := &scan{}
	seen := &w.files.hashes
	seen.begin()
	defer seen.end()
	empty := map[string]bool{}
	walk := &walker{
		root:   root,
		rules:  ignoresFor(root, ".", false),
		keep:   base.has,
		strict: true,
		nested: func(rel string) { s.nested = append(s.nested, rel) },
		empty:  func(rel string) { empty[rel] = true },
	}
	if walk.rules == nil {
		walk.rules = &ignores{dir: "."}
	}
	var folders []folder
	walk.visit = func(rel string, e fs.DirEntry) error {
		if e.IsDir() {
			info, err := root.Lstat(rel)
			if err != nil {
				return wire.Fail(code, rel)
			}
			folders = append(folders, folder{path: rel, perm: info.Mode().Perm()})
			return nil
		}
		l, ok, err := hashLeaf(ctx, root, rel, seen)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return wire.Fail(code, rel)
		case ok:
			s.leaves = append(s.leaves, l)
		}
		return nil
	}
	if err := walk.walk(ctx, "."); err != nil {
		if known, ok := errors.AsType[*wire.Error](err); ok {
			return nil, wire.Fail(code, string(known.Detail))
		}
		return nil, err
	}
	if walk.more {
		return nil, wire.Fail(code, "too many files")
	}
	for _, f := range folders {
		link := base.leaves[f.path]
		switch {
		case empty[f.path] && link.mode == modeGitlink: // a submodule, which is never filled here
			s.leaves = append(s.leaves, leaf{path: f.path, mode: modeGitlink, hash: link.hash})
		case empty[f.path] || f.perm != runnable(usual):
			s.folders = append(s.folders, f)
		}
	}
	slices.SortFunc(s.leaves, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return s, nil
}

// usualPerm is the mode that a new file gets here, as the checkout's last file got it.
func (w worktree) usualPerm() (fs.FileMode, error) {
	info, err := w.files.workspace.Lstat(baseFile)
	if err != nil {
		return 0, wire.Fail(wire.CheckoutMissing, "")
	}
	return info.Mode().Perm(), nil
}

// runnable adds x wherever perm has r.
func runnable(perm fs.FileMode) fs.FileMode {
	return perm | perm&0o444>>2
}

// hashLeaf computes the name of a file's or link's blob, or knows it. false: it is neither.
func hashLeaf(ctx context.Context, root *os.Root, rel string, seen *hashes) (leaf, bool, error) {
	info, err := root.Lstat(rel)
	if err != nil {
		return leaf{}, false, err
	}
	l := leaf{path: rel, perm: info.Mode().Perm()}
	switch info.Mode().Type() {
	case fs.ModeSymlink:
		target, err := root.Readlink(rel)
		if err != nil {
			return leaf{}, false, err
		}
		h := blobHash(int64(len(target)))
		_, _ = io.WriteString(h, target)
		l.mode, l.size, l.hash = modeLink, int64(len(target)), hex.EncodeToString(h.Sum(nil))
		return l, true, nil
	case 0:
		l.size, l.mode = info.Size(), fileMode(info)
		known := false
		if l.hash, known = seen.find(rel, info); known {
			return l, true, nil
		}
		began := time.Now()
		p := place{root: root, rel: rel, info: info}
		file, err := p.open()
		if err != nil {
			return leaf{}, false, err
		}
		defer file.Close()
		l.size, l.mode = p.info.Size(), fileMode(p.info)
		if l.size > maxLeaf {
			return l, true, nil
		}
		h := blobHash(l.size)
		n, err := copyContext(ctx, h, file)
		if err == nil && n != l.size {
			err = errChanged
		}
		if err != nil {
			return leaf{}, false, err
		}
		sum := h.Sum(nil)
		seen.add(rel, p.info, began, sum)
		l.hash = hex.EncodeToString(sum)
		return l, true, nil
	default:
		return leaf{}, false, nil
	}
}

func fileMode(info fs.FileInfo) string {
	if info.Mode()&0o100 != 0 {
		return modeExec
	}
	return modeFile
}

var errChanged = errors.New("the file changed while it was read")

func blobHash(size int64) hash.Hash {
	return objectHash("blob", size)
}

func objectHash(kind string, size int64) hash.Hash {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", kind, size)
	return h
}
