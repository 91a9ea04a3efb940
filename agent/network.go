package agent

import (
	"fmt"
	"strings"

	"agent-sandboxing/core"
)

// shownHosts bounds the hosts of a list that the model is told.
const shownHosts = 30

// networkNote says in at most three lines what programs in the sandbox reach, so that the model need not
// find out by waiting; "" where that is not known.
func networkNote(p core.EgressPolicy) string {
	const only = "Only names on ports 80 and 443 can be reached: addresses, UDP, ssh and other ports are out of reach by design, and no proxy setting changes that.\n"
	switch p.Mode {
	case core.EgressOpen:
		return "Network: commands reach any public host by name. " + only
	case core.EgressAllowlist:
		hosts := "none is listed"
		if n := len(p.Hosts); n > 0 {
			hosts = oneLine(strings.Join(p.Hosts[:min(n, shownHosts)], ", "), 2000)
			if n > shownHosts {
				hosts += fmt.Sprintf(" and %d more", n-shownHosts)
			}
		}
		return "Network: commands reach only these hosts: " + hosts + ".\n" + only +
			"When a host that you need is refused, do not look for a way around: name it in your answer, so that the person can allow it on the session's page.\n"
	case core.EgressNone:
		return "Network: none. What has to be downloaded cannot be had in this session; say so when that keeps you from the task.\n"
	}
	return ""
}
