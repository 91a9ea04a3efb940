package openai_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/core"
)

// pipes is a network in memory, so that a whole exchange can run on a clock of its own: it waits
// for what it should, to the second, in no time, however busy the machine is.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

// onPipes calls test with a client of handler. It runs in a bubble of synctest.
func onPipes(t *testing.T, handler http.Handler, o openai.Options, test func(*openai.Client)) {
	t.Helper()
	network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Hour}
	stopped := make(chan error)
	go func() { stopped <- server.Serve(network) }()
	o.BaseURL, o.Key, o.Model, o.Transport = "http://model.invalid/v1", "k", "m", &http.Transport{DialContext: network.dial}
	c := openai.New(o)
	test(c)
	c.Close()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-stopped; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// read takes the whole request first; else the server would not notice that the client has gone.
func read(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h(w, r)
	}
}

// trickle sends text again and again.
func trickle(w http.ResponseWriter, r *http.Request, text string, every time.Duration) {
	for {
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(every):
		case <-r.Context().Done():
			return
		}
	}
}

func TestTime_SilenceEndsARequest(t *testing.T) {
	t.Parallel()
	const data, comment = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n", ": still here\n\n"
	stream := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			h(w, r)
		}
	}
	tests := map[string]struct {
		server http.HandlerFunc
		after  time.Duration
	}{
		"no headers":           {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, time.Minute},
		"headers and no line":  {stream(func(w http.ResponseWriter, r *http.Request) { trickle(w, r, "", time.Hour) }), 2 * time.Minute},
		"comments and no data": {stream(func(w http.ResponseWriter, r *http.Request) { trickle(w, r, comment, time.Second) }), 2 * time.Minute},
		"silence after data":   {stream(func(w http.ResponseWriter, r *http.Request) { trickle(w, r, data, time.Hour) }), 2 * time.Minute},
		"comments after data": {stream(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, data)
			trickle(w, r, comment, time.Second)
		}), 5 * time.Minute},
		"data without end":             {stream(func(w http.ResponseWriter, r *http.Request) { trickle(w, r, data, 100*time.Second) }), 10 * time.Minute},
		"data and comments, on and on": {stream(func(w http.ResponseWriter, r *http.Request) { trickle(w, r, comment+data, time.Second) }), 10 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				onPipes(t, read(test.server), openai.Options{}, func(c *openai.Client) {
					start := time.Now()
					_, err := c.Stream(t.Context(), hello(), agent.Listener{Retry: func(context.Context, core.ModelRequestRetry) error {
						t.Error("silence was tried again")
						return nil
					}})
					if took := time.Since(start); core.CodeOf(err) != core.CodeModelTimeout || took != test.after {
						t.Errorf("%v after %v, want %v", err, took, test.after)
					}
				})
			})
		})
	}
}

// A slow answer is no silent one: each limit is kept, none is reached.
func TestTime_SlowAnswersAreWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := modeltest.NewServer(modeltest.Sequence(modeltest.Reply{Pause: 119 * time.Second, Text: "a b c d", Delay: 119 * time.Second}), 0)
		onPipes(t, server, openai.Options{}, func(c *openai.Client) {
			got, err := c.Stream(t.Context(), hello(), agent.Listener{})
			if err != nil || got.Text != "a b c d" {
				t.Errorf("%q, %v", got.Text, err)
			}
		})
	})
}

// statuses answers with one status after the other, then with text.
func statuses(after []string, codes ...int) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		i := n
		n++
		if i >= len(codes) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, said)
			return
		}
		if i < len(after) && after[i] != "" {
			w.Header().Set("Retry-After", after[i])
		}
		w.WriteHeader(codes[i])
	}
}

