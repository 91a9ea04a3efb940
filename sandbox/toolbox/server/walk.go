package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"agent-sandboxing/sandbox/toolbox/wire"
)

const (
	// maxWalk bounds the entries that one walk looks at.
	maxWalk = 500_000
	// maxDepth bounds the folders above an entry. To open a folder costs as much as it is deep.
	maxDepth = 256
)

// errStop ends a walk early without being a failure.
var errStop = errors.New("stop")

// walker goes through a folder in the order of the whole paths' bytes. It follows no links and
// leaves .git out.
type walker struct {
	root  *os.Root
	rules *ignores // nil ignores nothing
	// visit gets every entry that is not ignored; a folder before what is in it.
	visit func(rel string, entry fs.DirEntry) error
	// nested gets each folder below the start that has a .git; nil for none.
	nested func(rel string)
	// empty gets each folder that holds nothing; nil for none.
	empty func(rel string)
	// keep overrides the rules for what they ignore; nil for never.
	keep func(rel string, dir bool) bool
	// strict fails on a folder that cannot be read instead of passing it over.
	strict bool

	seen    int
	ignored bool // something was left out because of the rules
	more    bool // a bound cut it
}

func (w *walker) walk(ctx context.Context, dir string) error {
	err := w.folder(ctx, dir, w.rules, false)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// lookThrough is walk for an answer that may be partial: when limited ends before ctx, what was found by
// then is all.
func (w *walker) lookThrough(ctx, limited context.Context, dir string) error {
	err := w.walk(limited, dir)
	if outOfTime(ctx, err) {
		w.more = true
		return nil
	}
	return err
}

// outOfTime says that err comes from a limit of time below ctx's own.
func outOfTime(ctx context.Context, err error) bool {
	return ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
}

// folder walks one folder. excluded says that it is ignored itself and only kept: so is what is in it.
func (w *walker) folder(ctx context.Context, dir string, rules *ignores, excluded bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, more, err := readEntries(w.root, dir)
	if err != nil {
		if w.strict || ctx.Err() != nil {
			return fileError(err, dir)
		}
		return nil
	}
	w.more = w.more || more
	if len(entries) == 0 && w.empty != nil {
		w.empty(dir)
	}
	for _, e := range entries {
		if w.seen++; w.seen > maxWalk {
			w.more = true
			return errStop
		}
		rel := path.Join(dir, e.Name())
		if e.Name() == ".git" {
			continue
		}
		if len(rel) > maxPath || strings.Count(rel, "/") > maxDepth {
			if w.strict {
				return wire.Fail(wire.BadPath, rel)
			}
			w.more = true
			continue
		}
		ignored := excluded || rules.ignored(rel, e.IsDir())
		if ignored && (w.keep == nil || !w.keep(rel, e.IsDir())) {
			w.ignored = true
			continue
		}
		if err := w.visit(rel, e); err != nil {
			return err
		}
		if !e.IsDir() {
			continue
		}
		inner := rules
		if w.rules != nil {
			inner = rules.with(w.root, rel, ".gitignore")
		}
		if w.nested != nil {
			if _, err := w.root.Lstat(path.Join(rel, ".git")); err == nil {
				w.nested(rel)
			}
		}
		if err := w.folder(ctx, rel, inner, ignored); err != nil {
			return err
		}
	}
	return nil
}

// readEntries returns a folder's entries, sorted so that a walk meets whole paths in byte order.
func readEntries(root *os.Root, dir string) (entries []fs.DirEntry, more bool, err error) {
	d, err := openFolder(root, dir)
	if err != nil {
		return nil, false, err
	}
	defer d.Close()
	entries, err = d.ReadDir(maxDirEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if len(entries) == maxDirEntries {
		rest, _ := d.ReadDir(1)
		more = len(rest) > 0
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(pathKey(a), pathKey(b)) })
	return entries, more, nil
}

// pathKey sorts a folder as its paths do: a.txt comes before a/b.
func pathKey(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}
