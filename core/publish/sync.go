package publish

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
)

const (
	maxSyncPatch = core.MaxWrite // bytes of others' changes that are brought into the workspace
	maxNamed     = 20            // paths in an event
	maxConflicts = 50            // paths kept of a conflict
)

// merge is what a merge with the branch on GitHub came to.
type merge struct {
	commits int    // that others had pushed
	own     string // the session's tree
	both    string // the tree with theirs
}

// ownLine is the newest commit of this session that lies in the head on GitHub and holds the session's
// own tree. remote_changed when the branch was never this session's, branch_rewritten when it is not
// any more.
func (a *attempt) ownLine(ctx context.Context, q *mirror.Quarantine) (string, error) {
	made, err := a.store.WithCommit(ctx, a.session.ID)
	if err != nil {
		return "", err
	}
	a.made = nil
	for _, p := range made {
		a.made = append(a.made, p.CommitSHA, p.WorkCommit)
	}
	for _, p := range made {
		if p.CommitSHA == a.head {
			return cmp.Or(p.WorkCommit, p.CommitSHA), nil
		}
	}
	last, err := a.store.LastPublished(ctx, a.session.ID)
	if err != nil {
		return "", err
	}
	if last != nil {
		switch in, err := q.Contains(ctx, last.CommitSHA, a.head); {
		case err != nil:
			return "", err
		case !in:
			return "", core.Fail(core.Conflict, "branch_rewritten",
				"The session's branch was rewritten on GitHub, so that it does not hold what was published before. Nothing was overwritten: restore the branch there, or start a new session.")
		}
	}
	for _, p := range made {
		if in, err := q.Contains(ctx, p.CommitSHA, a.head); in || err != nil {
			return cmp.Or(p.WorkCommit, p.CommitSHA), err
		}
	}
	return "", remoteChanged()
}

// onTop commits the session's tree on top of the branch as it is on GitHub, and merges what others
// pushed. done says that GitHub has all of it already.
func (a *attempt) onTop(ctx context.Context, q *mirror.Quarantine, set selection) (done bool, err error) {
	published, err := q.TreeOf(ctx, a.head)
	if err != nil {
		return false, err
	}
	if published == set.tree {
		return true, nil
	}
	if a.line == a.head {
		return false, a.commit(ctx, q, mirror.Commit{Tree: set.tree, Parent: a.head}, "")
	}
	own, err := a.write(ctx, q, mirror.Commit{Tree: set.tree, Parent: a.line})
	if err != nil {
		return false, err
	}
	theirs, ours, err := a.sides(ctx, q, published, own, set.tree)
	if err != nil {
		return false, err
	}
	both, conflicts, err := q.Merge(ctx, theirs, ours)
	if err != nil {
		return false, err
	}
	if len(conflicts) > 0 {
		return false, a.conflict(ctx, q, conflicts)
	}
	commits, err := q.Ahead(ctx, own, a.head)
	if err != nil {
		return false, err
	}
	a.merge = &merge{commits: commits, own: set.tree, both: both}
	if both == published {
		return true, nil
	}
	return false, a.commit(ctx, q, mirror.Commit{Tree: both, Parent: a.head, Merged: own}, own)
}

// sides are the two commits to merge: the head and own. After conflicts that the agent has resolved both
// stand on a commit that has the conflicts' paths as others had them, so that what the agent made of both is
// a change on top of theirs.
func (a *attempt) sides(ctx context.Context, q *mirror.Quarantine, published, own, tree string) (theirs, ours string, err error) {
	resolved, err := a.store.Resolved(ctx, a.session.ID)
	if err != nil || len(resolved) == 0 {
		return a.head, own, err
	}
	base, err := q.TreeOf(ctx, a.line)
	for _, p := range resolved {
		if err == nil {
			base, err = a.resolve(ctx, q, base, p)
		}
	}
	if err == nil {
		base, err = a.write(ctx, q, mirror.Commit{Tree: base, Parent: a.line})
	}
	if err == nil {
		theirs, err = a.write(ctx, q, mirror.Commit{Tree: published, Parent: base})
	}
	if err == nil {
		ours, err = a.write(ctx, q, mirror.Commit{Tree: tree, Parent: base})
	}
	return theirs, ours, err
}

// resolve returns tree with the conflict's paths as others had them, unless the session's line holds that
// already or the branch does not any more.
func (a *attempt) resolve(ctx context.Context, q *mirror.Quarantine, tree string, conflict core.Publication) (string, error) {
	if in, err := q.Contains(ctx, conflict.RemoteBefore, a.head); err != nil || !in {
		return tree, err
	}
	if done, err := q.Contains(ctx, conflict.RemoteBefore, a.line); err != nil || done {
		return tree, err
	}
	back, err := q.Changes(ctx, conflict.RemoteBefore, tree)
	if err != nil {
		return "", err
	}
	back = slices.DeleteFunc(back, func(c mirror.Change) bool {
		return !slices.Contains(conflict.Conflicts, printable(c.Path)) && !slices.Contains(conflict.Conflicts, printable(c.OldPath))
	})
	return q.Without(ctx, tree, back)
}

