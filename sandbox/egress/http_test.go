package egress_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/egress"
)

// seen is what a server was asked for, by Host and path.
type seen struct {
	mu       sync.Mutex
	requests []string
}

func (s *seen) handler(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.Host+r.RequestURI+" "+string(body))
	s.mu.Unlock()
	if err == nil {
		_, _ = io.WriteString(rw, "served "+r.RequestURI)
	}
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// say writes text on a connection to site's port 80 and returns all that comes back, the record and
// what the server saw.
func say(t *testing.T, w *world, text string) (string, core.EgressRecord, []string) {
	t.Helper()
	var s seen
	w.serve(t, publicAddr+":80", s.handler)
	program, done := w.connect(t, site, 80)
	var sending sync.WaitGroup
	sending.Go(func() { _, _ = io.WriteString(program, text) })
	_ = program.SetReadDeadline(time.Now().Add(10 * time.Second)) // what is let through may be kept open
	got, _ := io.ReadAll(program)                                 // a reset is an end too
	_ = program.Close()
	sending.Wait()
	<-done
	return string(got), w.record(t), s.all()
}

func TestHTTP_CarriesWhatProgramsAskFor(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want []string
	}{
		"plain":               {"GET /a?b=c;d HTTP/1.1\r\nHost: site.example.com\r\nConnection: close\r\n\r\n", []string{"GET site.example.com/a?b=c;d "}},
		"HTTP/1.0":            {"GET /a HTTP/1.0\r\nHost: site.example.com\r\n\r\n", []string{"GET site.example.com/a "}},
		"with the port":       {"GET /a HTTP/1.1\r\nHost: site.example.com:80\r\nConnection: close\r\n\r\n", []string{"GET site.example.com/a "}},
		"a final dot":         {"GET /a HTTP/1.1\r\nHost: Site.Example.com.\r\nConnection: close\r\n\r\n", []string{"GET site.example.com/a "}},
		"absolute form":       {"GET http://site.example.com/a HTTP/1.1\r\nHost: site.example.com\r\nConnection: close\r\n\r\n", []string{"GET site.example.com/a "}},
		"a chunked body":      {"PUT /a HTTP/1.1\r\nHost: site.example.com\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n", []string{"PUT site.example.com/a abc"}},
		"a body of length":    {"POST /a HTTP/1.1\r\nHost: site.example.com\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", []string{"POST site.example.com/a abc"}},
		"two on a connection": {"GET /a HTTP/1.1\r\nHost: site.example.com\r\n\r\nGET /b HTTP/1.1\r\nHost: site.example.com\r\nConnection: close\r\n\r\n", []string{"GET site.example.com/a ", "GET site.example.com/b "}},
		"an escaped path":     {"GET /a%2Fb%20c//d HTTP/1.1\r\nHost: site.example.com\r\nConnection: close\r\n\r\n", []string{"GET site.example.com/a%2Fb%20c//d "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, record, requests := say(t, newWorld(t), row.text)
			if diff := cmp.Diff(row.want, requests); diff != "" {
				t.Errorf("the server saw (-want +got)\n%s", diff)
			}
			if !record.Allowed || record.Rule != "open" || strings.Count(got, "200 OK") != len(row.want) {
				t.Errorf("record %+v, answer %q", record, got)
			}
		})
	}
}

