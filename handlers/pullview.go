package handlers

import (
	"strconv"

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

func pullOutcome(number int, opened bool) string {
	if opened {
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
	case v.line.active() != nil:
		return "The agent is working. Publish when the turn has ended."
	case len(v.Changed) == 0:
		return "Nothing has been changed yet."
	}
	return ""
}

// pull is the session's pull request, or the way to it.
func (v sessionView) pull() components.PullRequestProps {
	p := components.PullRequestProps{SessionID: v.id(), Now: v.now, Blocked: v.publishBlocked()}
	p.CanPublish = p.Blocked == ""
	if pr := v.PullRequest; pr != nil {
		p.Number, p.URL, p.State = pr.Number, pr.URL, pr.State
		p.Title, p.HeadSHA, p.UpdatedAt = pr.Title, pr.HeadSHA, pr.UpdatedAt
	}
	pub := v.Publication
	if pub == nil {
		return p
	}
	p.LeftOut = pub.LeftOut
	p.Update = v.Diff != nil && !publishing(pub) && v.Diff.CreatedAt.After(pub.CreatedAt)
	switch pub.Step {
	case core.PublishRequested, core.PublishCommitted, core.PublishPushed:
		p.Publishing = publishSteps(*pub)
	case core.PublishFailed:
		f := v.failure(pub.FailureCode, pub.FailureText, "")
		f.Title = "The pull request was not published"
		f.ActionURL, f.Action = link.Publish(v.id()), "Try again"
		p.Failure = &f
	case core.PublishDone:
		switch pub.Outcome {
		case core.PublishOpened, core.PublishUpdated:
			p.Outcome = pullOutcome(pub.Number, pub.Outcome == core.PublishOpened)
		case core.PublishUnchanged:
			p.Outcome = "Already published, nothing new."
		}
	}
	return p
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
	if !p.WaitingUntil.IsZero() {
		for i := range steps {
			if steps[i].State == "running" {
				steps[i].Detail = p.WaitingReason
			}
		}
	}
	return steps
}
