package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"agent-sandboxing/core"
)

// maxHosts bounds the hosts that a line of the pull request names.
const maxHosts = 20

// networkLines say which hosts the sandbox contacted and which it was refused. They have no counts and
// no times: the text changes only when something new was reached. Hosts that the operator has opened
// inside their own network are counted and not named, because the pull request may be read by anybody. A
// host that was refused and put on the list since is not refused any more.
func networkLines(e core.EgressSummary, now core.EgressPolicy) []string {
	contacted, refused := map[string]bool{}, map[string]bool{}
	internal := map[string]bool{}
	for _, r := range e.Rows {
		switch {
		case !hostName(r.Host) || slices.Contains(core.EgressFailures(), r.Rule):
		case r.Allowed && r.Rule == core.EgressPrivate:
			internal[r.Host] = true
		case r.Allowed:
			contacted[r.Host] = true
		case r.Rule == core.EgressNotListed && now.Mode == core.EgressAllowlist && now.Listed(r.Host):
		default:
			unlisted, seen := refused[r.Host]
			refused[r.Host] = r.Rule == core.EgressNotListed && (unlisted || !seen)
		}
	}
	var lines []string
	if names := hostNames(contacted); len(internal) > 0 && names != "" {
		lines = append(lines, "Contacted: "+names+fmt.Sprintf(", and %d inside the operator's network", len(internal)))
	} else if len(internal) > 0 {
		lines = append(lines, fmt.Sprintf("Contacted: %d inside the operator's network", len(internal)))
	} else if names != "" {
		lines = append(lines, "Contacted: "+names)
	}
	maps.DeleteFunc(refused, func(host string, unlisted bool) bool { return unlisted && contacted[host] })
	if names := hostNames(refused); names != "" {
		lines = append(lines, "Refused: "+names)
	}
	return lines
}

// hostName is true of what DNS can hold; nothing else may stand in a text that others render.
func hostName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// hostNames lists hosts by name, each as code.
func hostNames(hosts map[string]bool) string {
	var names []string
	sorted := slices.Sorted(maps.Keys(hosts))
	for _, h := range sorted[:min(len(sorted), maxHosts)] {
		names = append(names, code(h))
	}
	if more := len(sorted) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