// No request for another host ever comes to the server, however it is hidden.
func TestHTTP_RefusesOtherHosts(t *testing.T) {
	t.Parallel()
	const good = "GET /good HTTP/1.1\r\nHost: site.example.com\r\n\r\n"
	const evil = "GET /evil HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n"
	for name, row := range map[string]struct {
		text string
		rule egress.Rule
	}{
		"another host":                {evil, egress.HostHeaderDiffers},
		"no host":                     {"GET /evil HTTP/1.0\r\n\r\n", egress.HostHeaderDiffers},
		"an empty host":               {"GET /evil HTTP/1.1\r\nHost:\r\n\r\n", egress.HostHeaderDiffers},
		"another port":                {"GET /evil HTTP/1.1\r\nHost: site.example.com:8080\r\n\r\n", egress.HostHeaderDiffers},
		"userinfo":                    {"GET /evil HTTP/1.1\r\nHost: site.example.com@evil.example.com\r\n\r\n", egress.NotHTTP},
		"a name in front":             {"GET /evil HTTP/1.1\r\nHost: evil.site.example.com\r\n\r\n", egress.HostHeaderDiffers},
		"absolute form":               {"GET http://evil.example.com/evil HTTP/1.1\r\nHost: site.example.com\r\n\r\n", egress.HostHeaderDiffers},
		"an address":                  {"GET /evil HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", egress.HostHeaderDiffers},
		"the second request":          {good + evil, egress.HostHeaderDiffers},
		"two hosts":                   {"GET /evil HTTP/1.1\r\nHost: site.example.com\r\nHost: evil.example.com\r\n\r\n", egress.NotHTTP},
		"a folded host":               {"GET /evil HTTP/1.1\r\nHost: site.example.com\r\n evil.example.com\r\n\r\n", egress.NotHTTP},
		"a space before the colon":    {"GET /evil HTTP/1.1\r\nHost : evil.example.com\r\nHost: site.example.com\r\n\r\n", egress.NotHTTP},
		"a tunnel":                    {"CONNECT evil.example.com:443 HTTP/1.1\r\nHost: evil.example.com:443\r\n\r\n", egress.TunnelNotAllowed},
		"a tunnel to the host":        {"CONNECT site.example.com:443 HTTP/1.1\r\nHost: site.example.com\r\n\r\n", egress.TunnelNotAllowed},
		"HTTP/2 at once":              {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", egress.HostHeaderDiffers},
		"no HTTP":                     {"SSH-2.0-OpenSSH_9.2\r\n", egress.NotHTTP},
		"TLS":                         {"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n", egress.NotHTTP},
		"two lengths":                 {"POST /evil HTTP/1.1\r\nHost: site.example.com\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n" + evil, egress.NotHTTP},
		"a huge head":                 {"GET /evil HTTP/1.1\r\nHost: site.example.com\r\nX: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", egress.NotHTTP},
		"a control character in host": {"GET /evil HTTP/1.1\r\nHost: site.example.com\x00evil\r\n\r\n", egress.NotHTTP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, record, requests := say(t, newWorld(t), row.text)
			for _, r := range requests {
				if r != "GET site.example.com/good " {
					t.Errorf("the server saw %q", r)
				}
			}
			if record.Allowed || record.Rule != string(row.rule) {
				t.Errorf("record %+v, want %s; answer %q", record, row.rule, got)
			}
		})
	}
}

// A length and chunks in one request are the classic way to hide a request in a body: whoever is asked
// first and whoever answers must read the same.
func TestHTTP_ABodyHidesNoRequest(t *testing.T) {
	t.Parallel()
	const evil = "GET /evil HTTP/1.1\r\nHost: evil.example.com\r\n\r\n"
	for name, text := range map[string]string{
		"length before chunks":   "POST /a HTTP/1.1\r\nHost: site.example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
		"chunks before length":   "POST /a HTTP/1.1\r\nHost: site.example.com\r\nTransfer-Encoding: chunked\r\nContent-Length: 60\r\n\r\n0\r\n\r\n" + evil,
		"two encodings":          "POST /a HTTP/1.1\r\nHost: site.example.com\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + evil,
		"an unknown encoding":    "POST /a HTTP/1.1\r\nHost: site.example.com\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + evil,
		"a tab in the encoding":  "POST /a HTTP/1.1\r\nHost: site.example.com\r\nTransfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + evil,
		"chunk extension":        "POST /a HTTP/1.1\r\nHost: site.example.com\r\nTransfer-Encoding: chunked\r\n\r\n0;x=\n" + evil + "\r\n\r\n" + evil,
		"a body on GET":          "GET /a HTTP/1.1\r\nHost: site.example.com\r\nContent-Length: " + "60" + "\r\n\r\n" + evil + strings.Repeat(" ", 60-len(evil)) + evil,
		"an expectation":         "POST /a HTTP/1.1\r\nHost: site.example.com\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc" + evil,
		"an upgrade to HTTP/2":   "GET /a HTTP/1.1\r\nHost: site.example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" + evil,
		"an upgrade to TLS":      "GET /a HTTP/1.1\r\nHost: site.example.com\r\nConnection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n" + evil,
		"an upgrade that is not": "GET /a HTTP/1.1\r\nHost: site.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + evil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, requests := say(t, newWorld(t), text)
			for _, r := range requests {
				if !strings.Contains(r, " site.example.com/a") {
					t.Errorf("the server saw %q", r)
				}
			}
		})
	}
}

