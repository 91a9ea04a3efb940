package mirror

import (
	"bytes"
	"fmt"
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

// parseChanges reads `diff-tree --raw --numstat -z`: every raw record, then every count, both in
// the same order.
func parseChanges(out []byte) ([]Change, error) {
	fields := bytes.Split(out, []byte{0})
	if n := len(fields); n > 0 && len(fields[n-1]) == 0 {
		fields = fields[:n-1]
	}
	var changes []Change
	at := 0
	for at < len(fields) && bytes.HasPrefix(fields[at], []byte(":")) {
		c, used, err := parseRaw(fields[at:])
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
		at += used
	}
	for i := range changes {
		used, err := parseCount(fields[at:], &changes[i])
		if err != nil {
			return nil, err
		}
		at += used
	}
	if at != len(fields) {
		return nil, fmt.Errorf("diff: %d fields too many", len(fields)-at)
	}
	return changes, nil
}

// parseRaw reads `:old-mode new-mode old-sha new-sha status`, path and, of a rename, the new path.
func parseRaw(fields [][]byte) (c Change, used int, err error) {
	meta := strings.Fields(strings.TrimPrefix(string(fields[0]), ":"))
	if len(meta) != 5 || len(meta[0]) != 6 || len(meta[1]) != 6 || !isSHA(meta[2]) || !isSHA(meta[3]) || len(fields) < 2 || len(fields[1]) == 0 {
		return c, 0, fmt.Errorf("diff: odd raw record")
	}
	c.OldMode, c.NewMode, c.OldSHA, c.NewSHA = meta[0], meta[1], meta[2], meta[3]
	c.Path, used = string(fields[1]), 2
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
		if len(fields) < 3 || len(fields[2]) == 0 {
			return c, 0, fmt.Errorf("diff: rename without a new path")
		}
		c.Status, c.OldPath, c.Path, used = "renamed", c.Path, string(fields[2]), 3
	default:
		return c, 0, fmt.Errorf("diff: unknown status %q", meta[4])
	}
	if c.OldMode == absentMode {
		c.OldMode, c.OldSHA = "", ""
	}
	if c.NewMode == absentMode {
		c.NewMode, c.NewSHA = "", ""
	}
	return c, used, nil
}

// parseCount reads `added TAB deleted TAB path`; of a rename the path is empty and two follow.
func parseCount(fields [][]byte, c *Change) (used int, err error) {
	if len(fields) == 0 {
		return 0, fmt.Errorf("diff: a count is missing")
	}
	parts := strings.SplitN(string(fields[0]), "\t", 3)
	if len(parts) != 3 {
		return 0, fmt.Errorf("diff: odd count")
	}
	path, used := parts[2], 1
	if path == "" {
		if len(fields) < 3 || string(fields[1]) != c.OldPath {
			return 0, fmt.Errorf("diff: odd count of a rename")
		}
		path, used = string(fields[2]), 3
	}
	if path != c.Path {
		return 0, fmt.Errorf("diff: count of another path")
	}
	if parts[0] == "-" && parts[1] == "-" {
		c.Binary = true
		return used, nil
	}
	if c.Additions, err = strconv.Atoi(parts[0]); err != nil || c.Additions < 0 {
		return 0, fmt.Errorf("diff: odd number of lines")
	}
	if c.Deletions, err = strconv.Atoi(parts[1]); err != nil || c.Deletions < 0 {
		return 0, fmt.Errorf("diff: odd number of lines")
	}
	return used, nil
}
