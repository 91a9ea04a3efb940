package modeltest

import "strings"

// registry is what the demo asks, with a client that needs no setting.
const registry = "npm's registry"

// connect looks what can be reached from the sandbox.
func (d *demo) connect() []Call {
	if !d.wants("network|download") {
		return nil
	}
	return []Call{CallJSON("bash", map[string]any{"command": "npm view left-pad version --fetch-retries=0", "timeout": 60})}
}

func (d *demo) seeConnect(results []string) {
	switch result := last(results); {
	case d.failedCall("Asking "+registry, result):
	case strings.Contains(result, "Only the person can allow a host"):
		d.failed = append(d.failed, "Reached "+registry+": the session's network refuses it. Press *Allow this host* in its *Network* panel and ask again.")
	case strings.Contains(result, "[exit code"):
		d.failed = append(d.failed, "Reached "+registry+": "+exitOf(result)+".")
	default:
		d.done = append(d.done, "Asked "+registry+" for the version of a package, over the session's network.")
	}
}
