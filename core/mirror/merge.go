package mirror

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Merge merges two commits of the quarantine from their common ancestor, in memory: nothing is checked
// out and no driver of the repository runs. With conflicts (paths, raw bytes) there is no tree.
func (q *Quarantine) Merge(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	out, err := q.m.git.output(ctx, call{
		dir: q.dir, config: append([]string{"merge.renameLimit=1000"}, hostileConfig...), limits: q.m.hostile(), timeout: importTimeout,
		args: []string{"merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs},
	})
	exit, isExit := errors.AsType[*exec.ExitError](err)
	if err != nil && (!isExit || exit.ExitCode() != 1) {
		return "", nil, q.unreadable(ctx, err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if !isSHA(names[0]) {
		return "", nil, rejected(errors.New("merge-tree wrote no tree"))
	}
	if err != nil {
		return "", names[1:], nil
	}
	return names[0], nil, nil
}

// Ahead counts the commits of head that commit does not have, merges left out.
func (q *Quarantine) Ahead(ctx context.Context, commit, head string) (int, error) {
	line, err := q.m.git.line(ctx, call{dir: q.dir, config: hostileConfig, args: []string{"rev-list", "--count", "--no-merges", commit + ".." + head}})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(line)
}

// BinaryPatch is the difference of two trees as git apply takes it; ok is false when it is longer than
// limit bytes.
func (q *Quarantine) BinaryPatch(ctx context.Context, from, to string, limit int) (patch []byte, ok bool, err error) {
	c := q.compare(from, to, "-p", "--binary", "--no-renames")
	out := &capped{limit: limit}
	c.stdout = out
	if err := q.m.git.run(ctx, c); err != nil && !out.over {
		return nil, false, q.unreadable(ctx, err)
	}
	return out.buf.Bytes(), !out.over, nil
}

// TextPatch is the difference of two trees in the given paths (raw bytes) for reading, at most limit
// bytes of whole lines.
func (q *Quarantine) TextPatch(ctx context.Context, from, to string, paths []string, limit int) (string, error) {
	c := q.compare(from, to, "-p")
	c.config = append(c.config, "core.quotePath=on")
	for _, p := range paths {
		c.args = append(c.args, ":(literal,top)"+p)
	}
	out := &capped{limit: limit}
	c.stdout = out
	if err := q.m.git.run(ctx, c); err != nil && !out.over {
		return "", q.unreadable(ctx, err)
	}
	text := out.buf.Bytes()
	if out.over {
		text = append(text[:bytes.LastIndexByte(text, '\n')+1], "… (cut here)\n"...)
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil
}

// ByOthers is the tree of the base with what others changed on the way to commit: the paths that differ
// through commits of its first line which are not among own, by their names, are as commit has them.
func (q *Quarantine) ByOthers(ctx context.Context, commit string, own []string) (tree string, err error) {
	out, err := q.m.git.output(ctx, call{
		dir: q.dir, config: hostileConfig, limits: q.m.hostile(), timeout: importTimeout,
		args: []string{"rev-list", "--first-parent", q.Base + ".." + commit},
	})
	if err != nil {
		return "", q.unreadable(ctx, err)
	}
	theirs := map[string]bool{}
	to := "" // the newest of a run of others' commits
	for _, sha := range append(strings.Fields(string(out)), q.Base) {
		mine := sha == q.Base || slices.Contains(own, sha)
		switch {
		case !mine && to == "":
			to = sha
		case mine && to != "":
			changes, err := q.Changes(ctx, sha, to)
			if err != nil {
				return "", err
			}
			for _, c := range changes {
				theirs[c.Path], theirs[cmp.Or(c.OldPath, c.Path)] = true, true
			}
			to = ""
		}
	}
	if len(theirs) == 0 {
		return q.Base, nil
	}
	changes, err := q.Changes(ctx, q.Base, commit)
	if err != nil {
		return "", err
	}
	ours := slices.DeleteFunc(changes, func(c Change) bool { return theirs[c.Path] || theirs[cmp.Or(c.OldPath, c.Path)] })
	if tree, err = q.TreeOf(ctx, commit); err != nil {
		return "", err
	}
	return q.Without(ctx, tree, ours)
}
