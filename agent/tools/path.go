package tools

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

// workspacePath makes the one spelling of a path that tools use: relative to the repository, or
// absolute below /tmp. The sandbox checks again, with links resolved; this check gives the better
// message. forWrite refuses .git.
func workspacePath(p string, forWrite bool) (string, *agent.Result) {
	given := p
	p = strings.TrimPrefix(strings.TrimSpace(p), "@")
	if p == "" || strings.ContainsFunc(p, unicode.IsControl) {
		r := agent.Failed("invalid_path", "%q is not a path. Use a path relative to the repository root.", given)
		return "", &r
	}
	segments := strings.Split(p, "/")
	if slices.Contains(segments, "..") {
		return "", outside(given)
	}
	p = path.Clean(p)
	if path.IsAbs(p) {
		if inside, ok := below(p, core.RepoDir); ok {
			p = inside
		} else if _, ok := below(p, "/tmp"); !ok {
			return "", outside(given)
		}
	}
	if forWrite && slices.Contains(segments, ".git") {
		r := agent.Failed("git_dir_protected", "%s belongs to git. Change files of the work tree only; the platform makes the commits.", given)
		return "", &r
	}
	return p, nil
}

// below gives p relative to dir when it is dir or lies in it.
func below(p, dir string) (string, bool) {
	if p == dir {
		return ".", true
	}
	return strings.CutPrefix(p, dir+"/")
}

func outside(p string) *agent.Result {
	r := agent.Failed("path_outside_workspace", "%s is not under %s or /tmp. Use a path relative to the repository root.", p, core.RepoDir)
	return &r
}

// fileFailure answers a failed read: what is missing comes with similar names, a directory with
// the tool for it.
func fileFailure(ctx context.Context, ws core.Workspace, p string, err error) (agent.Result, error) {
	e, ok := errors.AsType[*core.Error](err)
	if ok && ctx.Err() == nil {
		switch e.Code {
		case "not_found":
			return notFound(ctx, ws, p), nil
		case "is_directory":
			return agent.Failed("is_directory", "%s is a directory. Use ls.", p), nil
		}
	}
	return agent.FailedBy(ctx, err)
}

func notFound(ctx context.Context, ws core.Workspace, p string) agent.Result {
	hint := "Use find or ls to look for it."
	dir := path.Dir(p)
	if listing, err := ws.List(ctx, dir, 2000); err == nil {
		if names := similar(path.Base(p), listing.Entries); len(names) > 0 {
			for i := range names {
				names[i] = path.Join(dir, names[i])
			}
			hint = "Similar names there: " + strings.Join(names, ", ") + "."
		}
	}
	return agent.Failed("not_found", "there is no %s. %s", p, hint)
}

// similar picks at most three entries whose names are close to name, the closest first.
func similar(name string, entries []core.FileStat) []string {
	type candidate struct {
		name     string
		distance int
	}
	var close []candidate
	low := strings.ToLower(name)
	stem := strings.TrimSuffix(low, path.Ext(low))
	for _, e := range entries {
		base := path.Base(e.Path)
		other := strings.ToLower(base)
		d := distance(low, other)
		if stem != "" && strings.TrimSuffix(other, path.Ext(other)) == stem {
			d = min(d, 1)
		}
		if d <= max(1, len(low)/3) {
			close = append(close, candidate{base, d})
		}
	}
	slices.SortStableFunc(close, func(a, b candidate) int { return a.distance - b.distance })
	var names []string
	for _, c := range close[:min(3, len(close))] {
		names = append(names, c.name)
	}
	return names
}

// distance is how many single bytes have to be changed, added or removed to turn a into b.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// plural prints a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case strings.HasSuffix(noun, "ch"):
		return fmt.Sprintf("%d %ses", n, noun)
	case strings.HasSuffix(noun, "ry"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
