package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/network"
	"agent-sandboxing/core/store"
	"agent-sandboxing/sandbox/egress"
	"agent-sandboxing/sandbox/toolbox"
)

const (
	fetchRounds = 5
	fetchAdds   = 5 * time.Millisecond

	// fetches prints how many microseconds each of them took, each on a connection of its own.
	fetches = `import time, urllib.request
for _ in range(21):
    began = time.perf_counter()
    with urllib.request.urlopen("http://%s/") as answer:
        answer.read()
    print(int((time.perf_counter() - began) * 1e6))
`
)

// internet is one server that stands for every host, and the proxy that leads there.
type internet struct {
	proxy  *egress.Proxy
	addr   string // of the server, host:port
	server http.Server

	mu  sync.Mutex
	let map[core.SessionID]time.Time // when a session's sandbox was let out
}

// Session lets a session's sandbox out. The platform does so when it is ready but for the checkout.
func (i *internet) Session(id core.SessionID) toolbox.Egress {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.let[id] = time.Now()
	return i.proxy.Session(id)
}

// stood is when a session's sandbox was let out.
func (i *internet) stood(id core.SessionID) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.let[id]
}

func openInternet(s *store.Store, log *slog.Logger) (*internet, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // of this machine
	if err != nil {
		return nil, err
	}
	i := &internet{addr: listener.Addr().String(), let: map[core.SessionID]time.Time{}, server: http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, fileSize)) }),
	}}
	go func() { _ = i.server.Serve(listener) }() // ends with Close
	reached := network.New(network.Options{Store: s, Ceiling: core.EgressOpen, Log: log})
	i.proxy, err = egress.New(egress.Options{Policies: reached, Recorder: reached, Resolver: i, Dial: i.dial})
	return i, err
}

func (i *internet) Close() error { return i.server.Close() }

// LookupNetIP gives every name an address that is public.
func (i *internet) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
}

func (i *internet) dial(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", i.addr)
}

// egress is I3's last figure: what a fetch costs more that is looked up, judged and carried, than the
// same program's from a container on the host's network.
func (h *host) egress(ctx context.Context, r *report) (err error) {
	w, err := openWorld(ctx, h, 1)
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if err != nil {
		return err
	}
	claim, err := w.claim(ctx)
	if err != nil {
		return err
	}
	ws, err := w.cold.Acquire(ctx, claim)
	if err != nil {
		return err
	}
	defer w.cold.Release(ctx, claim, ws)
	var ours, direct []time.Duration
	for i := range fetchRounds + 1 {
		inside, err1 := sh(ctx, ws, "python3 - <<'END'\n"+fmt.Sprintf(fetches, "site.example.com")+"END")
		outside, err2 := cli(ctx, "run", "--rm", "--network", "host", "--runtime", "runc", h.image, "python3", "-c", fmt.Sprintf(fetches, w.internet.addr))
		own, err3 := fetched(inside, err1)
		other, err4 := fetched(outside, err2)
		if err := errors.Join(err3, err4); err != nil {
			return err
		}
		if i > 0 { // the first warms up
			ours, direct = append(ours, own...), append(direct, other...)
		}
	}
	own, other := percentile(ours, 50), percentile(direct, 50)
	r.judge(own-other <= fetchAdds, "I3 %s: an allowed fetch %.1f ms, the same from a container of runc on the host's network %.1f ms, adds %.1f ms (budget %.0f ms)",
		h.name, ms(own), ms(other), ms(own-other), ms(fetchAdds))
	return nil
}

// fetched reads what fetches printed unless it failed. The first, which loads libraries, does not count.
func fetched(out string, err error) ([]time.Duration, error) {
	if err != nil {
		return nil, err
	}
	_, out, _ = strings.Cut(out, "\n")
	return micros(out)
}
