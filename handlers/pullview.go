package handlers

import (
	"strconv"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/views/components"
	"agent-sandboxing/views/link"
)

// publishing says that a publish is under way.
func publishing(p *core.Publication) bool {
	return p != nil && p.Step != core.PublishDone && p.Step != core.PublishFailed
}

func publishStepName(s core.PublishStep) string {
	switch s {
	case core.PublishRequested:
		return "Commit"
	case core.PublishCommitted:
		return "Push"
	case core.PublishPushed:
		return "Open the pull request"
	case core.PublishDone, core.PublishFailed:
	}
	return ""
}

func pullOutcome(number int, opened, draft bool) string {
	switch {
	case opened && draft:
		return "Pull request #" + strconv.Itoa(number) + " is open as a draft. Mark it ready for review on GitHub."
	case opened:
		return "Pull request #" + strconv.Itoa(number) + " is open."
	}
	return "Pull request #" + strconv.Itoa(number) + " is updated."
}

// publishBlocked says why the viewer cannot publish now, "" when they can.
func (v sessionView) publishBlocked() string {
	switch {
	case v.Session.Repository.IsFixture():
		return "This session works on a local fixture, which has no GitHub repository."
	case !v.Rights.MayPublish():
		return "You may not push to " + v.Session.Repository.FullName() + "."
	case publishing(v.Publication):
		return "A publish is under way."
	case v.PullRequest != nil && v.PullRequest.State == core.PullMerged:
		return "Pull request #" + strconv.Itoa(v.PullRequest.Number) + " is merged. A follow-up session goes on from the new " + v.mergesInto() + "."
	case v.line.active() != nil:
		return v.line.active().publishLater()
	case len(v.Changed) == 0:
		return "Nothing has been changed yet."
	}
	return ""
}

// publishLater says what has to end before a publish.
func (t *turn) publishLater() string {
	switch t.state() {
	case "queued":
		return "A message waits for its turn. Publish when that has ended, or remove the message."
	case "preparing":
		return "The sandbox is being prepared. Publish when the turn has ended."
	case "cancelling":
		return "The turn is being cancelled. Publish when it has ended."
	}
	return "The agent is working. Publish when the turn has ended."
}

// unpublished says that there may be changes which the pull request has not, as far as the records
// tell: since the newest publish a tool ran that can change files.
func (v sessionView) unpublished() bool {
	pub := v.Publication
	switch {
	case v.Diff == nil || len(v.Changed) == 0:
		return false
	case v.PullRequest == nil || pub == nil || pub.Step != core.PublishDone:
		return true
	case v.Earlier && v.Events[0].CreatedAt.After(pub.CreatedAt):
		return v.Diff.CreatedAt.After(pub.CreatedAt) // what ran in between is not in this window
	}
	for _, t := range v.line.turns {
		if t.changedAfter(pub.FinishedAt) {
			return true
		}
	}
	return false
}

// changedAfter says that a tool which can change files began after the time.
func (t *turn) changedAfter(at time.Time) bool {
	for _, it := range t.items {
		if it.tool == nil || !it.tool.startsAt.After(at) {
			continue
		}
		switch it.tool.call.Tool {
		case "read", "grep", "find", "ls", "publish_pull_request":
		default:
			return true
		}
	}
	return false
}