func TestHTTP_ARefusalSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(core.EgressAllowlist, "other.example.com")
	answer, err := w.client(t, nil).Get("http://" + site + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body map[string]string
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || answer.StatusCode != http.StatusForbidden {
		t.Fatalf("status %s, %v", answer.Status, err)
	}
	want := map[string]string{"error": "egress_refused", "rule": "host_not_allowed", "host": site, "message": egress.HostNotAllowed.Explain()}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestHTTP_AHostThatIsNotThereIsABadGateway(t *testing.T) {
	t.Parallel()
	for rule, change := range map[egress.Rule]func(*world){
		egress.ConnectFailed: func(*world) {},
		egress.NameNotFound:  func(w *world) { w.names = nil },
	} {
		w := newWorld(t)
		change(w)
		answer, err := w.client(t, nil).Get("http://" + site + "/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusBadGateway || !bytes.Contains(body, []byte(rule)) {
			t.Errorf("%s: %s %s, %v", rule, answer.Status, body, err)
		}
	}
}

// A program that is led elsewhere asks again, by name, and is judged again.
func TestHTTP_ARedirectIsTheProgramsOwnBusiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["inside.example.com"] = []string{"10.0.0.1"}
	w.serve(t, publicAddr+":80", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://inside.example.com/secret", http.StatusFound)
	})
	answer, err := w.client(t, nil).Get("http://" + site + "/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusForbidden || !bytes.Contains(body, []byte(egress.AddressNotPublic)) {
		t.Errorf("%s %s, %v", answer.Status, body, err)
	}
}

func TestHTTP_CarriesWebSockets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(t, publicAddr+":80", func(rw http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.CopyN(conn, buffered, 5)
	})
	program, done := w.connect(t, site, 80)
	_, _ = io.WriteString(program, "GET /ws HTTP/1.1\r\nHost: site.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(program)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", answer, err)
	}
	defer answer.Body.Close()
	_, _ = io.WriteString(program, "frame")
	if got, err := io.ReadAll(reader); err != nil || string(got) != "frame" {
		t.Errorf("%q, %v", got, err)
	}
	_ = program.Close()
	<-done
	if r := w.record(t); !r.Allowed {
		t.Errorf("%+v", r)
	}
}

// A host that closes after each answer is dialled again, where its name led at first.
func TestHTTP_ResolvesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["later "+site] = []string{"10.0.0.1"}
	w.serve(t, publicAddr+":80", func(rw http.ResponseWriter, _ *http.Request) { rw.Header().Set("Connection", "close") })
	program, done := w.connect(t, site, 80)
	for range 2 {
		_, _ = io.WriteString(program, "GET / HTTP/1.1\r\nHost: site.example.com\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(program), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("answered %s", answer.Status)
		}
	}
	_ = program.Close()
	<-done
	if want := []string{publicAddr + ":80", publicAddr + ":80"}; len(w.asked) != 1 || !slices.Equal(w.dialled, want) {
		t.Errorf("resolved %v, dialled %v", w.asked, w.dialled)
	}
}

// What becomes HTTP/2 on the way could ask for any host.
func TestHTTP_OnlyWebSocketsAreSwitchedTo(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"h2c", "websocket", "TLS/1.2", "h2c, websocket", "WebSocket"} {
		w := newWorld(t)
		got := make(chan string, 1)
		w.serve(t, publicAddr+":80", func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Upgrade") })
		program, done := w.connect(t, site, 80)
		_, _ = io.WriteString(program, "GET / HTTP/1.1\r\nHost: site.example.com\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
		want := ""
		if strings.EqualFold(protocol, "websocket") {
			want = protocol
		}
		if asked := <-got; asked != want {
			t.Errorf("%s: the server was asked for %q", protocol, asked)
		}
		_ = program.Close()
		<-done
	}
}

func TestHTTP_AProgramThatLeavesEndsTheRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, ended := make(chan struct{}), make(chan struct{})
	w.serve(t, publicAddr+":80", func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		defer close(ended)
		<-r.Context().Done()
	})
	program, done := w.connect(t, site, 80)
	_, _ = io.WriteString(program, "GET / HTTP/1.1\r\nHost: site.example.com\r\n\r\n")
	<-begun
	_ = program.Close()
	<-done
	<-ended
}

// Whatever a program writes: the host is asked only for itself, and nothing hangs.
func FuzzHTTP(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: site.example.com\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: evil\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: site.example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: evil\r\n\r\n",
		"GET http://evil/ HTTP/1.1\r\nHost: site.example.com\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
		"CONNECT evil:443 HTTP/1.1\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	w := newWorld(f)
	w.serve(f, publicAddr+":80", func(rw http.ResponseWriter, r *http.Request) {
		if r.Host != site {
			f.Errorf("asked for %q", r.Host)
		}
		_, err := io.Copy(io.Discard, r.Body)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return
		}
		rw.Header().Set("Connection", "close")
	})
	f.Fuzz(func(t *testing.T, text []byte) {
		program, done := w.connect(t, site, 80)
		_, _ = program.Write(text)
		_ = program.CloseWrite()
		_, _ = io.Copy(io.Discard, program)
		_ = program.Close()
		<-done
		w.forget()
	})
}
