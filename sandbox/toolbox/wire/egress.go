package wire

import "encoding/binary"

// Egress streams are the connections that programs in the sandbox open. The toolbox opens them, with
// rising numbers from FirstEgress, and the client alone ends them:
//
//	toolbox → client   EgressConnect, Data…, End, Credit, Cancel (the program has given up)
//	client → toolbox   Data…, End, Credit, EgressClose (the last frame of the stream)
//
// Data needs no answer to EgressConnect first: it waits in the window.
const (
	// FirstEgress is the lowest number of an egress stream; a request's number is below it.
	FirstEgress uint32 = 1 << 31
	// MaxEgress bounds the egress streams of one sandbox that have no EgressClose yet.
	MaxEgress = 256
	// UpWindow and DownWindow are the credit that the directions of an egress stream start with: from
	// the program and to it. Bytes. The receiver holds them: UpWindow times MaxEgress is what a hostile
	// toolbox can make the client hold, and DownWindow is as large as fast downloads need.
	UpWindow   = 64 << 10
	DownWindow = 256 << 10
	// MaxPorts bounds the ports of a NetworkArgs.
	MaxPorts = 16
	// maxHostName is DNS's own limit. Bytes.
	maxHostName = 253
)

// EgressTarget is the payload of an EgressConnect.
func EgressTarget(name string, port uint16) []byte {
	return append(binary.BigEndian.AppendUint16(nil, port), name...)
}

// ParseEgressTarget takes the payload of an EgressConnect apart; false when it is none.
func ParseEgressTarget(p []byte) (name string, port uint16, ok bool) {
	if len(p) < 3 {
		return "", 0, false
	}
	name, port = string(p[2:]), binary.BigEndian.Uint16(p)
	return name, port, port != 0 && IsHostName(name)
}

// IsHostName says whether name is one that DNS can hold, in lower case and without a final dot:
// labels of letters, digits, hyphens and underscores.
func IsHostName(name string) bool {
	if name == "" || len(name) > maxHostName {
		return false
	}
	label := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == '.' && label > 0 && i+1 < len(name):
			label = 0
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			if label++; label > 63 {
				return false
			}
		default:
			return false
		}
	}
	return true
}
