package egress

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// maxAddresses bounds the addresses of one name that are looked at.
const maxAddresses = 64

// connection is one that a program wants.
type connection struct {
	*Proxy
	target  target
	program *metered
	asked   atomic.Bool // HTTP: a request was read
	record  func()      // tells the recorder, once

	mu      sync.Mutex
	decided Rule // the first refusal counts
}

// refused is the failure of a connection that a rule ends.
type refused struct{ rule Rule }

func (r refused) Error() string { return string(r.rule) }

// refuse ends what the connection may do; the first rule is the one that counts.
func (c *connection) refuse(rule Rule) error {
	c.mu.Lock()
	if c.decided == "" || c.decided.allows() {
		c.decided = rule
	}
	decided := c.decided
	c.mu.Unlock()
	c.record()
	return refused{decided}
}

func (c *connection) rule() Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.decided
}

func (c *connection) allowed() bool { return c.rule().allows() }

// judge decides by policy, name and port.
func (s session) judge(ctx context.Context, t target, full bool) (rule Rule) {
	if full { // the last thing to do then is to ask the database
		return TooManyConnections
	}
	policy, err := s.policies.EgressPolicy(ctx, s.id)
	if err == nil {
		s.traffic.begin(policy.Moved)
	}
	switch {
	case err != nil:
		return PolicyUnreadable
	case policy.Mode != core.EgressOpen && policy.Mode != core.EgressAllowlist:
		return NetworkOff
	case s.traffic.add(0):
		return TrafficSpent
	case isAddress(t.host):
		return HostIsAddress
	case s.private[t]:
		return PrivateException
	case t.port != portHTTP && t.port != portHTTPS:
		return PortNotAllowed
	case policy.Mode == core.EgressOpen:
		return Open
	case policy.Listed(t.host):
		return HostListed
	}
	return HostNotAllowed
}

func (c *connection) serve(ctx context.Context) {
	switch c.target.port {
	case portHTTP:
		c.serveHTTP(ctx)
	case portHTTPS:
		c.serveTLS(ctx)
	default: // an exception of the operator: whatever it speaks
		if c.allowed() {
			c.carry(ctx, nil)
		}
	}
}

// reach resolves the name, demands that every address is public, and dials one of them.
func (c *connection) reach(ctx context.Context) (net.Conn, error) {
	addrs, err := c.resolve(ctx)
	if err != nil {
		return nil, err
	}
	return c.dialOne(ctx, addrs)
}

func (c *connection) resolve(ctx context.Context) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	host, exception := c.target.host, c.private[c.target]
	if !exception {
		host += "." // the search domains of this machine are not for sandboxes
	}
	addrs, err := c.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return nil, c.refuse(NameNotFound)
	}
	addrs = addrs[:min(len(addrs), maxAddresses)]
	for _, addr := range addrs {
		if !exception && (!isPublic(addr) || isOwn(addr)) {
			return nil, c.refuse(AddressNotPublic)
		}
	}
	// IPv4 first: where there is no way for IPv6, it may take long to find out.
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return a.Unmap().BitLen() - b.Unmap().BitLen() })
	return addrs, nil
}

// dialOne tries the addresses in turn.
func (c *connection) dialOne(ctx context.Context, addrs []netip.Addr) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	for _, addr := range addrs {
		attempt, done := context.WithTimeout(ctx, attemptWithin)
		conn, err := c.dial(attempt, netip.AddrPortFrom(addr.Unmap(), c.target.port))
		done()
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, c.refuse(ConnectFailed)
}

// metered counts what a program sends and receives.
type metered struct {
	toolbox.EgressConn
	sent, received atomic.Int64
	moved          func(n int) error // an error ends the connection
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.EgressConn.Read(p)
	m.sent.Add(int64(n))
	if over := m.moved(n); over != nil {
		return n, over
	}
	return n, err
}

func (m *metered) Write(p []byte) (int, error) {
	n, err := m.EgressConn.Write(p)
	m.received.Add(int64(n))
	if over := m.moved(n); over != nil {
		return n, over
	}
	return n, err
}

// traffic is what a session has moved both ways: what is on record when the attach lets the first
// connection out, and every byte since. A connection is on record only when it is over.
type traffic struct {
	most  int64 // 0 is no bound
	once  sync.Once
	bytes atomic.Int64
}

func (t *traffic) begin(onRecord int64) { t.once.Do(func() { t.bytes.Add(onRecord) }) }

// add counts n bytes more and says whether that is too much.
func (t *traffic) add(n int) (over bool) {
	return t.bytes.Add(int64(n)) > t.most && t.most > 0
}
