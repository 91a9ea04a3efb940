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
	p       core.Publication
	remote  *remote

	person  core.User          // who asked
	known   *core.PullRequest  // as we recorded it, nil before the first
	pull    *core.PullRequest  // as GitHub has it, nil when there is none or a new one takes its place
	earlier []int              // pull requests of the branch that were closed without being merged
	network core.EgressSummary // what the sandbox has reached
	reach   core.EgressPolicy  // what it may reach now
	chosen  core.PathChoices   // against the rules of the publish set
	head    string             // of the session's branch on GitHub, "" when absent

	request   string   // the text of the message that was worked on last
	line      string   // see ownLine
	made      []string // the commits of the ledger, which are the session's own
	bodyLimit int      // of the pull request's text, in bytes
	brought   int      // commits of others that the workspace has got
	merge     *merge   // with what others pushed, nil when there was nothing to merge
}

func (a *attempt) run(ctx context.Context, ws core.PlatformWorkspace) (core.PublishResult, error) {
	a.p.WaitingUntil, a.p.WaitingReason = time.Time{}, ""
	if a.p.CreatedAt.IsZero() { // the agent's own: the row begins here
		a.p.CreatedAt = time.Now()
		a.p.Title, a.p.Body = cleanText(a.p.Title), cleanText(a.p.Body)
		if err := a.save(ctx, core.EventPublicationRequested); err != nil {
			return core.PublishResult{}, err
		}
	}
	if a.p.Step == core.PublishRequested && !a.p.CancelRequestedAt.IsZero() {
		return core.PublishResult{}, cancelled()
	}
	if a.session.Repository.IsFixture() {
		return core.PublishResult{}, core.Fail(core.Conflict, "not_github_repository", "This session works on a local fixture, so there is no pull request to open.")
	}
	if err := a.authorise(ctx); err != nil {
		return core.PublishResult{}, err
	}
	a.remote = &remote{
		mirror: a.mirror, pulls: a.pullRequests, tokens: a.tokens, repo: a.session.Repository, branch: a.session.Branch, pause: a.pause,
	}
	if err := a.remote.mint(ctx); err != nil {
		return core.PublishResult{}, err
	}
	defer func() { a.remote.revoke(ctx) }()
	if err := a.look(ctx); err != nil {
		return core.PublishResult{}, err
	}
	if a.p.Step == core.PublishCommitted && a.p.CommitSHA == a.head {
		if err := a.pushed(ctx); err != nil { // the push had been done before a crash
			return core.PublishResult{}, err
		}
	}
	switch {
	case a.p.Step == core.PublishPushed:
		return a.resume(ctx)
	case !a.p.CancelRequestedAt.IsZero():
		return core.PublishResult{}, cancelled()
	}
	return a.push(ctx, ws)
}

// authorise asks GitHub whether the person may publish, and learns what the repository is called now.
func (a *attempt) authorise(ctx context.Context) error {
	was := a.session.Repository
	now, err := a.access.MayPush(ctx, a.p.RequestedBy, was)
	switch {
	case core.KindOf(err) == core.NotFound:
		return core.Fail(core.Conflict, "installation_removed",
			"GitHub does not show "+was.FullName()+" under the App's installation any more: it was deleted, moved to another account, or taken out of the installation. The work is kept; ask the account's owner, then publish again.").Because(err)
	case err != nil:
		return err
	}
	if a.person, err = a.store.User(ctx, a.p.RequestedBy); err != nil || now.FullName() == was.FullName() {
		return err
	}
	a.session.Repository = now
	return a.store.RepositoryRenamed(ctx, now)
}

