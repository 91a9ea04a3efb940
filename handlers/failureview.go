package handlers

import (
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/components"
	"agent-sandboxing/views/link"
)

// failure is the card of a bad end: the public sentence, the code, what is safe, the next step.
// Message is the person's message that failed, "" when it was none.
func (v sessionView) failure(code, sentence string, message core.MessageID) components.FailureProps {
	p := components.FailureProps{
		Message: sentence, Code: code,
		Safe: "The session and what was changed so far are kept. Send a new message to continue.",
	}
	repo := v.Session.Repository
	switch {
	case code == "base_moved":
		p.Safe = "Nothing ran."
		p.Action = "Start a new session from the current commit"
		p.ActionURL = link.NewFor(int64(repo.InstallationID), int64(repo.ID), v.Session.BaseBranch)
	case code == core.CodeLimitReached:
		p.Safe = "The sandbox and the changes are still there. Send “continue” to go on from here."
		v.offerContinue(&p, message)
	case code == core.CodeSessionBudget:
		p.Safe = "The sandbox and the changes are still there, and they can be published."
		p.Action = "Start a new session"
		p.ActionURL = link.NewFor(int64(repo.InstallationID), int64(repo.ID), v.Session.BaseBranch)
	case code == core.CodeMonthBudget, code == core.CodeCostUnknown:
		p.Safe = "The sandbox and the changes are still there, and they can be published."
	case strings.HasPrefix(code, "model_"):
		p.Safe = "The sandbox and the changes are still there. Send the message again when the model answers."
	}
	if p.ActionURL == "" && message != "" && v.silenced() == "" {
		p.Action, p.ActionURL = "Edit and send again", link.Session(v.id())+"?resend="+string(message)+"#composer"
		p.Resends = string(message)
	}
	return p
}

// offerContinue adds the way on after the session's last turn, for its owner.
func (v sessionView) offerContinue(p *components.FailureProps, message core.MessageID) {
	if message == "" || v.silenced() != "" {
		return
	}
	last := v.line.turns[len(v.line.turns)-1].message
	limits, more := chat.RaisedLimits(last, v.platform.MaxSteps)
	if last.ID != message || !more {
		return
	}
	p.Safe = "The sandbox and the changes are still there."
	p.ContinueURL = link.ContinueMessage(v.id(), string(message))
	p.Continue = "Continue with a higher limit"
	p.ContinueFor = "Up to " + plural(limits.Steps, "step")
	if limits.Minutes > 0 {
		p.ContinueFor += " and " + plural(limits.Minutes, "minute")
	}
	p.ContinueFor += "."
}

// shortImage is an image id for people.
func shortImage(image string) string {
	return shortSHA(strings.TrimPrefix(image, "sha256:"))
}
