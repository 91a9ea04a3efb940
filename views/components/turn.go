package components

import (
	"time"

	"agent-sandboxing/views/text"
)

// started says that there is a log to show, or that one is about to begin.
func (t TurnProps) started() bool {
	return t.State == "preparing" || !t.StartedAt.IsZero() || len(t.Items) > 0
}

func (t TurnProps) active() bool {
	return t.State == "working" || t.State == "cancelling"
}

// logOpen folds only what went well.
func (t TurnProps) logOpen() bool { return t.State != "completed" }

// label is the turn's state as a sentence; the timer of an active one stands after it.
func (t TurnProps) label() string {
	took := ""
	if !t.StartedAt.IsZero() && !t.FinishedAt.IsZero() {
		took = text.Elapsed(t.FinishedAt.Sub(t.StartedAt).Round(100 * time.Millisecond))
	}
	after := func(word string) string {
		if took == "" {
			return word
		}
		return word + " after " + took
	}
	switch t.State {
	case "preparing":
		return "Waiting for the sandbox"
	case "completed":
		if took == "" {
			return "Done"
		}
		return "Done in " + took
	case "failed":
		return after("Failed")
	case "cancelled":
		return after("Cancelled")
	default:
		return stateWord(t.State)
	}
}

func queuedText(t TurnProps) string {
	if t.QueueNote == "" {
		return "Queued"
	}
	return "Queued: " + t.QueueNote
}
