package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	// maxHello bounds a ClientHello with its framing. Bytes.
	maxHello = 16 << 10
	// extensionECH is the TLS extension that holds an encrypted server name, or looks as if.
	extensionECH = 0xfe0d
)

// accessDenied is a whole TLS record: the fatal alert access_denied, in the clear.
var accessDenied = []byte{21, 3, 3, 0, 2, 2, 49}

// serveTLS lets a TLS connection through whose handshake names the host that was looked up. A refusal
// is an alert, which programs show, and the end.
func (c *connection) serveTLS(ctx context.Context) {
	if c.allowed() {
		if hello, ok := c.hello(ctx); ok {
			c.carry(ctx, hello)
		}
	}
	if c.allowed() {
		return
	}
	if _, err := c.program.Write(accessDenied); err == nil {
		_ = c.program.CloseWrite()
	}
}

// hello reads the ClientHello and judges it; what was read has to go to the server.
func (c *connection) hello(ctx context.Context) (hello []byte, ok bool) {
	late := time.AfterFunc(helloWithin, func() { _ = c.program.Close() })
	name, hidden, hello, err := sniff(ctx, c.program)
	if !late.Stop() {
		err = io.EOF
	}
	switch {
	case errors.Is(err, errNotTLS):
		_ = c.refuse(NotTLS)
	case err != nil:
		_ = c.refuse(NothingAsked)
	case name == "":
		_ = c.refuse(ServerNameMissing)
	case name != c.target.host:
		_ = c.refuse(ServerNameDiffers)
	case hidden && c.rule() == HostListed:
		_ = c.refuse(ServerNameHidden)
	default:
		return hello, true
	}
	return nil, false
}

var (
	errSeen   = errors.New("the ClientHello was read")
	errNotTLS = errors.New("not the beginning of TLS")
)

// sniff reads a ClientHello with the standard library's own server, which is as strict as servers are,
// and returns the server name in lower case, whether another may be hidden, and every byte that was
// read. Errors: errNotTLS, or what reading met.
func sniff(ctx context.Context, from io.Reader) (name string, hidden bool, read []byte, err error) {
	conn := &sniffed{from: io.LimitReader(from, maxHello)}
	var hello *tls.ClientHelloInfo
	handshake := tls.Server(conn, &tls.Config{
		MinVersion: tls.VersionTLS10, // the server decides
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			hello = h
			return nil, errSeen
		},
	}).HandshakeContext(ctx)
	switch {
	case hello != nil:
		return strings.ToLower(hello.ServerName), slices.Contains(hello.Extensions, extensionECH), conn.read.Bytes(), nil
	case conn.err != nil && conn.read.Len() < maxHello:
		return "", false, nil, conn.err
	}
	return "", false, nil, errors.Join(errNotTLS, handshake)
}

// sniffed is a connection that is only read.
type sniffed struct {
	net.Conn // nil: nothing else is used
	from     io.Reader
	read     bytes.Buffer
	err      error // of reading
}

func (s *sniffed) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.read.Write(p[:n])
	s.err = err
	return n, err
}

func (s *sniffed) Close() error { return nil } // the end of the context also ends what it reads from

func (s *sniffed) Write(p []byte) (int, error) { return len(p), nil } // alerts are ours to send
