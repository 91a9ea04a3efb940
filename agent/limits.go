package agent

import (
	"fmt"
	"time"

	"agent-sandboxing/core"
)

// Limits bound one invocation. A zero field takes its default.
type Limits struct {
	Steps            int           // model requests; 60
	StepsCeiling     int           // the most that a message may ask for; 240
	Wall             time.Duration // 30 minutes
	CallsPerResponse int           // 16
	CostUSD          float64       // 0 is no cap
	// CostKnown ends an invocation after a request whose cost nobody knows, because a cap, this one
	// or another, could not hold otherwise.
	CostKnown bool
}

func (l Limits) orDefault() Limits {
	if l.Steps == 0 {
		l.Steps = 60
	}
	if l.Wall == 0 {
		l.Wall = 30 * time.Minute
	}
	if l.StepsCeiling == 0 {
		l.StepsCeiling = 240
	}
	if l.CallsPerResponse == 0 {
		l.CallsPerResponse = 16
	}
	return l
}

// of takes the limits that a message brings with it.
func (l Limits) of(m core.TurnLimits) Limits {
	if m.Steps > 0 {
		l.Steps = m.Steps
	}
	if m.Minutes > 0 {
		l.Wall = time.Duration(min(m.Minutes, core.MaxTurnMinutes)) * time.Minute
	}
	l.Steps = min(l.Steps, l.StepsCeiling)
	return l
}

// record is what is kept of the limits with the message.
func (l Limits) record() core.TurnLimits {
	return core.TurnLimits{Steps: l.Steps, Minutes: int((l.Wall + time.Minute - 1) / time.Minute)}
}

const (
	maxMalformed = 3 // responses in a row that held no call which could be run
	maxCutShort  = 2 // responses with calls that ended at the output limit
)

func limitReached(what string) *core.Error {
	return core.Fail(core.Conflict, core.CodeLimitReached,
		"The agent stopped at a limit: "+what+". Its changes are kept. Send another message to go on.")
}

// repeats notices an agent that goes in circles.
type repeats struct {
	seen []seenCall
	row  int // how often the last call came in a row
}

type seenCall struct {
	step      int
	call      string // tool, arguments and result
	errorText string // of an error, else ""
}

const (
	repeatWindow = 10 // steps
	maxInWindow  = 5
	maxInRow     = 4
	errorsNudge  = 3
	errorsStop   = 4
)

// add records one finished call. nudge is text for the model to read, stop ends the turn.
func (r *repeats) add(step int, tool, args string, result Result) (nudge string, stop error) {
	now := seenCall{step: step, call: tool + "\x00" + args + "\x00" + result.Text}
	if result.Outcome == OutcomeError || result.Outcome == OutcomeRefused {
		now.errorText = tool + "\x00" + result.Text
	}
	if len(r.seen) > 0 && r.seen[len(r.seen)-1].call == now.call {
		r.row++
	} else {
		r.row = 1
	}
	r.seen = append(r.seen, now)

	same, errs := 0, 0
	kept := r.seen[:0]
	for _, s := range r.seen {
		if s.step <= step-repeatWindow {
			continue
		}
		kept = append(kept, s)
		if s.call == now.call {
			same++
		}
		if now.errorText != "" && s.errorText == now.errorText {
			errs++
		}
	}
	r.seen = kept

	switch {
	case r.row >= maxInRow || same > maxInWindow:
		return "", limitReached(fmt.Sprintf("it called %s %d times with the same arguments and result", tool, max(r.row, same)))
	case errs >= errorsStop:
		return "", limitReached(fmt.Sprintf("%s failed %d times in the same way", tool, errs))
	case errs == errorsNudge:
		return "This error has come three times. Try something else, or report what blocks you.", nil
	}
	return "", nil
}
