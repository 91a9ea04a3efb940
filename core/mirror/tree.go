package mirror

import (
	"context"
	"strings"
)

// Entry is a regular file of a commit. Path is raw bytes.
type Entry struct{ Path, SHA string }

// Files lists the regular files directly in a folder of a commit, "" for its root; none when there is
// no such folder.
func (q *Quarantine) Files(ctx context.Context, commit, folder string) ([]Entry, error) {
	args := []string{"ls-tree", "-z", "--full-tree", "--end-of-options", commit}
	if folder != "" {
		args = append(args, folder+"/")
	}
	out, err := q.m.git.output(ctx, call{dir: q.dir, config: hostileConfig, limits: q.m.hostile(), args: args})
	if err != nil {
		return nil, q.unreadable(ctx, err)
	}
	var files []Entry
	for entry := range strings.SplitSeq(string(out), "\x00") {
		meta, path, _ := strings.Cut(entry, "\t")
		if f := strings.Fields(meta); len(f) == 3 && f[1] == "blob" && f[0] != ModeLink {
			files = append(files, Entry{Path: path, SHA: f[2]})
		}
	}
	return files, nil
}
