// Package wire is the toolbox's protocol: frames over one byte stream, flow control by credit, and
// the requests and results of each verb. Both halves use it; it imports the standard library only.
//
// A connection begins with Preamble zero bytes and a Hello frame with a fresh nonce; the toolbox
// drops what it was sending and answers HelloOK with the same nonce, and the client ignores all that
// came before. Then each request has a stream number of its own:
//
//	client → toolbox   Request, Data…, End, Cancel, Credit, Ping
//	toolbox → client   Data…, Result…, Finish, Credit, Pong, Broken
//
// Every frame but those two bears the connection's Seal. A toolbox that reads anything else, from a
// client that died in the middle of a frame or from a second one that mixes in, ends its requests,
// says Broken, and waits for the next Hello.
//
// Data is sent only within the credit that the receiver has granted (Window at first), so that
// neither side's reader ever waits for a consumer. Finish is the last frame of a stream.
package wire

// Version is what both halves must have in common.
const Version = 4

const (
	// MaxFrame bounds a whole frame, MaxPayload what it carries. Bytes.
	MaxFrame   = 64 << 10
	MaxPayload = MaxFrame - headerSize - trailerSize
	// Preamble is the number of zero bytes before a Hello: more than a frame, so that whatever half
	// frame a killed client left behind is over.
	Preamble = 65600
	// Window is the credit that each direction of a stream starts with. Bytes.
	Window = 256 << 10
	// MaxResult bounds the joined Result frames of one stream. Bytes.
	MaxResult = 4 << 20
	// MaxStreams bounds the requests that are open at once on one connection.
	MaxStreams = 32
	// NonceSize is the length of a Hello's random part. Bytes.
	NonceSize = 16
)

// Type says what a frame is.
type Type byte

// The frame types.
const (
	Hello Type = iota + 1
	HelloOK
	Request
	Data
	End
	Cancel
	Credit
	Result
	Finish
	Ping
	Pong
	Broken

	EgressConnect Type = 32
	EgressClose   Type = 33
)
