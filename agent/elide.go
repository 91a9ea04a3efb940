package agent

import (
	"fmt"

	"agent-sandboxing/core"
)

// Shares of the usable window, in percent.
const (
	elideAt  = 75 // from here old tool results are elided,
	elideTo  = 40 // down to here and in one step, because each step makes the provider's cache useless
	overflow = 95 // from here no request is sent
)

const (
	keptResults = 6   // the newest results are never elided
	minElided   = 400 // bytes; a shorter result is not worth it
)

// fit makes room for the next request, or says that there is none.
func (r *run) fit() error {
	limit := usable(r.meter.window)
	size := r.meter.size(r.messages)
	if size*100 >= limit*elideAt {
		size = r.elide(size, limit*elideTo/100)
	}
	if size*100 >= limit*overflow {
		return core.Fail(core.Conflict, core.CodeContextOverflow,
			"The conversation of this turn has become longer than the model takes. Its changes are kept. Send another message to go on, or ask for less at once.")
	}
	return nil
}

// elide replaces the oldest large tool results by a line that says how to get them again, until the
// request is small enough. Calls, ids and order stay, so every call keeps its one answer.
func (r *run) elide(size, target int) int {
	results := 0
	for _, m := range r.messages {
		if m.Role == ToolRole {
			results++
		}
	}
	for i := range r.messages {
		m := &r.messages[i]
		if m.Role != ToolRole {
			continue
		}
		if results--; results < keptResults || size <= target {
			break
		}
		what := r.did[m.CallID]
		if what == "" || len(m.Text) < minElided {
			continue
		}
		before := messageTokens(*m)
		m.Text = r.unmarked(fmt.Sprintf("[elided: %s; call the tool again if you need it]", what))
		saved := before - messageTokens(*m)
		r.meter.elided(i, saved)
		size -= saved
	}
	return size
}
