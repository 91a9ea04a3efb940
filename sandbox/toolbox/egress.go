package toolbox

import (
	"context"
	"errors"
	"io"
	"net"

	"agent-sandboxing/sandbox/toolbox/wire"
)

var errGivenUp = errors.New("the program has given up the connection")

// Egress carries the connections that programs in the sandbox open.
type Egress interface {
	// Ports are what is listened on in the sandbox, at the address of every name: 1 to 16 of them.
	Ports() []uint16
	// Connect serves one connection to name, a host name in lower case, until it is over; nobody has
	// decided about it yet. At most wire.MaxEgress run at once. It returns soon after ctx is done,
	// which is when the program has given up, or the sandbox is gone; conn then fails.
	Connect(ctx context.Context, name string, port uint16, conn EgressConn)
}

// EgressConn is a program's end of a connection. Close makes reads and writes fail at once.
type EgressConn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// ServeEgress lets the sandbox's programs out through e, until the client is closed. It is called
// once. Errors: network_unavailable when the sandbox cannot listen.
func (c *Client) ServeEgress(ctx context.Context, e Egress) error {
	c.mu.Lock()
	c.egress.handler = e
	c.mu.Unlock()
	_, err := do[wire.NetworkArgs, struct{}](ctx, c, request{verb: wire.VerbNetwork}, wire.NetworkArgs{Ports: e.Ports()})
	return err
}

// egressStreams are the connections of one client; its mu guards them.
type egressStreams struct {
	handler Egress // nil until something is let out
	open    map[uint32]*egressConn
	last    uint32 // newest stream number
}

// acceptEgress takes a frame of an egress stream and never waits; the caller holds mu.
func (c *Client) acceptEgress(ctx context.Context, f wire.Frame) error {
	if f.Type == wire.EgressConnect {
		return c.openEgress(ctx, f)
	}
	conn := c.egress.open[f.Stream]
	if conn == nil {
		if f.Stream > c.egress.last {
			return errForged
		}
		return nil // it is over
	}
	switch f.Type {
	case wire.Data:
		return conn.inbox.Push(f.Payload)
	case wire.End:
		conn.inbox.Close(io.EOF)
	case wire.Credit:
		return conn.out.Credit.Grant(f.Payload)
	case wire.Cancel:
		conn.end(errGivenUp)
	default:
		return errForged
	}
	return nil
}

func (c *Client) openEgress(ctx context.Context, f wire.Frame) error {
	name, port, ok := wire.ParseEgressTarget(f.Payload)
	e := &c.egress
	if !ok || e.handler == nil || c.err != nil || f.Stream <= e.last || len(e.open) >= wire.MaxEgress {
		return errForged
	}
	e.last = f.Stream
	own, cancel := context.WithCancelCause(ctx)
	conn := &egressConn{
		inbox:  wire.NewInbox(wire.UpWindow),
		out:    wire.Sender{Stream: f.Stream, Credit: wire.NewAllowance(wire.DownWindow), Send: c.send},
		cancel: cancel,
	}
	if e.open == nil {
		e.open = map[uint32]*egressConn{}
	}
	e.open[f.Stream] = conn
	handler := e.handler
	c.loops.Go(func() {
		handler.Connect(own, name, port, conn)
		c.mu.Lock()
		delete(c.egress.open, conn.out.Stream)
		c.mu.Unlock()
		conn.end(net.ErrClosed)
		_ = c.send(ctx, wire.Frame{Type: wire.EgressClose, Stream: conn.out.Stream})
	})
	return nil
}

// egressConn is the control plane's half of a connection. The window bounds what it holds.
type egressConn struct {
	inbox  *wire.Inbox
	out    wire.Sender
	cancel context.CancelCauseFunc // of what serves it
}

func (e *egressConn) Read(p []byte) (int, error) {
	ctx := context.Background() // Close ends a read
	n, grant, err := e.inbox.Read(ctx, p)
	if grant > 0 {
		if serr := e.out.Send(ctx, wire.Frame{Type: wire.Credit, Stream: e.out.Stream, Payload: wire.CreditPayload(grant)}); serr != nil && err == nil {
			err = serr
		}
	}
	return n, err
}

func (e *egressConn) Write(p []byte) (int, error) {
	if err := e.out.Write(context.Background(), p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite says that no more will be written.
func (e *egressConn) CloseWrite() error {
	return e.out.Send(context.Background(), wire.Frame{Type: wire.End, Stream: e.out.Stream})
}

func (e *egressConn) Close() error {
	e.end(net.ErrClosed)
	return nil
}

func (e *egressConn) end(cause error) {
	e.inbox.Close(cause)
	e.out.Credit.Close(cause)
	e.cancel(cause)
}
