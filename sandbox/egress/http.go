package egress

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxHead bounds the head of a request and of its answer. Bytes.
	maxHead = 64 << 10
	// nextWithin is how long a connection may rest between two requests.
	nextWithin = time.Minute
)

// serveHTTP answers for the host: every request of the connection is read as a whole by the standard
// library's server, judged by its own Host, and written anew to the server, so that nothing can hide
// behind another request. Refusals are answers too, with the rule.
func (c *connection) serveHTTP(ctx context.Context) {
	transport := &http.Transport{
		DialContext:            c.dialHTTP(),
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHead,
		IdleConnTimeout:        nextWithin,
	}
	defer transport.CloseIdleConnections()
	quiet := log.New(io.Discard, "", 0) // it would speak of requests
	proxy := &httputil.ReverseProxy{
		Rewrite:       c.rewrite,
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      quiet,
		ErrorHandler:  c.answerFailure,
	}
	// The server needs deadlines, which a stream of the toolbox has not; a pipe has.
	outer, inner := net.Pipe()
	visit := &visit{conn: inner, over: make(chan struct{})}
	server := &http.Server{
		Handler:                      visit.handler(c.judged(proxy)),
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            helloWithin,
		IdleTimeout:                  nextWithin,
		MaxHeaderBytes:               maxHead,
		ErrorLog:                     quiet,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnState:                    visit.state,
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(visit) }) // until the connection is over
	c.converse(ctx, outer)
	_ = server.Close()
	serving.Wait()
	if !c.asked.Load() {
		c.nothingAsked()
	}
}

// converse copies between the program and the server until the server has ended.
func (c *connection) converse(ctx context.Context, server net.Conn) {
	closeBoth := func() {
		_ = c.program.Close()
		_ = server.Close()
	}
	stop := context.AfterFunc(ctx, closeBoth)
	defer stop()
	idle := time.AfterFunc(idleWithin, closeBoth)
	defer idle.Stop()
	var up sync.WaitGroup
	up.Go(func() {
		_ = pass(server, c.program, idle)
		_ = server.Close()
	})
	if pass(c.program, server, idle) == nil {
		_ = c.program.CloseWrite()
	}
	closeBoth()
	up.Wait()
}

func (c *connection) nothingAsked() {
	if c.program.sent.Load() > 0 {
		_ = c.refuse(NotHTTP)
	} else {
		_ = c.refuse(NothingAsked)
	}
}

// judged lets each request through that is for the host.
func (c *connection) judged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked.Store(true)
		switch host := strings.TrimSuffix(strings.ToLower(strings.TrimSuffix(r.Host, ":80")), "."); {
		case !c.allowed(): // by the policy, or because of an earlier request
		case r.Method == http.MethodConnect:
			_ = c.refuse(TunnelNotAllowed)
		case host != c.target.host:
			_ = c.refuse(HostHeaderDiffers)
		default:
			if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
				r.Header.Del("Upgrade") // HTTP/2 could then name any host; servers answer without it
			}
			next.ServeHTTP(w, r)
			return
		}
		c.answer(w, http.StatusForbidden, c.rule())
	})
}

// rewrite makes the request that the host gets: the program's own, with nothing added.
func (c *connection) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.RawQuery = "http", c.target.host, r.In.URL.RawQuery
	r.Out.Host = c.target.host
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values := r.In.Header.Values(name); values != nil {
			r.Out.Header[name] = values
		}
	}
}

// dialHTTP dials the host, as often as the connection needs it, at the addresses that the first look-up
// gave.
func (c *connection) dialHTTP() func(context.Context, string, string) (net.Conn, error) {
	var mu sync.Mutex
	var addrs []netip.Addr
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if addrs == nil {
			found, err := c.resolve(ctx)
			if err != nil {
				return nil, err
			}
			addrs = found
		}
		return c.dialOne(ctx, addrs)
	}
}

// answerFailure is for a request that the host did not answer.
func (c *connection) answerFailure(w http.ResponseWriter, _ *http.Request, err error) {
	failure, status := refused{ConnectFailed}, http.StatusBadGateway
	if errors.As(err, &failure) && failure.rule == AddressNotPublic {
		status = http.StatusForbidden
	}
	c.answer(w, status, failure.rule)
}

// refusal is the body of an answer that the host did not give.
type refusal struct {
	Error   string `json:"error"` // egress_refused
	Rule    Rule   `json:"rule"`
	Host    string `json:"host"`
	Message string `json:"message"`
}

func (c *connection) answer(w http.ResponseWriter, status int, rule Rule) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(refusal{Error: "egress_refused", Rule: rule, Host: c.target.host, Message: rule.Explain()})
}

// visit is the one connection of a server, as its listener.
type visit struct {
	conn     net.Conn
	over     chan struct{} // closed when the server's goroutine has ended
	once     sync.Once
	hijacked atomic.Bool
	given    bool
}

func (v *visit) Accept() (net.Conn, error) {
	if !v.given {
		v.given = true
		return v.conn, nil
	}
	<-v.over
	return nil, net.ErrClosed
}

func (v *visit) Close() error   { return nil }
func (v *visit) Addr() net.Addr { return v.conn.LocalAddr() }

func (v *visit) state(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateHijacked:
		v.hijacked.Store(true)
	case http.StateClosed:
		v.once.Do(func() { close(v.over) })
	default:
	}
}

// handler notices the end of a connection that became another protocol's.
func (v *visit) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v.hijacked.Load() {
				v.once.Do(func() { close(v.over) })
			}
		}()
		next.ServeHTTP(w, r)
	})
}
