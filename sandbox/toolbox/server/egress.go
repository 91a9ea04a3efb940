package server

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// acceptPause is how long a listener rests when the system has no room for another connection.
const acceptPause = 5 * time.Millisecond

// Network is the way out of a sandbox that has no interface but loopback. It is the sandbox's DNS
// server and gives every name its own address in 127.100.0.0/16, listens there, and carries each
// connection as a stream to the client, which decides about it. It never sends anything by itself.
//
// With no client, or one that did not ask for it, nothing listens but the DNS server, which refuses.
type Network struct {
	dns *dnsServer

	mu      sync.Mutex
	current *egress // nil when no client lets anything out
}

// OpenNetwork takes over DNS at an address such as 127.0.0.1:53.
func OpenNetwork(ctx context.Context, address string) (*Network, error) {
	n := &Network{}
	dns, err := listenDNS(ctx, address, n)
	if err != nil {
		return nil, err
	}
	n.dns = dns
	return n, nil
}

// Close stops the DNS server. Connections end with their client.
func (n *Network) Close() error { return n.dns.Close() }

// open lets the programs of the client's sandbox out until the client is gone.
func (n *Network) open(s *session, a wire.NetworkArgs) error {
	if n == nil {
		return wire.Fail(wire.NetworkMissing, "")
	}
	if len(a.Ports) == 0 || len(a.Ports) > wire.MaxPorts || slices.Contains(a.Ports, 0) {
		return wire.Fail(wire.BadRequest, string(wire.VerbNetwork))
	}
	e := newEgress(s, a.Ports)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !s.letOut(e) {
		return wire.Fail(wire.BadRequest, string(wire.VerbNetwork)) // a second time
	}
	if n.current != nil {
		n.current.close() // of a client that is gone; the addresses begin anew
	}
	n.current = e
	s.work.Go(func() {
		<-s.done
		n.mu.Lock()
		if n.current == e {
			n.current = nil
		}
		n.mu.Unlock()
		e.close()
	})
	return nil
}

// reset ends every connection and forgets every name: the programs that had them are dead.
func (n *Network) reset() {
	if n == nil {
		return
	}
	if e := n.owner(); e != nil {
		e.reset()
	}
}

func (n *Network) owner() *egress {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

func (n *Network) address(name string) (netip.Addr, error) {
	e := n.owner()
	if e == nil {
		return netip.Addr{}, errNobody
	}
	return e.address(name)
}
