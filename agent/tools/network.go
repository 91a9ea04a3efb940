package tools

import (
	"fmt"
	"strings"

	"agent-sandboxing/core"
)

// shownRefusals bounds the hosts that one command's note names.
const shownRefusals = 5

// networkNote tells the model which hosts a command did not reach and why, because programs show a
// refusal as a failed handshake or a status; "" when there is nothing to tell.
func networkNote(refused []core.EgressRefusal) string {
	var parts []string
	listed, more := false, 0
	for _, r := range refused {
		switch {
		case r.Rule == "nothing_asked": // the other half of a race between two connections
		case len(parts) == shownRefusals:
			more++
		default:
			parts = append(parts, fmt.Sprintf("%q port %d: %s", r.Host, r.Port, core.EgressReason(r.Rule)))
			listed = listed || r.Rule == core.EgressNotListed
		}
	}
	if len(parts) == 0 {
		return ""
	}
	note := "Not reached: " + strings.Join(parts, " ")
	if more > 0 {
		note += fmt.Sprintf(" And %s.", plural(more, "more host"))
	}
	if listed {
		note += " Only the person can allow a host, on the session's page: when you need it, say so in your answer."
	}
	return note
}
