package core

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// egressByStrictness are the modes, the strictest first.
func egressByStrictness() []EgressMode {
	return []EgressMode{EgressNone, EgressAllowlist, EgressOpen}
}

// Known says that m is one of the modes.
func (m EgressMode) Known() bool { return slices.Contains(egressByStrictness(), m) }

// Within returns m where it is at least as strict as ceiling, else ceiling. An unknown or empty m adds
// nothing to the ceiling.
func (m EgressMode) Within(ceiling EgressMode) EgressMode {
	order := egressByStrictness()
	if at := slices.Index(order, m); at >= 0 && at <= slices.Index(order, ceiling) {
		return m
	}
	return ceiling
}

// Modes are those at least as strict as m, the loosest first.
func (m EgressMode) Modes() []EgressMode {
	order := egressByStrictness()
	modes := slices.Clone(order[:slices.Index(order, m)+1])
	slices.Reverse(modes)
	return modes
}

// Listed says that host, in lower case and without a dot at its end, is one of the policy's Hosts or
// below one that is written as *.name. A wildcard does not hold for the name itself.
func (p EgressPolicy) Listed(host string) bool {
	return slices.ContainsFunc(p.Hosts, func(pattern string) bool {
		if parent, ok := strings.CutPrefix(pattern, "*"); ok {
			return len(host) > len(parent) && strings.HasSuffix(host, parent)
		}
		return host == pattern
	})
}

// Under is p below the operator's: the stricter mode, and the operator's hosts beside p's.
func (p EgressPolicy) Under(ceiling EgressMode, operator []string) EgressPolicy {
	return EgressPolicy{Mode: p.Mode.Within(ceiling), Hosts: slices.Concat(operator, p.Hosts)}
}

// MaxEgressHosts bounds a repository's list of hosts.
const MaxEgressHosts = 200

// maxHost is DNS's own bound of a name, in bytes.
const maxHost = 253

// ParseEgressHost reads an entry of a list of hosts: a name of at least two labels, or *. in front of
// one. It comes back in lower case without a dot at its end. Invalid host_invalid, which says why.
func ParseEgressHost(s string) (string, error) {
	pattern := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), ".")
	name, _ := strings.CutPrefix(pattern, "*.")
	invalid := func(why string) (string, error) { return "", Fail(Invalid, "host_invalid", why) }
	switch {
	case name == "":
		return invalid("Write a host name, such as registry.example.com.")
	case strings.ContainsAny(name, "/?#@\\ \t\r\n"):
		return invalid("Write the host alone, such as registry.example.com, without https:// and without a path.")
	case strings.Contains(name, "*"):
		return invalid("A * stands only for all names below a host: *.example.com.")
	case strings.Contains(name, ":"):
		return invalid("Leave the port out: a host in the list is reachable on 80 and 443.")
	case len(name) > maxHost:
		return invalid("A host name has at most 253 characters.")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !dnsLabel(label) {
			return invalid("This is no host name. One is made of letters, digits and hyphens between dots; others are written as xn--….")
		}
	}
	if _, err := strconv.Atoi(labels[len(labels)-1]); err == nil {
		return invalid("Addresses cannot be reached from a sandbox, only names. Write the host's name.")
	}
	if len(labels) < 2 {
		return invalid("Write the whole name with its domain, such as registry.example.com.")
	}
	return pattern, nil
}

func dnsLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// EgressRow sums a session's connections to one host and port that one rule decided.
type EgressRow struct {
	MessageID   MessageID // of the newest, "" outside a turn
	Host        string    // untrusted; "" sums all further hosts once the session has MaxEgressRows
	Port        int
	Allowed     bool
	Rule        string
	Connections int64
	Sent        int64     // bytes from the sandbox
	Received    int64     // bytes to the sandbox
	StartedAt   time.Time // of the first
	EndedAt     time.Time // of the newest
}

// MaxEgressRows bounds what is kept of one session: a program that makes up names cannot fill the table.
const MaxEgressRows = 500

// EgressSummary is what a session's sandbox has reached and tried to reach.
type EgressSummary struct {
	Rows []EgressRow // the newest first, the first of them only
	// Of all rows, also of those that Rows leaves out.
	Total          int
	Contacted      int   // rows that were allowed
	Refused        int   // rows that a rule forbade; the others failed (EgressFailures)
	Sent, Received int64 // bytes of those that were allowed
}

// EgressRefusal is a host that a command could not reach.
type EgressRefusal struct {
	Host string // untrusted
	Port int
	Rule string
}

// RepositoryHost is an entry of a repository's list.
type RepositoryHost struct {
	Host    string
	AddedBy string // login, "" when the account is gone
	AddedAt time.Time
}

// RepositoryNetwork is what sandboxes of new sessions on a repository may reach. Ceiling is the
// operator's, Chosen an administrator's, "" for none; Effective is the stricter of both.
type RepositoryNetwork struct {
	Repository Repository
	Ceiling    EgressMode
	Chosen     EgressMode
	Effective  EgressMode
	Hosts      []RepositoryHost // by name
	Operator   []string         // hosts that the operator lists for every repository
}
