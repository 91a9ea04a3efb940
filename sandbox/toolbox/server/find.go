package server

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// Find returns the files below a folder whose path from there, or from the root, matches a glob.
func (f *Files) Find(ctx context.Context, a wire.FindArgs) (wire.FindResult, error) {
	pattern, err := parseGlob(string(a.Pattern))
	if err != nil {
		return wire.FindResult{}, err
	}
	p, err := f.existing(a.Path, true)
	if err != nil {
		return wire.FindResult{}, err
	}
	defer p.close()
	if !p.info.IsDir() {
		return wire.FindResult{}, wire.Fail(wire.NotADirectory, p.name())
	}
	out := wire.FindResult{Paths: []wire.Name{}}
	size := 0
	w := p.walker()
	w.visit = func(rel string, e fs.DirEntry) error {
		if e.IsDir() || !pattern.match(rel, from(p.rel, rel)) {
			return nil
		}
		if len(out.Paths) >= a.Limit || size > maxAnswer {
			out.More = true
			return errStop
		}
		name := wire.Name(path.Join(p.prefix, rel))
		size += encodedSize(name)
		out.Paths = append(out.Paths, name)
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, f.lookFor)
	defer cancel()
	err = w.lookThrough(ctx, limited, p.rel)
	out.More = out.More || w.more
	return out, err
}

// walker goes through the place with the repository's ignore rules, which /tmp has not.
func (p place) walker() *walker {
	w := &walker{root: p.root}
	if p.prefix == "" {
		w.rules = ignoresFor(p.root, p.rel, true)
		if w.rules == nil {
			w.rules = &ignores{dir: "."} // rules may come in folders below
		}
	}
	return w
}

// from is rel as seen from folder dir.
func from(dir, rel string) string {
	if dir == "." {
		return rel
	}
	return strings.TrimPrefix(rel, dir+"/")
}
