package mirror

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"agent-sandboxing/core"
)

// Modes of git tree entries that matter to rules.
const (
	ModeLink    = "120000"
	ModeGitlink = "160000"
)

// Change is one path that differs between two trees. Path and OldPath are raw bytes.
type Change struct {
	core.ChangedFile
	OldSHA, NewSHA string // "" on the side where it is not
}

const absentMode = "000000"

const (
	// maxChanges bounds the paths of one comparison. A pack of a few KiB can hold a tree of millions, made
	// of folders that hold the same folders.
	maxChanges = 100_000
	// maxRaw bounds what git lists of them, in bytes: paths may be long.
	maxRaw = 64 << 20
)

// errTooManyChanges says that a comparison passed maxChanges or maxRaw.
var errTooManyChanges = errors.New("too many changes")

// listing reads what git lists with -z, a field at a time, up to maxRaw bytes.
type listing struct {
	in   *bufio.Reader
	left int // bytes
}

// next returns the next field, io.EOF after the last.
func (l *listing) next() (string, error) {
	var field []byte
	for {
		part, err := l.in.ReadSlice(0)
		if l.left -= len(part); l.left < 0 {
			return "", errTooManyChanges
		}
		field = append(field, part...)
		switch {
		case err == nil:
			return string(field[:len(field)-1]), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(field) > 0 && errors.Is(err, io.EOF):
			return "", io.ErrUnexpectedEOF
		default:
			return "", err
		}
	}
}

// path is next where a path has to follow.
func (l *listing) path() (string, error) {
	path, err := l.next()
	if errors.Is(err, io.EOF) || err == nil && path == "" {
		return "", errors.New("diff: a path is missing")
	}
	return path, err
}

// parseChanges reads `diff-tree --raw --numstat -z`: every raw record, then every count, both in
// the same order. It stops with errTooManyChanges where there are more than we take.
func parseChanges(r io.Reader) ([]Change, error) {
	in := &listing{in: bufio.NewReaderSize(r, 64<<10), left: maxRaw}
	var changes []Change
	field, err := in.next()
	for err == nil && strings.HasPrefix(field, ":") {
		if len(changes) == maxChanges {
			return nil, errTooManyChanges
		}
		c, err := parseRaw(field, in)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
		if field, err = in.next(); err != nil {
			return nil, fmt.Errorf("diff: a count is missing: %w", err)
		}
	}
	for i := range changes {
		if err != nil {
			return nil, fmt.Errorf("diff: a count is missing: %w", err)
		}
		if err := parseCount(field, in, &changes[i]); err != nil {
			return nil, err
		}
		field, err = in.next()
	}
	if err == nil {
		return nil, errors.New("diff: fields too many")
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return changes, nil
}

// parseRaw reads `:old-mode new-mode old-sha new-sha status`, path and, of a rename, the new path.
func parseRaw(field string, in *listing) (c Change, err error) {
	meta := strings.Fields(strings.TrimPrefix(field, ":"))
	if len(meta) != 5 || len(meta[0]) != 6 || len(meta[1]) != 6 || !isSHA(meta[2]) || !isSHA(meta[3]) {
		return c, errors.New("diff: odd raw record")
	}
	c.OldMode, c.NewMode, c.OldSHA, c.NewSHA = meta[0], meta[1], meta[2], meta[3]
	if c.Path, err = in.path(); err != nil {
		return c, err
	}
	switch meta[4][0] {
	case 'A':
		c.Status = "added"
	case 'D':
		c.Status = "deleted"
	case 'T':
		c.Status = "type"
	case 'M':
		c.Status = "modified"
		if c.OldSHA == c.NewSHA {
			c.Status = "mode"
		}
	case 'R':
		c.Status, c.OldPath = "renamed", c.Path
		if c.Path, err = in.path(); err != nil {
			return c, err
		}
	default:
		return c, fmt.Errorf("diff: unknown status %q", meta[4])
	}
	if c.OldMode == absentMode {
		c.OldMode, c.OldSHA = "", ""
	}
	if c.NewMode == absentMode {
		c.NewMode, c.NewSHA = "", ""
	}
	return c, nil
}

// parseCount reads `added TAB deleted TAB path`; of a rename the path is empty and two follow.
func parseCount(field string, in *listing, c *Change) error {
	parts := strings.SplitN(field, "\t", 3)
	if len(parts) != 3 {
		return errors.New("diff: odd count")
	}
	path := parts[2]
	if path == "" {
		old, err := in.path()
		if err != nil {
			return err
		}
		if old != c.OldPath {
			return errors.New("diff: odd count of a rename")
		}
		if path, err = in.path(); err != nil {
			return err
		}
	}
	if path != c.Path {
		return errors.New("diff: count of another path")
	}
	if parts[0] == "-" && parts[1] == "-" {
		c.Binary = true
		return nil
	}
	var err error
	if c.Additions, err = strconv.Atoi(parts[0]); err != nil || c.Additions < 0 {
		return errors.New("diff: odd number of lines")
	}
	if c.Deletions, err = strconv.Atoi(parts[1]); err != nil || c.Deletions < 0 {
		return errors.New("diff: odd number of lines")
	}
	return nil
}
