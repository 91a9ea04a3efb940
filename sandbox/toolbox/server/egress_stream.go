package server

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

const (
	// egressChunk is what is read of a connection at once. Bytes.
	egressChunk = 32 << 10
	// lingerFor is how long a program may go on sending on a connection that the client has closed:
	// closing with unread data would take from the program what it was answered.
	lingerFor = time.Second
	// swallowFor is how long a program may take to read the last that it was sent.
	swallowFor = time.Minute
)

var errEgressOver = errors.New("the client has closed the connection")

// egressStream is one connection of a program.
type egressStream struct {
	id     uint32
	conn   *net.TCPConn
	inbox  *wire.Inbox
	sender wire.Sender
	over   chan struct{} // closed when the client has closed the stream
	cancel sync.Once
}

// open begins a stream, or refuses the connection at once when there are too many. The client demands
// rising numbers, so that each is told to it before the next is given.
func (e *egress) open(conn *net.TCPConn, name string, port uint16) {
	e.opening.Lock()
	defer e.opening.Unlock()
	s := e.admit(conn, name)
	if s == nil {
		abort(conn)
		return
	}
	ctx := context.Background() // sending ends with the session
	err := s.sender.Send(ctx, wire.Frame{Type: wire.EgressConnect, Stream: s.id, Payload: wire.EgressTarget(name, port)})
	e.session.work.Go(func() {
		if err == nil {
			e.run(ctx, s)
		} else {
			abort(conn)
		}
		e.mu.Lock()
		delete(e.streams, s.id)
		e.mu.Unlock()
	})
}

// admit makes a stream, nil when there is no room for one.
func (e *egress) admit(conn *net.TCPConn, name string) *egressStream {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || len(e.streams) >= wire.MaxEgress {
		return nil
	}
	if known, ok := e.names[name]; ok {
		e.recent.MoveToFront(known)
	}
	e.last++
	s := &egressStream{
		id:     e.last,
		conn:   conn,
		inbox:  wire.NewInbox(wire.DownWindow),
		sender: wire.Sender{Stream: e.last, Credit: wire.NewAllowance(wire.UpWindow), Send: e.session.send},
		over:   make(chan struct{}),
	}
	e.streams[s.id] = s
	return s
}

// run carries a connection until both sides have ended it. The stream keeps its place until the
// client has closed it.
func (e *egress) run(ctx context.Context, s *egressStream) {
	var both sync.WaitGroup
	both.Go(func() { s.up(ctx) })
	both.Go(func() { s.down(ctx) })
	both.Wait()
	_ = s.conn.Close()
	select {
	case <-s.over:
	case <-e.session.done:
	}
}

// up sends what the program writes.
func (s *egressStream) up(ctx context.Context) {
	buf := make([]byte, egressChunk)
	discard := false
	for {
		n, err := s.conn.Read(buf)
		if n > 0 && !discard {
			discard = s.sender.Write(ctx, buf[:n]) != nil
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			_ = s.sender.Send(ctx, wire.Frame{Type: wire.End, Stream: s.id})
			return
		default:
			s.giveUp(ctx)
			return
		}
	}
}

// down writes what the client sends.
func (s *egressStream) down(ctx context.Context) {
	buf := make([]byte, egressChunk)
	for {
		n, grant, err := s.inbox.Read(ctx, buf)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			_ = s.conn.CloseWrite() // a program that is gone needs no end
			return
		default: // over without an end: the program must not take it for one
			abort(s.conn)
			return
		}
		if _, err := s.conn.Write(buf[:n]); err != nil {
			s.giveUp(ctx)
			return
		}
		if grant > 0 {
			_ = s.sender.Send(ctx, wire.Frame{Type: wire.Credit, Stream: s.id, Payload: wire.CreditPayload(grant)})
		}
	}
}

// giveUp tells the client, once, that the program is gone.
func (s *egressStream) giveUp(ctx context.Context) {
	s.cancel.Do(func() { _ = s.sender.Send(ctx, wire.Frame{Type: wire.Cancel, Stream: s.id}) })
}

// accept takes one frame of an egress stream and never waits.
func (e *egress) accept(f wire.Frame) error {
	e.mu.Lock()
	s := e.streams[f.Stream]
	e.mu.Unlock()
	if s == nil {
		return nil // it is over
	}
	switch f.Type {
	case wire.Data:
		return s.inbox.Push(f.Payload)
	case wire.End:
		s.inbox.Close(io.EOF)
	case wire.Credit:
		return s.sender.Credit.Grant(f.Payload)
	case wire.EgressClose:
		return s.close()
	default:
		return errProtocol
	}
	return nil
}

// close is the client's end of the stream.
func (s *egressStream) close() error {
	select {
	case <-s.over:
		return errProtocol
	default:
	}
	s.inbox.Close(errEgressOver)
	s.sender.Credit.Close(errEgressOver)
	_ = s.conn.SetReadDeadline(time.Now().Add(lingerFor))
	_ = s.conn.SetWriteDeadline(time.Now().Add(swallowFor))
	close(s.over)
	return nil
}

// abort resets a connection: the program learns at once that nothing comes.
func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