// look reads what GitHub and the ledger know, before anything is decided.
func (a *attempt) look(ctx context.Context) error {
	found, err := a.remote.find(ctx)
	if err != nil {
		return err
	}
	if a.known, err = a.store.PullRequest(ctx, a.session.ID); err != nil {
		return err
	}
	a.pull = ours(found, a.known)
	if err := a.moved(ctx); err != nil {
		return err
	}
	for _, pr := range found {
		if pr.State == core.PullClosed {
			a.earlier = append(a.earlier, pr.Number)
		}
	}
	if a.request, err = a.store.LastRequest(ctx, a.session.ID); err != nil {
		return err
	}
	if a.network, err = a.store.Egress(ctx, a.session.ID, 0); err != nil {
		return err
	}
	if a.reach, err = a.store.SessionEgress(ctx, a.session.ID); err != nil {
		return err
	}
	if a.chosen, err = a.store.PathChoices(ctx, a.session.ID); err != nil {
		return err
	}
	a.head, err = a.remote.head(ctx)
	return err
}

// ours prefers an open pull request, then the one that we recorded, then the newest.
func ours(found []core.PullRequest, known *core.PullRequest) *core.PullRequest {
	var best *core.PullRequest
	rank := func(p *core.PullRequest) (n int) {
		if p.State == core.PullOpen {
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

// moved records that people closed, merged or reopened the pull request since we looked last.
func (a *attempt) moved(ctx context.Context) error {
	if a.known == nil || a.pull == nil || a.pull.Number != a.known.Number || a.pull.State == a.known.State {
		return nil
	}
	a.known.State, a.known.Draft = a.pull.State, a.pull.Draft
	return a.store.SavePullRequest(ctx, a.claim.Lease, *a.known, core.PullRequestMoved{State: a.pull.State, Number: a.pull.Number, URL: a.pull.URL})
}

// mayContinue refuses what would overwrite, resurrect or pile up on somebody else's decision, unless the
// person has chosen what shall become of it.
func (a *attempt) mayContinue(ctx context.Context) error {
	closed := a.pull != nil && a.pull.State == core.PullClosed
	switch {
	case a.pull != nil && a.pull.State == core.PullMerged:
		return core.Fail(core.Conflict, core.CodePullMerged, fmt.Sprintf(
			"Pull request #%d is merged, and more commits on its branch would show its changes again. Start a follow-up session from the new %s.", a.pull.Number, a.base()))
	case a.head == "" && a.p.Choice != core.ChooseNew:
		last, err := a.store.LastPublished(ctx, a.session.ID)
		if err == nil && last != nil {
			err = core.Fail(core.Conflict, core.CodeBranchDeleted,
				"The branch "+a.session.Branch+" was deleted on GitHub, which closes its pull request. Publish it anew with a new pull request, or restore it there and publish again.")
		}
		return err
	case closed && a.p.Choice == core.ChooseNothing:
		return core.Fail(core.Conflict, core.CodePullClosed, fmt.Sprintf(
			"Pull request #%d was closed without being merged. Open it again, or open a new one that refers to it.", a.pull.Number))
	}
	if closed && a.p.Choice == core.ChooseNew {
		a.pull = nil
	}
	return nil
}

// base is the branch that the pull request merges into.
func (a *attempt) base() string {
	switch {
	case a.p.Base != "":
		return a.p.Base
	case a.pull != nil && a.pull.Base != "":
		return a.pull.Base
	case a.known != nil && a.known.Base != "":
		return a.known.Base
	}
	return a.session.BaseBranch
}

func remoteChanged() error {
	return core.Fail(core.Conflict, "remote_changed",
		"Somebody else pushed to this session's branch on GitHub. Nothing was overwritten: publish again to take that in, or look at the branch there first.")
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
	given := q.Base
	if a.head != "" {
		if given, err = a.meet(ctx, q); err != nil {
			return core.PublishResult{}, err
		}
	}
	set, err := choose(ctx, q, given, a.chosen)
	if err != nil {
		return core.PublishResult{}, err
	}
	if len(set.changes) == 0 && a.pull == nil {
		return core.PublishResult{}, nothing(set)
	}
	a.p.LeftOut = set.leftOut
	if err := a.reopen(ctx); err != nil { // before anything is pushed: then GitHub would not
		return core.PublishResult{}, err
	}
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
	return a.open(ctx, q, changes)
}

func nothing(set selection) error {
	message := "The work tree does not differ from the base, so there is nothing to publish."
	if len(set.leftOut) > 0 {
		message = fmt.Sprintf("Nothing is left to publish: %d new files were left out, such as %s.", len(set.leftOut), set.leftOut[0])
	}
	return core.Fail(core.Conflict, "nothing_to_publish", message)
}

// meet brings the published head into q, finds the session's own line in it, and returns the base with what
// others have changed there and the work tree has.
func (a *attempt) meet(ctx context.Context, q *mirror.Quarantine) (given string, err error) {
	head, err := a.remote.fetch(ctx, q)
	if err != nil {
		return "", err
	}
	if head != a.head {
		return "", remoteChanged()
	}
	if a.line, err = a.ownLine(ctx, q); err != nil {
		return "", err
	}
	return q.ByOthers(ctx, a.line, a.made)
}

// write makes a commit of this attempt; a repeat with the same trees makes the same one.
func (a *attempt) write(ctx context.Context, q *mirror.Quarantine, c mirror.Commit) (string, error) {
	bot := a.bot()
	c.Message, c.Name, c.Email, c.When = a.commitMessage(a.request), bot.Name, bot.Email, a.p.CreatedAt
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

// send pushes. When the answer was lost the branch itself says whether the push was done; only when it was
// not is the push repeated, once.
func (a *attempt) send(ctx context.Context, q *mirror.Quarantine) error {
	for repeated := false; ; repeated = true {
		err := a.remote.push(ctx, q, a.p.CommitSHA, a.head)
		if err == nil {
			return a.pushed(ctx)
		}
		if core.KindOf(err) != core.Unavailable {
			return err
		}
		switch head, lookErr := a.remote.head(ctx); {
		case lookErr != nil:
			return err
		case head == a.p.CommitSHA:
			return a.pushed(ctx)
		case head != a.head:
			return remoteChanged()
		case repeated:
			return err
		}
	}
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
		return a.open(ctx, q, changes)
	}
	outcome := core.PublishUnchanged
	if a.p.Choice == core.ChooseReopen {
		outcome = core.PublishUpdated
	}
	pr, err := a.retext(ctx, *a.pull, changes)
	if err != nil {
		return core.PublishResult{}, err
	}
	return a.finish(ctx, outcome, pr, changes)
}

// resume goes on after a push that is done: everything it needs is on GitHub.
func (a *attempt) resume(ctx context.Context) (core.PublishResult, error) {
	if a.pull != nil && a.pull.State == core.PullMerged && a.pull.HeadSHA == a.p.CommitSHA {
		return a.finish(ctx, core.PublishUpdated, *a.pull, nil) // with our push, before we could say that it was done
	}
	if err := a.mayContinue(ctx); err != nil {
		return core.PublishResult{}, err
	}
	if err := a.reopen(ctx); err != nil {
		return core.PublishResult{}, err
	}
	q, err := a.mirror.Open(ctx, a.session)
	if err != nil {
		return core.PublishResult{}, err
	}
	defer q.Close()
	if _, err := a.remote.fetch(ctx, q); err != nil {
		return core.PublishResult{}, err
	}
	if _, err := q.TreeOf(ctx, a.p.CommitSHA); err != nil {
		return core.PublishResult{}, errors.Join(remoteChanged(), err)
	}
	changes, err := q.Changes(ctx, q.Base, a.p.CommitSHA)
	if err != nil {
		return core.PublishResult{}, err
	}
	return a.open(ctx, q, changes)
}

// save writes the row with one event.
func (a *attempt) save(ctx context.Context, event core.EventType) error {
	return a.store.SavePublication(ctx, a.claim.Lease, a.p, core.PublicationChanged{
		Type: event, PublicationID: a.p.ID, CommitSHA: a.p.CommitSHA,
	})
}
