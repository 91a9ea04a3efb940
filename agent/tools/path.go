package tools

import (
	"context"
	"errors"
	"path"
	"strings"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// maxPath is the longest path that Linux takes. Bytes.
const maxPath = 4096

// workspacePath makes the one spelling of a path that tools use: relative to the repository, or
// absolute below /tmp. The sandbox checks again, with links resolved; this check gives the better
// message. forWrite refuses .git.
func workspacePath(p string, forWrite bool) (string, *agent.Result) {
	given := p
	p = strings.TrimPrefix(p, "@")
	if strings.TrimSpace(p) == "" || len(p) > maxPath || strings.ContainsFunc(p, unprintable) {
		r := agent.Failed("invalid_path", "%q is not a path. Use a path relative to the repository root.", redact.Cut(given, 200))
		return "", &r
	}
	if strings.Contains("/"+p+"/", "/../") || p == "~" || strings.HasPrefix(p, "~/") {
		return "", outside(given)
	}
	folder := strings.HasSuffix(p, "/")
	p = path.Clean(p)
	if path.IsAbs(p) {
		if inside, ok := below(p, core.RepoDir); ok {
			p = inside
		} else if _, ok := below(p, "/tmp"); !ok {
			return "", outside(given)
		}
	}
	if forWrite && folder {
		r := agent.Failed("is_directory", "%s names a directory. Name a file in it.", given)
		return "", &r
	}
	if forWrite {
		return p, protected(p)
	}
	return p, nil
}

// protected refuses to change what is git's own. Files that exist are asked about again with links
// resolved.
func protected(p string) *agent.Result {
	for segment := range strings.SplitSeq(p, "/") {
		if strings.EqualFold(segment, ".git") {
			r := agent.Failed("git_dir_protected", "%s belongs to git. Change files of the work tree only; the platform makes the commits.", p)
			return &r
		}
	}
	return nil
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
			hint = "Similar names there: " + strings.Join(printedAll(dir, names), ", ") + "."
		}
	}
	return agent.Failed("not_found", "there is no %s. %s", p, hint)
}
