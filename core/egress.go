package core

import "time"

// EgressMode decides what a sandbox may reach. In every mode only names on allowed ports can be
// reached, and never an address that is not public, but for the operator's exceptions.
type EgressMode string

const (
	EgressOpen      EgressMode = "open"      // any public host
	EgressAllowlist EgressMode = "allowlist" // the operator's and the repository's hosts
	EgressNone      EgressMode = "none"      // nothing
)

// EgressPolicy is what one session's sandbox may reach now.
type EgressPolicy struct {
	Mode EgressMode
	// Hosts are names in lower case, or *.name for every name below it. Used by EgressAllowlist only.
	Hosts []string
	// Moved is what the session's connections that are over have sent and received, in bytes.
	Moved int64
}

// EgressRecord is one decision about one connection, written when it is over or refused.
type EgressRecord struct {
	SessionID SessionID
	MessageID MessageID // "" outside a turn
	Host      string    // as the program asked for it: lower case, at most 253 bytes, untrusted
	Port      int
	Allowed   bool
	Rule      string // what decided: a stable snake_case id such as host_not_allowed
	Sent      int64  // bytes from the sandbox
	Received  int64  // bytes to the sandbox
	StartedAt time.Time
	EndedAt   time.Time
}
