package core

// EgressReason says in one sentence for people why a rule refused a connection or let it through. An
// id that this version does not know is told as itself.
func EgressReason(rule string) string {
	switch rule {
	case "open":
		return "Any public host is allowed."
	case "host_listed":
		return "The host is on a list."
	case EgressPrivate:
		return "The operator has opened this host."
	case "network_off":
		return "The session has no network."
	case EgressNotListed:
		return "The host is on no list."
	case "host_is_address":
		return "Hosts are reached by name only, never by address."
	case "port_not_allowed":
		return "Only ports 80 and 443 are reachable."
	case "policy_unreadable":
		return "What is allowed could not be read at that moment."
	case "too_many_connections":
		return "Too many connections were open."
	case "traffic_spent":
		return "The session has sent and received as much as one may (EGRESS_MAX_MIB)."
	case "nothing_asked":
		return "The program went away before it had asked for anything."
	case "not_tls":
		return "Port 443 is for TLS only."
	case "server_name_missing":
		return "The TLS handshake named no server."
	case "server_name_differs":
		return "The TLS handshake named another server than the one that was looked up."
	case "server_name_hidden":
		return "The TLS handshake hid the server's name, which a list of hosts does not allow."
	case "not_http":
		return "Port 80 is for HTTP only."
	case "host_header_differs":
		return "The request named another host than the one that was looked up."
	case "tunnel_not_allowed":
		return "Tunnels through port 80 are not allowed."
	case "name_not_found":
		return "The name has no address."
	case "address_not_public":
		return "The name leads to an address that is not public."
	case "connect_failed":
		return "The host did not answer."
	}
	return "Rule " + rule + "."
}

// EgressNotListed is the rule of a host that an allowlist lacks: the one that an entry in the list
// changes.
const EgressNotListed = "host_not_allowed"

// EgressPrivate is the rule of a host inside the operator's own network.
const EgressPrivate = "private_exception"

// EgressFailures are the rules of connections that did not come about although nothing forbade them.
func EgressFailures() []string { return []string{"name_not_found", "connect_failed", "nothing_asked"} }