func TestTime_RetriesWaitAsTheyAreTold(t *testing.T) {
	t.Parallel()
	const sec = time.Second
	in := func(d time.Duration) string {
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(http.TimeFormat)
	}
	tests := map[string]struct {
		server  http.HandlerFunc
		retries *int
		waits   []time.Duration
		code    string
		message string
	}{
		"all is well":               {server: statuses(nil)},
		"twice, longer each time":   {server: statuses(nil, 429, 503), waits: []time.Duration{sec, 2 * sec}},
		"no third time":             {server: statuses(nil, 502, 502, 502), waits: []time.Duration{sec, 2 * sec}, code: core.CodeModelUnavailable},
		"408 and 504":               {server: statuses(nil, 408, 504, 504), waits: []time.Duration{sec, 2 * sec}, code: core.CodeModelTimeout},
		"seconds":                   {server: statuses([]string{"7", "20"}, 429, 429), waits: []time.Duration{7 * sec, 20 * sec}},
		"less than it would wait":   {server: statuses([]string{"0.2"}, 429), waits: []time.Duration{sec}},
		"a date":                    {server: statuses([]string{in(9 * sec)}, 429), waits: []time.Duration{9 * sec}},
		"a date in the past":        {server: statuses([]string{in(-time.Hour)}, 429), waits: []time.Duration{sec}},
		"nonsense":                  {server: statuses([]string{"soon"}, 429), waits: []time.Duration{sec}},
		"longest":                   {server: statuses([]string{"30", "30"}, 429, 429), waits: []time.Duration{30 * sec, 30 * sec}},
		"longer than the longest":   {server: statuses([]string{"31"}, 429), code: core.CodeModelRateLimited, message: "31 seconds"},
		"an hour":                   {server: statuses([]string{"3600"}, 429), code: core.CodeModelRateLimited, message: "60 minutes"},
		"years":                     {server: statuses([]string{"1e9"}, 503), code: core.CodeModelRateLimited, message: "720 hours"},
		"more than a minute in all": {server: statuses([]string{"29", "29", "29"}, 429, 429, 429), retries: new(5), waits: []time.Duration{29 * sec, 29 * sec}, code: core.CodeModelRateLimited},
		"as often as allowed":       {server: statuses(nil, 429, 429, 429), retries: new(3), waits: []time.Duration{sec, 2 * sec, 4 * sec}},
		"never, when set so":        {server: statuses(nil, 503), retries: new(0), code: core.CodeModelUnavailable},
		"400":                       {server: statuses([]string{"1"}, 400), code: core.CodeModelRejected},
		"401":                       {server: statuses(nil, 401), code: core.CodeModelUnauthorized},
		"402":                       {server: statuses(nil, 402), code: core.CodeModelUnauthorized},
		"403":                       {server: statuses(nil, 403), code: core.CodeModelUnauthorized},
		"404":                       {server: statuses(nil, 404), code: core.CodeModelRejected},
		"413":                       {server: statuses(nil, 413), code: core.CodeContextOverflow},
		"500":                       {server: statuses([]string{"1"}, 500), code: core.CodeModelUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				onPipes(t, test.server, openai.Options{Retries: test.retries}, func(c *openai.Client) {
					var waits []time.Duration
					start := time.Now()
					_, err := c.Stream(t.Context(), hello(), agent.Listener{Retry: func(_ context.Context, e core.ModelRequestRetry) error {
						waits = append(waits, time.Duration(e.WaitMs)*time.Millisecond)
						if e.Attempt != len(waits) || e.Reason == "" {
							t.Errorf("%+v", e)
						}
						return nil
					}})
					if diff := cmp.Diff(test.waits, waits); diff != "" {
						t.Error(diff)
					}
					var all time.Duration
					for _, wait := range waits {
						all += wait
					}
					if took := time.Since(start); took != all {
						t.Errorf("took %v, announced %v", took, all)
					}
					code := ""
					if err != nil {
						code = core.CodeOf(err)
					}
					if code != test.code || test.message != "" && !strings.Contains(core.MessageOf(err), test.message) {
						t.Errorf("got %v, want %q %q", err, test.code, test.message)
					}
				})
			})
		})
	}
}

func TestTime_CancelEndsAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		onPipes(t, statuses([]string{"30"}, 429, 429), openai.Options{}, func(c *openai.Client) {
			ctx, cancel := context.WithCancelCause(t.Context())
			start := time.Now()
			_, err := c.Stream(ctx, hello(), agent.Listener{Retry: func(context.Context, core.ModelRequestRetry) error {
				time.AfterFunc(3*time.Second, func() { cancel(core.ErrCancelledByUser) })
				return nil
			}})
			if took := time.Since(start); !errors.Is(err, core.ErrCancelledByUser) || took != 3*time.Second {
				t.Errorf("%v after %v", err, took)
			}
		})
	})
}

// Until the first data line a broken connection may be tried again, after it never.
func TestTime_ABrokenConnectionIsTriedAgainBeforeTheFirstDataOnly(t *testing.T) {
	t.Parallel()
	for start, retries := range map[string]int{": hello\n\n": 1, "": 1, ": hello\n\n" + `data: {"choices":[]}` + "\n\n": 0} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			server := func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				if n++; n > 1 {
					_, _ = io.WriteString(w, said)
					return
				}
				_, _ = io.WriteString(w, start)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
			onPipes(t, http.HandlerFunc(server), openai.Options{}, func(c *openai.Client) {
				got := 0
				_, err := c.Stream(t.Context(), hello(), agent.Listener{Retry: func(context.Context, core.ModelRequestRetry) error {
					got++
					return nil
				}})
				if got != retries || (err == nil) != (retries > 0) {
					t.Errorf("after %q: %d retries, %v", start, got, err)
				}
			})
		})
	}
}
