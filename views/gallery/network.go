package gallery

import (
	"time"

	"agent-sandboxing/views/components"
	"agent-sandboxing/views/layout"
	"agent-sandboxing/views/pages"
)

// network is what the sample session's sandbox has reached.
func network(now time.Time) components.NetworkProps {
	return components.NetworkProps{
		SessionID: id(1), Mode: "allowlist", Total: 37, Contacted: 2, Refused: 3, Sent: 48 << 10, Received: 13 << 20, Now: now,
		AllURL: "/chat-sessions/" + id(1) + "/network", ListURL: "/installations/11/repositories/21/network",
		Rows: []components.ConnectionProps{
			{Host: "telemetry.example.com", Port: 443, Outcome: "refused", Rule: "host_not_allowed", Reason: "The host is on no list.", Connections: 4, LastAt: now.Add(-20 * time.Second), CanAllow: true},
			{Host: "registry.example.com", Port: 443, Outcome: "allowed", Rule: "host_listed", Reason: "The host is on a list.", Connections: 128, Sent: 47 << 10, Received: 12 << 20, LastAt: now.Add(-time.Minute)},
			{Host: "a-very-long-name-that-goes-on-and-on.and-on.and-on.internal.example.com", Port: 80, Outcome: "refused", Rule: "address_not_public", Reason: "The name leads to an address that is not public.", Connections: 1, LastAt: now.Add(-2 * time.Minute)},
			{Host: "proxy.example.com", Port: 443, Outcome: "allowed_now", Rule: "host_not_allowed", Reason: "The host was on no list.", Connections: 2, LastAt: now.Add(-3 * time.Minute)},
			{Host: "typo.example.com", Port: 443, Outcome: "failed", Rule: "name_not_found", Reason: "The name has no address.", Connections: 1, LastAt: now.Add(-4 * time.Minute)},
			{Outcome: "refused", Rule: "host_not_allowed", Reason: "The host is on no list.", Connections: 9000, LastAt: now.Add(-4 * time.Minute)},
		},
	}
}

func narrowDetails(p pages.SessionProps) pages.SessionProps {
	p.Tab = "details"
	return p
}

func networkLog(l layout.Props) pages.NetworkLogProps {
	n := network(l.Now)
	n.AllURL = ""
	return pages.NetworkLogProps{Layout: l, Session: "Fix the rounding of half cents in split postings", Network: n}
}

func repositoryNetwork(l layout.Props, admin bool, problem string) pages.RepositoryNetworkProps {
	p := pages.RepositoryNetworkProps{
		Layout: l, Installation: 11, Repository: 21, FullName: "octo-org/ledger", Effective: "allowlist", Chosen: "allowlist", Ceiling: "open",
		Modes: []string{"open", "allowlist", "none"}, Operator: []string{"proxy.example.com", "sum.golang.org"}, CanList: true, CanChoose: admin,
		Hosts: []pages.HostProps{
			{Host: "*.example.com", AddedBy: "octo-dev", AddedAt: l.Now.Add(-48 * time.Hour)},
			{Host: "a-very-long-name-that-goes-on-and-on.and-on.and-on.internal.example.com", AddedAt: l.Now.Add(-50 * time.Hour)},
			{Host: "registry.example.com", AddedBy: "octo-lead", AddedAt: l.Now.Add(-time.Minute)},
		},
	}
	if problem != "" {
		p.Typed, p.HostError = "https://registry.example.com/left-pad", problem
	}
	return p
}
