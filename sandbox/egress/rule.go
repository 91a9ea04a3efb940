package egress

// Rule is what decided about a connection: a stable id for records and pages.
type Rule string

// The rules that let a connection through.
const (
	// Open: the policy allows any public host.
	Open Rule = "open"
	// HostListed: the host is on the list of the operator or the repository.
	HostListed Rule = "host_listed"
	// PrivateException: the operator has opened this host and port, whatever its address.
	PrivateException Rule = "private_exception"
)

// The rules that refuse one.
const (
	// NetworkOff: the policy allows nothing.
	NetworkOff Rule = "network_off"
	// HostNotAllowed: the policy is a list, and the host is not on it.
	HostNotAllowed Rule = "host_not_allowed"
	// HostIsAddress: the name is an IP address, in any notation.
	HostIsAddress Rule = "host_is_address"
	// PortNotAllowed: the port is neither 80 nor 443, nor an exception of the operator for this host.
	PortNotAllowed Rule = "port_not_allowed"
	// PolicyUnreadable: the policy of the session could not be read.
	PolicyUnreadable Rule = "policy_unreadable"
	// TooManyConnections: the worker carries as many connections as it may.
	TooManyConnections Rule = "too_many_connections"
	// TrafficSpent: the session has sent and received all that it may.
	TrafficSpent Rule = "traffic_spent"
	// NothingAsked: the program closed the connection, or let the time pass, before it had said what it wants.
	NothingAsked Rule = "nothing_asked"
	// NotTLS: what came on port 443 was not the beginning of TLS.
	NotTLS Rule = "not_tls"
	// ServerNameMissing: the TLS handshake named no server.
	ServerNameMissing Rule = "server_name_missing"
	// ServerNameDiffers: the TLS handshake named another server than the one that was looked up.
	ServerNameDiffers Rule = "server_name_differs"
	// ServerNameHidden: the TLS handshake has an encrypted server name, and the policy is a list.
	ServerNameHidden Rule = "server_name_hidden"
	// NotHTTP: what came on port 80 was not an HTTP/1 request.
	NotHTTP Rule = "not_http"
	// HostHeaderDiffers: a request named another host than the one that was looked up.
	HostHeaderDiffers Rule = "host_header_differs"
	// TunnelNotAllowed: a request wanted a tunnel.
	TunnelNotAllowed Rule = "tunnel_not_allowed"
	// NameNotFound: the name has no address.
	NameNotFound Rule = "name_not_found"
	// AddressNotPublic: one of the name's addresses is private, local or otherwise not public.
	AddressNotPublic Rule = "address_not_public"
	// ConnectFailed: the host did not accept the connection.
	ConnectFailed Rule = "connect_failed"
)

// allows says whether a connection that the rule decided about was let through.
func (r Rule) allows() bool { return r == Open || r == HostListed || r == PrivateException }

// Explain says in a sentence or two what the rule means for the one whose connection it refused.
func (r Rule) Explain() string {
	switch r {
	case Open, HostListed, PrivateException:
		return "The connection is allowed."
	case NetworkOff:
		return "This sandbox has no network."
	case HostNotAllowed:
		return "The host is not on the list of hosts that this sandbox may reach."
	case HostIsAddress:
		return "Sandboxes reach hosts by name only, never by address."
	case PortNotAllowed:
		return "Sandboxes reach ports 80 and 443 only."
	case PolicyUnreadable:
		return "What this sandbox may reach could not be read just now. Try again."
	case TooManyConnections:
		return "Too many connections are open. Try again with fewer."
	case TrafficSpent:
		return "This session has sent and received as much as one may. Its network stays closed."
	case NothingAsked:
		return "No request came in time."
	case NotTLS:
		return "Port 443 is for TLS only."
	case ServerNameMissing:
		return "The TLS handshake must name the server (SNI)."
	case ServerNameDiffers:
		return "The TLS handshake names another server than the one that was looked up."
	case ServerNameHidden:
		return "Encrypted Client Hello is not allowed where hosts are listed."
	case NotHTTP:
		return "Port 80 is for HTTP/1 only."
	case HostHeaderDiffers:
		return "The request names another host than the one that was looked up."
	case TunnelNotAllowed:
		return "Tunnels through port 80 are not allowed."
	case NameNotFound:
		return "The name has no address."
	case AddressNotPublic:
		return "The name leads to an address that is not public."
	case ConnectFailed:
		return "The host could not be reached."
	}
	return "The connection was refused."
}