// pull is the session's pull request, or the way to it.
func (v sessionView) pull() components.PullRequestProps {
	p := components.PullRequestProps{SessionID: v.id(), Now: v.now, Blocked: v.publishBlocked()}
	p.CanPublish, p.Update = p.Blocked == "", v.unpublished()
	if pr := v.PullRequest; pr != nil {
		p.Number, p.URL, p.State, p.Draft, p.Base, p.Behind = pr.Number, pr.URL, pr.State, pr.Draft, pr.Base, pr.Behind
		p.Title, p.HeadSHA, p.UpdatedAt = pr.Title, pr.HeadSHA, pr.UpdatedAt
		if pr.State == core.PullMerged {
			p.FollowUpURL = v.followUp()
		}
	}
	pub := v.Publication
	if pub == nil {
		return p
	}
	p.LeftOut = pub.LeftOut
	switch pub.Step {
	case core.PublishRequested, core.PublishCommitted, core.PublishPushed:
		p.Publishing = publishSteps(*pub)
		if cancellable(*pub) && v.Rights.MayCancelPublish(*pub) {
			p.CancelURL = link.CancelPublish(v.id(), string(pub.ID))
		}
	case core.PublishFailed:
		f := v.failure(pub.FailureCode, pub.FailureText, "")
		f.Title = "The pull request was not published"
		f.Safe = "Nothing was overwritten, and the work tree is kept."
		v.offerChoices(&f, *pub)
		if pub.FailureCode == core.CodeSyncConflict && v.Rights.Owner && v.silenced() == "" {
			f.ContinueURL = link.Resolve(v.id(), string(pub.ID))
			f.Continue, f.ContinueFor = "Let the agent resolve it", "Sends a message with their changes in "+plural(len(pub.Conflicts), "file")+"."
		}
		p.Failure = &f
	case core.PublishDone:
		if p.Update {
			break // that was about earlier changes
		}
		switch pub.Outcome {
		case core.PublishOpened, core.PublishUpdated:
			p.Outcome = pullOutcome(pub.Number, pub.Outcome == core.PublishOpened, p.Draft)
		case core.PublishUnchanged:
			p.Outcome = "Already published, nothing new."
		}
	}
	return p
}

// cancellable says that nothing of an attempt is on its way to GitHub.
func cancellable(p core.Publication) bool {
	return p.CancelRequestedAt.IsZero() && (p.Step == core.PublishRequested || !p.WaitingUntil.IsZero())
}

// offerChoices adds the ways on after a publish that failed: the answers to what it asked, else the form.
func (v sessionView) offerChoices(f *components.FailureProps, pub core.Publication) {
	switch pub.FailureCode {
	case core.CodePullMerged:
		f.Action, f.ActionURL = "Start a follow-up session", v.followUp()
		return
	case core.CodeBaseMissing:
		f.Action, f.ActionURL = "Choose another base", link.Publish(v.id())+"#base"
	default:
		f.Action, f.ActionURL = "Try again", link.Publish(v.id())
	}
	if v.publishBlocked() != "" {
		f.Action, f.ActionURL = "", ""
		return
	}
	for _, choice := range pub.Choices() {
		f.Choices = append(f.Choices, components.ChoiceProps{
			URL: link.PublishAgain(v.id(), string(pub.ID)), Value: string(choice), Label: choiceLabel(choice, pub.FailureCode),
		})
	}
	if len(f.Choices) > 0 {
		f.Action, f.ActionURL = "", ""
	}
}

// mergesInto is the branch that the pull request goes into.
func (v sessionView) mergesInto() string {
	if v.PullRequest != nil && v.PullRequest.Base != "" {
		return v.PullRequest.Base
	}
	return v.Session.BaseBranch
}

// followUp is the form of a session that begins where this one's pull request was merged.
func (v sessionView) followUp() string {
	repo := v.Session.Repository
	return link.NewFor(int64(repo.InstallationID), int64(repo.ID), v.mergesInto())
}

func choiceLabel(choice core.PublishChoice, code string) string {
	switch {
	case choice == core.ChooseReopen:
		return "Open it again and publish"
	case code == core.CodeBranchDeleted:
		return "Publish anew with a new pull request"
	}
	return "Open a new pull request"
}

// publishSteps is the strip Commit · Push · Open the pull request.
func publishSteps(p core.Publication) []components.StepProps {
	order := []core.PublishStep{core.PublishRequested, core.PublishCommitted, core.PublishPushed}
	steps := make([]components.StepProps, 0, len(order))
	state := "done"
	for _, s := range order {
		if s == p.Step {
			state = "running"
		}
		steps = append(steps, components.StepProps{Name: publishStepName(s), State: state, StartedAt: p.CreatedAt})
		if state == "running" {
			state = "waiting"
		}
	}
	for i := range steps {
		switch {
		case steps[i].State != "running":
		case !p.CancelRequestedAt.IsZero() && p.Step == core.PublishRequested:
			steps[i].Detail = "Cancelling."
		case !p.CancelRequestedAt.IsZero():
			steps[i].Detail = "The cancel came when this was on its way to GitHub, so it is brought to its end."
		case !p.WaitingUntil.IsZero():
			steps[i].Detail = p.WaitingReason
		}
	}
	return steps
}
