package server

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxHostNames bounds the names that have an address at once; each has a listener for every port.
const maxHostNames = 512

// egress is what one client lets out: the names that its programs have looked up, with a listener
// each, and the connections.
type egress struct {
	session *session
	ports   []uint16
	opening sync.Mutex // held while a stream is told to the client

	mu      sync.Mutex
	closed  bool
	names   map[string]*list.Element // of *hostName
	recent  *list.List               // the one used last in front
	taken   map[netip.Addr]bool
	next    uint16 // where the search for a free address goes on
	streams map[uint32]*egressStream
	last    uint32 // newest stream number
}

// hostName is a name that has an address.
type hostName struct {
	name      string
	addr      netip.Addr
	listeners []net.Listener
}

func newEgress(s *session, ports []uint16) *egress {
	return &egress{
		session: s,
		ports:   ports,
		names:   map[string]*list.Element{},
		recent:  list.New(),
		taken:   map[netip.Addr]bool{},
		streams: map[uint32]*egressStream{},
		last:    wire.FirstEgress,
	}
}

// address returns the name's address and listens there. The name unused for longest makes room for a
// new one.
func (e *egress) address(name string) (netip.Addr, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return netip.Addr{}, errNobody
	}
	if known, ok := e.names[name]; ok {
		e.recent.MoveToFront(known)
		return known.Value.(*hostName).addr, nil
	}
	if len(e.names) >= maxHostNames {
		e.forget(e.recent.Back())
	}
	host := &hostName{name: name, addr: e.free()}
	var config net.ListenConfig
	for _, port := range e.ports {
		// A program of the sandbox may have the port at all addresses: then it talks to itself.
		if listener, err := config.Listen(context.Background(), "tcp4", netip.AddrPortFrom(host.addr, port).String()); err == nil {
			host.listeners = append(host.listeners, listener)
			e.session.work.Go(func() { e.acceptLoop(listener, name, port) })
		}
	}
	e.names[name] = e.recent.PushFront(host)
	e.taken[host.addr] = true
	return host.addr, nil
}

// free finds an address that no name has. They are given in turn, so that one comes back late.
func (e *egress) free() netip.Addr {
	for {
		e.next++
		addr := netip.AddrFrom4([4]byte{127, 100, byte(e.next >> 8), byte(e.next)})
		if e.next != 0 && !e.taken[addr] {
			return addr
		}
	}
}

// forget stops listening for a name. Its connections go on.
func (e *egress) forget(element *list.Element) {
	host := e.recent.Remove(element).(*hostName)
	for _, listener := range host.listeners {
		_ = listener.Close()
	}
	delete(e.names, host.name)
	delete(e.taken, host.addr)
}

// acceptLoop opens a stream for each connection to a name.
func (e *egress) acceptLoop(listener net.Listener, name string, port uint16) {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			<-time.After(acceptPause)
		default:
			e.open(conn.(*net.TCPConn), name, port)
		}
	}
}

// reset ends all connections and forgets all names.
func (e *egress) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.recent.Len() > 0 {
		e.forget(e.recent.Back())
	}
	for _, s := range e.streams {
		abort(s.conn)
	}
}

// close is reset for good, with nobody to tell.
func (e *egress) close() {
	e.mu.Lock()
	e.closed = true
	for _, s := range e.streams {
		s.inbox.Close(errNobody)
		s.sender.Credit.Close(errNobody)
	}
	e.mu.Unlock()
	e.reset()
}
