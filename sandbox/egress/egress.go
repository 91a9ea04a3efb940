// Package egress decides about every connection that a program in a sandbox opens, and carries those
// that may be. The toolbox hands each over with the host name that the program looked up; nothing else
// leaves a sandbox, which has no network interface.
//
// A connection is judged by its name and port under the session's policy of that moment. What it says
// about its target must be the same: the server name of TLS on port 443, the Host of every HTTP request
// on port 80. Then the name is resolved here, all its addresses must be public, and one of them is
// dialled without a second look-up. Inside TLS the proxy sees nothing: a server that holds other sites
// too will serve them to who asks after the handshake.
package egress

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

const (
	portHTTP  = 80
	portHTTPS = 443

	// maxConnections bounds what one worker carries for all its sessions, each with a socket of its own.
	maxConnections = 2048
	// helloWithin bounds the time until a program has said what it wants; resolveWithin and dialWithin
	// what follows. Policy decides at once.
	helloWithin   = 5 * time.Second
	resolveWithin = 5 * time.Second
	attemptWithin = 5 * time.Second // for one address
	dialWithin    = 10 * time.Second
	// idleWithin ends a connection on which nothing moves.
	idleWithin = 5 * time.Minute
)

// Policies says what a session's sandbox may reach. It is asked for every connection, so that a change
// counts at once. An error refuses the connection.
type Policies interface {
	EgressPolicy(ctx context.Context, id core.SessionID) (core.EgressPolicy, error)
}

// Recorder is told of each connection, once, when it is over, or before the program learns that it is
// refused. It must not block. The
// record's MessageID is empty: the recorder knows which turn it was.
type Recorder interface {
	RecordEgress(r core.EgressRecord)
}

// Resolver finds the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are what a Proxy is made of.
type Options struct {
	Policies Policies
	Recorder Recorder
	// Private are the operator's exceptions, host:port: these may have addresses that are not public
	// and ports other than 80 and 443. They are reachable under every policy but none.
	Private []string
	// MaxBytes is what one session may send and receive, together and in its whole life; 0 is no bound.
	MaxBytes int64
	// Resolver is nil outside tests.
	Resolver Resolver
	// Dial is nil outside tests.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Proxy is the way out of all sandboxes of one worker.
type Proxy struct {
	policies Policies
	recorder Recorder
	private  map[target]bool
	ports    []uint16
	maxBytes int64
	maxOpen  int64
	resolver Resolver
	dial     func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	running  atomic.Int64
}

// target is what a program asks for.
type target struct {
	host string
	port uint16
}

// New makes a Proxy. Error: invalid_configuration when an exception is not host:port.
func New(o Options) (*Proxy, error) {
	private, err := parsePrivate(o.Private)
	if err != nil {
		return nil, err
	}
	p := &Proxy{policies: o.Policies, recorder: o.Recorder, private: private, ports: []uint16{portHTTP, portHTTPS}, maxBytes: o.MaxBytes, maxOpen: maxConnections, resolver: o.Resolver, dial: o.Dial}
	for t := range private {
		if !slices.Contains(p.ports, t.port) {
			p.ports = append(p.ports, t.port)
		}
	}
	if p.resolver == nil {
		p.resolver = &net.Resolver{PreferGo: true} // no thread for each look-up, and it ends with its context
	}
	if p.dial == nil {
		var dialer net.Dialer
		p.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", to.String())
		}
	}
	return p, nil
}

// Session is the way out of one session's sandbox, for one attach.
func (p *Proxy) Session(id core.SessionID) toolbox.Egress {
	return session{Proxy: p, id: id, traffic: &traffic{most: p.maxBytes}}
}

type session struct {
	*Proxy
	id      core.SessionID
	traffic *traffic
}

// Ports are 80 and 443 and those of the operator's exceptions.
func (s session) Ports() []uint16 { return s.ports }

// Connect judges a connection and carries it to its end.
func (s session) Connect(ctx context.Context, name string, port uint16, program toolbox.EgressConn) {
	c := &connection{Proxy: s.Proxy, target: target{name, port}}
	c.program = &metered{EgressConn: program, moved: func(n int) error {
		if s.traffic.add(n) && c.allowed() {
			return c.refuse(TrafficSpent)
		}
		return nil
	}}
	defer s.running.Add(-1)
	began := time.Now()
	full := s.running.Add(1) > s.maxOpen
	c.record = sync.OnceFunc(func() {
		s.recorder.RecordEgress(core.EgressRecord{
			SessionID: s.id,
			Host:      name,
			Port:      int(port),
			Allowed:   c.allowed(),
			Rule:      string(c.rule()),
			Sent:      c.program.sent.Load(),
			Received:  c.program.received.Load(),
			StartedAt: began,
			EndedAt:   time.Now(),
		})
	})
	if c.decided = s.judge(ctx, c.target, full); !c.allowed() {
		c.record()
	}
	c.serve(ctx)
	c.record()
}