// conflict keeps what the others changed where it does not go together with the session's work. Of very
// many paths it looks at those that it names: they are arguments of a command.
func (a *attempt) conflict(ctx context.Context, q *mirror.Quarantine, paths []string) error {
	kept := paths[:min(len(paths), maxConflicts)]
	patch, err := q.TextPatch(ctx, a.line, a.head, kept, core.MaxConflictPatch)
	if err != nil {
		return err
	}
	a.p.ConflictPatch, a.p.Conflicts, a.p.RemoteBefore = a.redact(patch), nil, a.head
	for _, p := range kept {
		a.p.Conflicts = append(a.p.Conflicts, printable(p))
	}
	return core.Fail(core.Conflict, core.CodeSyncConflict, fmt.Sprintf(
		"Others pushed to this session's branch, and their changes do not go together with the session's in %s. Nothing was overwritten: let the agent take theirs in, or change the branch on GitHub.",
		listed(a.p.Conflicts, len(paths))))
}

// listed names up to three of the paths, which are the first of total.
func listed(paths []string, total int) string {
	text := strings.Join(paths[:min(len(paths), 3)], ", ")
	if more := total - 3; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// bring takes what others changed into the workspace, so that the agent and the diff see it, says so,
// and returns all that the pull request changes. What cannot be brought is not lost: the next publish
// merges again from the session's own commit.
func (a *attempt) bring(ctx context.Context, q *mirror.Quarantine, ws core.PlatformWorkspace, set selection) ([]mirror.Change, error) {
	if a.merge == nil {
		return set.changes, nil
	}
	theirs, err := q.Changes(ctx, a.merge.own, a.merge.both)
	if err != nil {
		return nil, err
	}
	event := core.PublicationMerged{PublicationID: a.p.ID, Commits: a.merge.commits, Files: []string{}}
	for _, c := range theirs[:min(len(theirs), maxNamed)] {
		event.Files = append(event.Files, printable(c.Path))
	}
	if event.InWorkspace, err = a.apply(ctx, q, ws, a.merge.own, a.merge.both); err == nil && event.InWorkspace {
		a.brought = a.merge.commits
		if err = a.keep(ctx, ws, theirs); err == nil {
			a.p.WorkCommit = a.p.CommitSHA
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		a.log.WarnContext(ctx, "bring the changes of others into the workspace", "error", err, "session_id", a.session.ID)
	}
	if err := a.store.SavePublication(ctx, a.claim.Lease, a.p, event); err != nil {
		return nil, err
	}
	return q.Changes(ctx, q.Base, a.merge.both)
}

// keep saves a checkpoint that has what others changed. A work tree that is rebuilt from an older one lacks
// it, which must not read as the session's wish to undo it.
func (a *attempt) keep(ctx context.Context, ws core.PlatformWorkspace, theirs []mirror.Change) error {
	var archive bytes.Buffer
	info, err := ws.Checkpoint(ctx, &archive, core.MaxCheckpoint)
	if err != nil {
		return err
	}
	for _, c := range theirs {
		if slices.Contains(info.Missing, c.Path) {
			return fmt.Errorf("the checkpoint has no room for %q", c.Path)
		}
	}
	return a.store.SaveCheckpoint(ctx, a.claim.Lease, core.Checkpoint{
		ID: core.NewID[core.CheckpointID](), SessionID: a.session.ID, MessageID: a.p.MessageID, Info: info, Archive: archive.Bytes(),
	})
}

// apply takes the difference of two trees into the work tree and looks whether it is there. What git in
// the sandbox says decides nothing.
func (a *attempt) apply(ctx context.Context, q *mirror.Quarantine, ws core.PlatformWorkspace, from, to string) (bool, error) {
	back, err := q.Changes(ctx, to, from)
	if err != nil {
		return false, err
	}
	want, err := q.Without(ctx, q.Tree, back)
	if err != nil {
		return false, err
	}
	patch, fits, err := q.BinaryPatch(ctx, from, to, maxSyncPatch)
	if err != nil || !fits {
		return false, err
	}
	file := "/tmp/agent-sync-" + string(a.p.ID) + ".patch"
	if _, err := ws.Write(ctx, core.WriteFile{Path: file, Data: patch}); err != nil {
		return false, err
	}
	const git = "git -c core.hooksPath=/dev/null -c core.autocrlf=false -c core.safecrlf=false apply --whitespace=nowarn --binary "
	if _, err := ws.Run(ctx, core.Command{Shell: git + file + "; code=$?; rm -f " + file + "; exit $code"}); err != nil {
		return false, err
	}
	now, err := a.mirror.Import(ctx, a.session, ws)
	if err != nil {
		return false, err
	}
	defer now.Close()
	return now.Tree == want, nil
}
