package handlers

import (
	"slices"
	"strconv"

	"agent-sandboxing/core"
	"agent-sandboxing/views/components"
	"agent-sandboxing/views/link"
)

// network is the panel of what the session's sandbox has reached and what it was refused.
func (v sessionView) network() components.NetworkProps {
	e, repo := v.Egress, v.Session.Repository
	p := components.NetworkProps{
		SessionID: v.id(), Mode: string(v.Policy.Mode), Total: e.Total, Contacted: e.Contacted, Refused: e.Refused,
		Sent: e.Sent, Received: e.Received, Now: v.now, Live: !v.Session.Archived,
		AllURL: link.Network(v.id()), ListURL: link.RepositoryNetwork(int64(repo.InstallationID), int64(repo.ID)),
	}
	offered := make(map[string]bool)
	for _, r := range e.Rows {
		c := components.ConnectionProps{
			Host: r.Host, Port: r.Port, Outcome: egressOutcome(r), Rule: r.Rule, Reason: core.EgressReason(r.Rule),
			Connections: r.Connections, Sent: r.Sent, Received: r.Received, FirstAt: r.StartedAt, LastAt: r.EndedAt,
		}
		switch {
		case !v.listable(r):
		case v.Policy.Listed(r.Host):
			c.Outcome, c.Reason = "allowed_now", "The host was on no list then."
			p.Refused--
		default:
			c.CanAllow = !offered[r.Host] && (v.Rights.Push || v.Rights.Admin)
			offered[r.Host] = true // one button for a host with several ports
		}
		p.Rows = append(p.Rows, c)
	}
	return p
}

// listable says that a host was refused for want of an entry in the list, and nothing else.
func (v sessionView) listable(r core.EgressRow) bool {
	if r.Allowed || r.Rule != core.EgressNotListed || v.Policy.Mode != core.EgressAllowlist {
		return false
	}
	_, err := core.ParseEgressHost(r.Host)
	return err == nil
}

// refusedText is a refusal as the timeline tells it.
func refusedText(e core.EgressRefused) string {
	return "The network refused " + hostPort(e.Host, e.Port) + ". " + core.EgressReason(e.Rule)
}

// hostPort leaves the usual port out.
func hostPort(host string, port int) string {
	if port == 443 {
		return host
	}
	return host + ":" + strconv.Itoa(port)
}

// egressOutcome is allowed, refused or failed.
func egressOutcome(r core.EgressRow) string {
	switch {
	case r.Allowed:
		return "allowed"
	case slices.Contains(core.EgressFailures(), r.Rule):
		return "failed"
	}
	return "refused"
}
