package mirror

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"agent-sandboxing/core"
)

// MaxPatch bounds the text of a diff, in bytes.
const MaxPatch = 1 << 20

const (
	// maxPatchRead ends a patch whose text nobody would read.
	maxPatchRead = 64 << 20
	// maxCompared is where git takes a file for binary without reading it, in bytes.
	maxCompared = 8 << 20
)

// Capture is the difference between the session's base and its work tree, made by our own git from
// the two trees. Errors as of Import.
func (m *Mirror) Capture(ctx context.Context, s core.ChatSession, ws core.PlatformWorkspace) (core.Diff, error) {
	q, err := m.Import(ctx, s, ws)
	if err != nil {
		return core.Diff{}, err
	}
	diff, err := q.Diff(ctx, q.Base, q.Tree)
	return diff, errors.Join(err, q.Close())
}

// Diff compares two trees (or commits) of the quarantine. Paths are made valid UTF-8 for storing.
func (q *Quarantine) Diff(ctx context.Context, from, to string) (core.Diff, error) {
	changes, err := q.Changes(ctx, from, to)
	if err != nil {
		return core.Diff{}, err
	}
	diff := core.Diff{BaseSHA: q.Base, TreeSHA: to, Files: make([]core.ChangedFile, len(changes))}
	for i, c := range changes {
		c.Path, c.OldPath = storable(c.Path), storable(c.OldPath)
		diff.Files[i] = c.ChangedFile
	}
	if len(changes) == 0 {
		return diff, nil
	}
	if from, to, err = q.withoutHuge(ctx, from, to, changes); err != nil {
		return diff, err
	}
	diff.Patch, diff.Truncated, err = q.patch(ctx, from, to)
	return diff, err
}

// withoutHuge takes the files above maxCompared that come or go out of both trees: to say in a patch
// that such a one is binary, git would hold all of it.
func (q *Quarantine) withoutHuge(ctx context.Context, from, to string, changes []Change) (string, string, error) {
	var blobs, paths []string
	for _, c := range changes {
		if c.Binary && (c.OldSHA == "" || c.NewSHA == "") {
			blobs, paths = append(blobs, cmp.Or(c.NewSHA, c.OldSHA)), append(paths, c.Path)
		}
	}
	if len(blobs) == 0 {
		return from, to, nil
	}
	sizes, err := q.Sizes(ctx, blobs)
	if err != nil {
		return "", "", err
	}
	var huge []Change // as if each was added, so that both trees lose it
	for i, size := range sizes {
		if size > maxCompared {
			huge = append(huge, Change{ChangedFile: core.ChangedFile{Path: paths[i]}})
		}
	}
	if from, err = q.Without(ctx, from, huge); err != nil {
		return "", "", err
	}
	to, err = q.Without(ctx, to, huge)
	return from, to, err
}

func storable(path string) string { return strings.ToValidUTF8(path, "\uFFFD") }

// Changes lists the paths that differ, with their raw bytes, in git's order. More than we take are
// snapshot_rejected.
func (q *Quarantine) Changes(ctx context.Context, from, to string) (changes []Change, err error) {
	var bad error
	err = q.read(ctx, q.compare(from, to, "--raw", "--numstat", "-z", "--abbrev=64"), func(r io.Reader) (whole bool) {
		if changes, bad = parseChanges(r); bad != nil && !errors.Is(bad, errTooManyChanges) {
			_, _ = io.Copy(io.Discard, r) // how git ended says more
		}
		return !errors.Is(bad, errTooManyChanges)
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, q.unreadable(ctx, err)
	}
	return changes, nil
}

// compare is a comparison that runs no driver, filter or textconv: there is none in our
// configuration, and it is switched off too.
func (q *Quarantine) compare(from, to string, format ...string) call {
	args := append([]string{
		"diff-tree", "-r", "-M", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
		"--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none", "-l1000",
	}, format...)
	// Files above the threshold are compared as binary; people should still see a long text file.
	config := append(append([]string{}, hostileConfig...), fmt.Sprintf("core.bigFileThreshold=%d", maxCompared), "diff.algorithm=histogram")
	return call{dir: q.dir, config: config, limits: q.m.hostile(), timeout: importTimeout, args: append(args, from, to, "--")}
}

func (q *Quarantine) unreadable(ctx context.Context, err error) error {
	if ended(ctx, err) {
		return context.Cause(ctx)
	}
	return rejected(err)
}

// patch keeps whole files only. A file that does not fit is left out, and smaller ones after it
// are still shown.
func (q *Quarantine) patch(ctx context.Context, from, to string) (patch []byte, truncated bool, err error) {
	err = q.read(ctx, q.compare(from, to, "-p"), func(r io.Reader) (whole bool) {
		patch, truncated, whole = cutPatch(r, MaxPatch, maxPatchRead)
		return whole
	})
	if err != nil {
		return nil, false, q.unreadable(ctx, err)
	}
	return patch, truncated, nil
}

// read runs c and gives its output to take as it comes; where take had enough before the end (whole is
// false), git is ended.
func (q *Quarantine) read(ctx context.Context, c call, take func(io.Reader) (whole bool)) error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe of git: %w", err)
	}
	defer read.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.stdout = write
	started, err := q.m.git.start(ctx, c)
	_ = write.Close() // the child has its own
	if err != nil {
		return err
	}
	if !take(read) {
		cancel()
		_ = started.wait() // we ended it
		return nil
	}
	return started.wait()
}

var fileHeader = []byte("diff --git ")

// cutPatch reads a patch and keeps those files that fit into limit bytes together. whole is false
// when it stopped before the end, after stop bytes.
func cutPatch(r io.Reader, limit, stop int) (patch []byte, truncated, whole bool) {
	in := bufio.NewReaderSize(r, 64<<10)
	var file []byte // the current file, nil once it is too large
	fits := true
	flush := func() {
		if fits && len(patch)+len(file) <= limit {
			patch = append(patch, file...)
		} else {
			truncated = true
		}
		file, fits = file[:0], true
	}
	atLineStart := true
	for total := 0; ; {
		part, err := in.ReadSlice('\n')
		total += len(part)
		if atLineStart && bytes.HasPrefix(part, fileHeader) {
			flush()
		}
		if fits = fits && len(file)+len(part) <= limit; fits {
			file = append(file, part...)
		}
		atLineStart = bytes.HasSuffix(part, []byte("\n"))
		switch {
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			flush()
			return patch, truncated, true
		case total > stop:
			return patch, true, false
		}
	}
}
