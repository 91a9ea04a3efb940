package chat

import (
	"context"

	"agent-sandboxing/core"
)

// continueText is what a person asks who presses the button.
const continueText = "Continue where you stopped."

// Continue posts a message that goes on from one which a limit stopped, with its limits doubled. The
// session's owner only. Without a key, pressing again is the same message. Conflict not_continuable
// when no limit stopped it, limits_highest when they cannot rise.
func (s *Service) Continue(ctx context.Context, user core.User, id core.SessionID, message core.MessageID, key string) (core.Message, error) {
	if key == "" {
		key = "continue " + string(message)
	}
	key, err := clientKey(key)
	if err != nil {
		return core.Message{}, err
	}
	if _, _, err := s.own(ctx, user, id); err != nil {
		return core.Message{}, err
	}
	stopped, err := s.store.Message(ctx, id, message)
	if err != nil {
		return core.Message{}, err
	}
	if !stoppedByLimit(stopped) {
		return core.Message{}, core.Fail(core.Conflict, "not_continuable",
			"No limit stopped this message, so there is none to raise. Send a new message.")
	}
	limits, more := RaisedLimits(stopped, s.maxSteps)
	if !more {
		return core.Message{}, core.Fail(core.Conflict, "limits_highest",
			"This message ran with the highest limits already. Send “continue” to go on with the usual ones.")
	}
	return s.post(ctx, user, core.NewMessage{SessionID: id, Text: continueText, ClientKey: key, Limits: limits})
}

// RaisedLimits are those to go on with after a message that a limit stopped, at most maxSteps; more is
// false when none stopped it, or it had the highest.
func RaisedLimits(m core.Message, maxSteps int) (limits core.TurnLimits, more bool) {
	if !stoppedByLimit(m) {
		return core.TurnLimits{}, false
	}
	had := m.Limits
	if had.Steps == 0 { // from before limits were kept
		had.Steps = m.Steps
	}
	return had.Raised(maxSteps)
}

func stoppedByLimit(m core.Message) bool {
	return m.Role == core.RoleUser && m.State == core.Failed && m.FailureCode == core.CodeLimitReached
}
