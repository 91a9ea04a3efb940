package sandboxtest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/egress"
	"agent-sandboxing/sandbox/toolbox"
)

// OpenNetwork makes a new, empty workspace whose programs are let out through way.
type OpenNetwork func(t testing.TB, way toolbox.Egress) core.PlatformWorkspace

const (
	// NetworkSite is the one host that programs may reach. Its address is one for documentation, so
	// that nothing but its name in this suite leads anywhere.
	NetworkSite = "site.example.com"
	siteAddress = "203.0.113.10"
	// reboundSite leads to the site once.
	reboundSite = "rebound.example.com"
	// welcome is what it answers, and leaked what everything else does: programs that print it have
	// reached what they may not.
	welcome = "WELCOME"
	leaked  = "CANARY"
)

// Network is a control plane's way out, for tests: the real proxy, with names, addresses and a policy
// that the test decides about, and servers that answer for all of them.
type Network struct {
	Way toolbox.Egress

	site, forbidden server
	mu              sync.Mutex
	policy          core.EgressPolicy
	names           map[string][]string
	later           map[string][]string // what a name leads to from the second look-up on
	records         []core.EgressRecord
	breaches        []string
	recorded        chan struct{}
}

// server answers HTTP on one port and TLS on another.
type server struct{ http, https string }

// NewNetwork lets programs reach NetworkSite, and names that are set later, as policy says.
func NewNetwork(t testing.TB, policy core.EgressPolicy) *Network {
	t.Helper()
	n := &Network{policy: policy, names: map[string][]string{NetworkSite: {siteAddress}}, later: map[string][]string{}, recorded: make(chan struct{}, 1)}
	n.site = listen(t, func(w http.ResponseWriter, r *http.Request) {
		if known := r.Host == NetworkSite || r.Host == reboundSite; !known || r.TLS != nil && r.TLS.ServerName != r.Host {
			n.breach("the site was asked for " + r.Host)
			_, _ = io.WriteString(w, leaked)
			return
		}
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.Copy(w, io.MultiReader(strings.NewReader(welcome), r.Body))
	})
	n.forbidden = listen(t, func(w http.ResponseWriter, r *http.Request) {
		n.breach("a forbidden server was asked for " + r.Host)
		_, _ = io.WriteString(w, leaked)
	})
	proxy, err := egress.New(egress.Options{Policies: n, Recorder: n, Resolver: n, Dial: n.dial})
	if err != nil {
		t.Fatal(err)
	}
	n.Way = proxy.Session("session")
	return n
}

func listen(t testing.TB, handler http.HandlerFunc) server {
	t.Helper()
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(handler)
	secure.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	secure.Config.ErrorLog = quiet()
	secure.StartTLS()
	t.Cleanup(secure.Close)
	return server{http: plain.Listener.Addr().String(), https: secure.Listener.Addr().String()}
}

// EgressPolicy is what the suite has set.
func (n *Network) EgressPolicy(context.Context, core.SessionID) (core.EgressPolicy, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.policy, nil
}

// RecordEgress keeps the record.
func (n *Network) RecordEgress(r core.EgressRecord) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.records = append(n.records, r)
	select {
	case n.recorded <- struct{}{}:
	default:
	}
}

// LookupNetIP answers from the suite's names.
func (n *Network) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host = strings.TrimSuffix(host, ".")
	texts := n.names[host]
	if later, ok := n.later[host]; ok {
		n.names[host] = later
	}
	var addrs []netip.Addr
	for _, text := range texts {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	if addrs == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

// dial leads to the site's servers from its address, and from every other to those that count as a breach.
func (n *Network) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	s := n.forbidden
	if to.Addr().String() == siteAddress {
		s = n.site
	} else {
		n.breach("dialled " + to.String())
	}
	var d net.Dialer
	switch to.Port() {
	case 80:
		return d.DialContext(ctx, "tcp", s.http)
	case 443:
		return d.DialContext(ctx, "tcp", s.https)
	}
	return nil, errors.New("no such port")
}

func (n *Network) breach(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.breaches = append(n.breaches, what)
}

// take returns the records and breaches since the last call, when the connections of the group are
// over. That is soon after the programs are.
func (n *Network) take(t testing.TB, group []attack) (records []core.EgressRecord, breaches []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		n.mu.Lock()
		records, breaches = n.records, n.breaches
		complete := true
		for rule, want := range rules(group) {
			complete = complete && rulesOf(records)[rule] >= want
		}
		if complete || ctx.Err() != nil {
			n.records, n.breaches = nil, nil
		}
		n.mu.Unlock()
		if complete || ctx.Err() != nil {
			return records, breaches
		}
		select {
		case <-n.recorded:
		case <-ctx.Done():
		}
	}
}

// lead makes names lead to addresses.
func (n *Network) lead(names map[string][]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, addrs := range names {
		n.names[name] = addrs
	}
}
