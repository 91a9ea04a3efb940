package server

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxDirEntries bounds what is held of one folder. Entries.
const maxDirEntries = 100_000

// List describes one directory level, sorted by name.
func (f *Files) List(a wire.ListArgs) (wire.ListResult, error) {
	p, err := f.existing(a.Path, true)
	if err != nil {
		return wire.ListResult{}, err
	}
	defer p.close()
	if !p.info.IsDir() {
		return wire.ListResult{}, wire.Fail(wire.NotADirectory, p.name())
	}
	names, more, err := readNames(p.root, p.rel)
	if err != nil {
		return wire.ListResult{}, fileError(err, p.name())
	}
	out := wire.ListResult{Entries: []wire.Stat{}, More: more}
	size := 0
	for _, name := range names {
		if len(out.Entries) >= a.Limit || size > maxAnswer {
			out.More = true
			break
		}
		entry := place{root: p.root, prefix: p.prefix, rel: path.Join(p.rel, name)}
		if entry.info, err = p.root.Lstat(entry.rel); err != nil {
			continue // gone since it was listed
		}
		stat := entry.stat()
		size += encodedSize(stat.Path) + encodedSize(stat.Target)
		out.Entries = append(out.Entries, stat)
	}
	return out, nil
}

// readNames returns the sorted names in a folder, and whether there are more than it holds.
func readNames(root *os.Root, dir string) (names []string, more bool, err error) {
	d, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false, err
	}
	defer d.Close()
	names, err = d.Readdirnames(maxDirEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if len(names) == maxDirEntries {
		_, err := d.Readdirnames(1)
		more = err == nil
	}
	slices.SortFunc(names, strings.Compare)
	return names, more, nil
}
