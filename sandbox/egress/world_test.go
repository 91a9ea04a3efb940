package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/egress"
	"agent-sandboxing/sandbox/toolbox"
)

// site is the host that most tests reach; its address stands for the server of this test.
const (
	site       = "site.example.com"
	publicAddr = "93.184.216.34"
)

// world is a proxy whose names and addresses the test decides about.
type world struct {
	*egress.Proxy
	session toolbox.Egress

	mu      sync.Mutex
	policy  core.EgressPolicy
	failing bool
	names   map[string][]string // addresses by name, "" in front for the ones after the first look-up
	servers map[string]string   // what listens, by the address and port that it stands for
	records []core.EgressRecord
	reads   int      // of the policy
	asked   []string // names that were resolved
	dialled []string
}

func newWorld(t testing.TB, private ...string) *world {
	t.Helper()
	return newWorldOf(t, egress.Options{Private: private})
}

func newWorldOf(t testing.TB, o egress.Options) *world {
	t.Helper()
	w := &world{
		policy:  core.EgressPolicy{Mode: core.EgressOpen},
		names:   map[string][]string{site: {publicAddr}},
		servers: map[string]string{},
	}
	var err error
	o.Policies, o.Recorder, o.Resolver, o.Dial = w, w, w, w.dial
	w.Proxy, err = egress.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.session = w.Session("session")
	return w
}

func (w *world) EgressPolicy(_ context.Context, id core.SessionID) (core.EgressPolicy, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if id != "session" || w.failing {
		return core.EgressPolicy{}, errors.New("no database")
	}
	return w.policy, nil
}

func (w *world) RecordEgress(r core.EgressRecord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, r)
}

func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, host)
	if n := len(host); host[n-1] == '.' {
		host = host[:n-1]
	}
	var addrs []netip.Addr
	for _, text := range w.names[host] {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	if later, ok := w.names["later "+host]; ok {
		w.names[host] = later
	}
	if addrs == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, to.String())
	server, ok := w.servers[to.String()]
	w.mu.Unlock()
	if !ok {
		return nil, errors.New("nothing listens there")
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", server)
}

// set changes what the session may reach.
func (w *world) set(mode core.EgressMode, hosts ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.policy = core.EgressPolicy{Mode: mode, Hosts: hosts}
}

// connect is a program's connection to a name. The record is there when done is closed.
func (w *world) connect(t testing.TB, name string, port uint16) (program *net.TCPConn, done <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w.session.Connect(ctx, name, port, accepted.(*net.TCPConn))
		_ = accepted.Close()
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-over
	})
	return conn.(*net.TCPConn), over
}

// record is the only one, of a connection that is over.
func (w *world) record(t testing.TB) core.EgressRecord {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.records) != 1 {
		t.Fatalf("%d records, want one: %+v", len(w.records), w.records)
	}
	r := w.records[0]
	w.records = nil
	return r
}

// serve lets a server stand for an address of the world.
func (w *world) serve(t testing.TB, at string, handler http.HandlerFunc) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	w.servers[at] = s.Listener.Addr().String()
}

// serveTLS is serve with TLS; the pool trusts it as site.
func (w *world) serveTLS(t testing.TB, at string, handler http.HandlerFunc) *x509.CertPool {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.StartTLS() // its certificate is for example.com and *.example.com
	t.Cleanup(s.Close)
	w.servers[at] = s.Listener.Addr().String()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// client is an HTTP client whose connections are a program's.
func (w *world) client(t testing.TB, trust *x509.CertPool) *http.Client {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trust},
		DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			n := uint16(443)
			if port == "80" {
				n = 80
			}
			conn, _ := w.connect(t, host, n)
			return conn, nil
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ownAddresses are this machine's, whatever their class.
func ownAddresses(t *testing.T) []string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, a := range addrs {
		own = append(own, netip.MustParsePrefix(a.String()).Addr().String())
	}
	return own
}

// forget drops what was noted.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records, w.asked, w.dialled = nil, nil, nil
}
