package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
)

// attempt is one run of one publication. p is always what the ledger says.
type attempt struct {
	*Service
	claim   core.Claim
	session core.ChatSession
	repo    core.Repository
	p       core.Publication

	person  core.User          // who asked
	token   core.RepoToken     // for this attempt alone
	known   *core.PullRequest  // as we recorded it, nil before the first
	pull    *core.PullRequest  // as GitHub has it, nil when there is none
	network core.EgressSummary // what the sandbox has reached
	head    string             // of the session's branch on GitHub, "" when absent

	request string // the text of the message that was worked on last
	line    string // see ownLine
	merge   *merge // with what others pushed, nil when there was nothing to merge
}

func (a *attempt) run(ctx context.Context, ws core.PlatformWorkspace) (core.PublishResult, error) {
	a.p.WaitingUntil, a.p.WaitingReason = time.Time{}, ""
	if a.p.CreatedAt.IsZero() { // the agent's own: the row begins here
		a.p.CreatedAt = time.Now()
		if err := a.save(ctx, core.EventPublicationRequested); err != nil {
			return core.PublishResult{}, err
		}
	}
	if a.repo.IsFixture() {
		return core.PublishResult{}, core.Fail(core.Conflict, "not_github_repository", "This session works on a local fixture, so there is no pull request to open.")
	}
	if err := a.access.MayPush(ctx, a.p.RequestedBy, a.repo); err != nil {
		return core.PublishResult{}, err
	}
	var err error
	if a.person, err = a.store.User(ctx, a.p.RequestedBy); err != nil {
		return core.PublishResult{}, err
	}
	if a.token, err = a.tokens.Mint(ctx, a.repo, core.TokenPublish); err != nil {
		return core.PublishResult{}, err
	}
	defer a.tokens.Revoke(context.WithoutCancel(ctx), a.token)
	if err := a.look(ctx); err != nil {
		return core.PublishResult{}, err
	}
	if a.p.Step == core.PublishCommitted && a.p.CommitSHA == a.head {
		if err := a.pushed(ctx); err != nil { // the push had been done before a crash
			return core.PublishResult{}, err
		}
	}
	if a.p.Step == core.PublishPushed {
		return a.resume(ctx)
	}
	return a.push(ctx, ws)
}

// look reads what GitHub and the ledger know, before anything is decided.
func (a *attempt) look(ctx context.Context) error {
	found, err := a.pullRequests.FindPullRequests(ctx, a.token, a.repo, a.session.Branch)
	if err != nil {
		return err
	}
	if a.known, err = a.store.PullRequest(ctx, a.session.ID); err != nil {
		return err
	}
	a.pull = ours(found, a.known)
	if a.request, err = a.store.LastRequest(ctx, a.session.ID); err != nil {
		return err
	}
	if a.network, err = a.store.Egress(ctx, a.session.ID, 0); err != nil {
		return err
	}
	a.head, err = a.mirror.RemoteHead(ctx, a.repo, a.token, a.session.Branch)
	return err
}

// ours prefers an open pull request, then the one that we recorded, then the newest.
func ours(found []core.PullRequest, known *core.PullRequest) *core.PullRequest {
	var best *core.PullRequest
	rank := func(p *core.PullRequest) (n int) {
		if p.State == "open" {
			n += 2
		}
		if known != nil && p.Number == known.Number {
			n++
		}
		return n
	}
	for i := range found {
		if best == nil || rank(&found[i]) > rank(best) {
			best = &found[i]
		}
	}
	return best
}

// mayContinue refuses what would overwrite, resurrect or pile up on somebody else's decision.
func (a *attempt) mayContinue(ctx context.Context) error {
	switch {
	case a.pull != nil && a.pull.State == "merged":
		return core.Fail(core.Conflict, "pull_request_merged", fmt.Sprintf(
			"Pull request #%d is merged. Start a new session to go on from the new %s.", a.pull.Number, a.session.BaseBranch))
	case a.pull != nil && a.pull.State == "closed" && a.head != "":
		return core.Fail(core.Conflict, "pull_request_closed", fmt.Sprintf(
			"Pull request #%d is closed. Reopen it on GitHub and publish again, or start a new session.", a.pull.Number))
	case a.head == "":
		last, err := a.store.LastPublished(ctx, a.session.ID)
		if err == nil && last != nil {
			err = core.Fail(core.Conflict, "branch_deleted",
				"The branch "+a.session.Branch+" was deleted on GitHub, which closes its pull request. Restore the branch and reopen it there, then publish again, or start a new session.")
		}
		return err
	}
	return nil
}

func remoteChanged() error {
	return core.Fail(core.Conflict, "remote_changed",
		"Somebody else pushed to this session's branch on GitHub. Nothing was overwritten: look at the branch there first.")
}

// push commits and pushes the work tree, then opens or updates the pull request.
func (a *attempt) push(ctx context.Context, ws core.PlatformWorkspace) (core.PublishResult, error) {
	if err := a.mayContinue(ctx); err != nil {
		return core.PublishResult{}, err
	}
	q, err := a.mirror.Import(ctx, a.session, ws)
	if err != nil {
		return core.PublishResult{}, err
	}
	defer q.Close()
	set, err := choose(ctx, q)
	if err != nil {
		return core.PublishResult{}, err
	}
	if len(set.changes) == 0 && a.pull == nil {
		return core.PublishResult{}, nothing(set)
	}
	a.p.LeftOut = set.leftOut
	if a.head == "" {
		err = a.commit(ctx, q, mirror.Commit{Tree: set.tree, Parent: q.Base}, "")
	} else {
		var done bool
		if done, err = a.onTop(ctx, q, set); err == nil && done {
			return a.unchanged(ctx, q, ws, set)
		}
	}
	if err != nil {
		return core.PublishResult{}, err
	}
	if err := a.send(ctx, q); err != nil {
		return core.PublishResult{}, err
	}
	changes, err := a.bring(ctx, q, ws, set)
	if err != nil {
		return core.PublishResult{}, err
	}
	return a.open(ctx, changes)
}

