package publish

import (
	"context"
	"strings"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
)

// reopen opens the pull request again that was closed, when the person chose that.
func (a *attempt) reopen(ctx context.Context) error {
	if a.pull == nil || a.pull.State != core.PullClosed || a.p.Choice != core.ChooseReopen {
		return nil
	}
	pr, err := a.remote.reopen(ctx, a.pull.Number)
	if err != nil {
		return err
	}
	a.pull = &pr
	return a.moved(ctx)
}

// open opens the pull request, or brings the same one up to date, and ends the attempt.
func (a *attempt) open(ctx context.Context, q *mirror.Quarantine, changes []mirror.Change) (core.PublishResult, error) {
	if a.pull == nil {
		pr, err := a.create(ctx, q, changes)
		if err != nil {
			return core.PublishResult{}, err
		}
		a.pull = &pr
	}
	// Opened by an attempt that ended before it could say so, or just now: still the first of this
	// session, or in the place of another. One that a person opened has not our block yet.
	outcome := core.PublishUpdated
	if (a.known == nil || a.known.Number != a.pull.Number) && strings.Contains(a.pull.Body, beginMark) {
		outcome = core.PublishOpened
	}
	pr, err := a.retext(ctx, *a.pull, changes)
	if err != nil {
		return core.PublishResult{}, err
	}
	return a.finish(ctx, outcome, pr, changes)
}

// create asks for a new pull request, whose text begins with the repository's template. When the answer
// is lost it looks for the pull request, and only when there is none does it ask once more.
func (a *attempt) create(ctx context.Context, q *mirror.Quarantine, changes []mirror.Change) (core.PullRequest, error) {
	before, err := template(ctx, q)
	if err != nil {
		return core.PullRequest{}, err
	}
	before = strings.TrimSpace(withoutMarks(a.redact(before)))
	text := core.PullRequestText{Title: a.title(), Base: a.base(), Draft: a.p.Draft}
	for repeated := false; ; repeated = true {
		text.Body = a.body(before, changes)
		pr, err := a.remote.open(ctx, text)
		if core.CodeOf(err) == codeBodyTooLong && !repeated {
			a.bodyLimit, before = maxBody/4, ""
			continue
		}
		if core.KindOf(err) != core.Unavailable {
			return pr, err
		}
		found, lookErr := a.remote.find(ctx)
		if lookErr != nil {
			return pr, err
		}
		if open := ours(found, nil); open != nil && open.State == core.PullOpen {
			return *open, nil
		}
		if repeated {
			return pr, err
		}
	}
}

// retext replaces our block in the text as GitHub has it. The title is rewritten only while it is
// still ours, and by the agent only while no person stands behind the text. Without a difference
// nothing is sent. The ledger keeps the words that stand in the end.
func (a *attempt) retext(ctx context.Context, pr core.PullRequest, changes []mirror.Change) (core.PullRequest, error) {
	text := core.PullRequestText{Body: a.body(pr.Body, changes)}
	standing := a.words(pr.Body)
	if standing.person && a.p.MessageID != "" {
		a.p.Title = pr.Title
	}
	if a.known != nil && a.known.Title == pr.Title && a.title() != pr.Title {
		text.Title = a.title()
	}
	if standing.text != a.asked().text {
		a.p.Body = standing.text
	}
	if sameText(text.Body, pr.Body) {
		text.Body = ""
	}
	if a.p.Base != "" && a.p.Base != pr.Base {
		text.Base = a.p.Base
	}
	if text == (core.PullRequestText{}) {
		return pr, nil
	}
	changed, err := a.remote.update(ctx, pr.Number, text)
	if core.CodeOf(err) == codeBodyTooLong { // people's own text leaves no room: theirs stays as it is
		text.Body = ""
		if text == (core.PullRequestText{}) {
			return pr, nil
		}
		changed, err = a.remote.update(ctx, pr.Number, text)
	}
	return changed, err
}

// sameText ignores how a browser's form ends lines.
func sameText(a, b string) bool {
	return strings.TrimSpace(strings.ReplaceAll(a, "\r\n", "\n")) == strings.TrimSpace(strings.ReplaceAll(b, "\r\n", "\n"))
}

// finish records the end with the pull request in one transaction.
func (a *attempt) finish(ctx context.Context, outcome core.PublishOutcome, pr core.PullRequest, changes []mirror.Change) (core.PublishResult, error) {
	var err error
	files := make([]core.ChangedFile, len(changes))
	for i, c := range changes {
		files[i] = c.ChangedFile
	}
	result := core.PublishResult{Outcome: outcome, Number: pr.Number, URL: pr.URL, Draft: pr.Draft, Files: len(files), LeftOut: a.p.LeftOut}
	if a.merge != nil {
		result.Merged = a.merge.commits
	}
	result.Additions, result.Deletions = core.Totals(files)

	pr.SessionID, pr.HeadSHA = a.session.ID, a.p.CommitSHA
	if pr.Behind, err = a.remote.behind(ctx, pr.Base, pr.HeadSHA); err != nil {
		a.log.WarnContext(ctx, "how far the base is ahead is not known", "code", core.CodeOf(err), "error", err, "session_id", a.session.ID)
	}
	if pr.Title != a.title() { // a person's: what we wrote last stays on record
		pr.Title = ""
		if a.known != nil {
			pr.Title = a.known.Title
		}
	}
	a.p.Step, a.p.Outcome, a.p.Number, a.p.FinishedAt = core.PublishDone, outcome, pr.Number, time.Now()
	var event core.Payload = core.PullRequestChanged{
		Opened: outcome == core.PublishOpened, PublicationID: a.p.ID, Number: pr.Number, URL: pr.URL,
		HeadSHA: pr.HeadSHA, Files: result.Files, Draft: pr.Draft, Behind: pr.Behind, LeftOut: a.p.LeftOut,
	}
	if outcome == core.PublishUnchanged {
		event = core.PublicationChanged{Type: core.EventPublicationUnchanged, PublicationID: a.p.ID, CommitSHA: a.p.CommitSHA}
	}
	return result, a.store.FinishPublication(ctx, a.claim.Lease, a.p, pr, event)
}