func nothing(set selection) error {
	message := "The work tree does not differ from the base, so there is nothing to publish."
	if len(set.leftOut) > 0 {
		message = fmt.Sprintf("Nothing is left to publish: %d new files were left out, such as %s.", len(set.leftOut), set.leftOut[0])
	}
	return core.Fail(core.Conflict, "nothing_to_publish", message)
}

// fetch brings the published head into q and returns its tree.
func (a *attempt) fetch(ctx context.Context, q *mirror.Quarantine) (tree string, err error) {
	head, err := a.mirror.FetchBranch(ctx, a.repo, a.token, q, a.session.Branch)
	if err != nil {
		return "", err
	}
	if head != a.head {
		return "", remoteChanged()
	}
	return q.TreeOf(ctx, head)
}

// write makes a commit of this attempt; a repeat with the same trees makes the same one.
func (a *attempt) write(ctx context.Context, q *mirror.Quarantine, c mirror.Commit) (string, error) {
	c.Message, c.Name, c.Email, c.When = a.commitMessage(a.request), a.bot.Name, a.bot.Email, a.p.CreatedAt
	return q.Commit(ctx, c)
}

// commit makes the commit that is to be pushed and writes its name to the ledger first. own is the
// commit that holds the session's tree when that is another one. One that differs from the ledger's was
// never pushed and is replaced.
func (a *attempt) commit(ctx context.Context, q *mirror.Quarantine, c mirror.Commit, own string) error {
	sha, err := a.write(ctx, q, c)
	if err != nil {
		return err
	}
	forward, err := q.IsAncestor(ctx, c.Parent, sha)
	if err != nil {
		return err
	}
	if !forward {
		return fmt.Errorf("commit %s does not descend from %s", sha, c.Parent)
	}
	if a.p.Step == core.PublishCommitted && a.p.CommitSHA == sha {
		return nil
	}
	a.p.Step, a.p.TreeSHA, a.p.CommitSHA, a.p.RemoteBefore = core.PublishCommitted, c.Tree, sha, a.head
	a.p.WorkCommit = cmp.Or(own, sha)
	return a.save(ctx, core.EventPublicationCommitted)
}

// send pushes. When the answer was lost the branch itself says whether the push was done.
func (a *attempt) send(ctx context.Context, q *mirror.Quarantine) error {
	err := a.mirror.Push(ctx, a.repo, a.token, q, a.p.CommitSHA, a.session.Branch, a.head)
	if core.KindOf(err) == core.Unavailable {
		if head, lookErr := a.mirror.RemoteHead(ctx, a.repo, a.token, a.session.Branch); lookErr == nil && head == a.p.CommitSHA {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return a.pushed(ctx)
}

func (a *attempt) pushed(ctx context.Context) error {
	a.p.Step = core.PublishPushed
	return a.save(ctx, core.EventPublicationPushed)
}

// unchanged ends an attempt whose changes GitHub has already, perhaps with those of others. A pull
// request that an earlier attempt could not open any more is opened now.
func (a *attempt) unchanged(ctx context.Context, q *mirror.Quarantine, ws core.PlatformWorkspace, set selection) (core.PublishResult, error) {
	a.p.TreeSHA, a.p.CommitSHA, a.p.RemoteBefore, a.p.WorkCommit = set.tree, a.head, a.head, a.line
	if a.merge != nil {
		a.p.TreeSHA = a.merge.both
	}
	changes, err := a.bring(ctx, q, ws, set)
	if err != nil {
		return core.PublishResult{}, err
	}
	if a.pull == nil {
		return a.open(ctx, changes)
	}
	pr, err := a.retext(ctx, *a.pull, changes)
	if err != nil {
		return core.PublishResult{}, err
	}
	return a.finish(ctx, core.PublishUnchanged, pr, changes)
}

// resume goes on after a push that is done: everything it needs is on GitHub.
func (a *attempt) resume(ctx context.Context) (core.PublishResult, error) {
	q, err := a.mirror.Open(ctx, a.session)
	if err != nil {
		return core.PublishResult{}, err
	}
	defer q.Close()
	if _, err := a.mirror.FetchBranch(ctx, a.repo, a.token, q, a.session.Branch); err != nil {
		return core.PublishResult{}, err
	}
	if _, err := q.TreeOf(ctx, a.p.CommitSHA); err != nil {
		return core.PublishResult{}, errors.Join(remoteChanged(), err)
	}
	changes, err := q.Changes(ctx, q.Base, a.p.CommitSHA)
	if err != nil {
		return core.PublishResult{}, err
	}
	return a.open(ctx, changes)
}

// save writes the row with one event.
func (a *attempt) save(ctx context.Context, event core.EventType) error {
	return a.store.SavePublication(ctx, a.claim.Lease, a.p, core.PublicationChanged{
		Type: event, PublicationID: a.p.ID, CommitSHA: a.p.CommitSHA,
	})
}
