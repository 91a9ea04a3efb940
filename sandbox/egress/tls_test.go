package egress

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
)

// helloOf is what a client of this configuration sends first.
func helloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		_ = tls.Client(theirs, config).Handshake() // ends with the pipe
		_ = theirs.Close()
	}()
	head := make([]byte, 5)
	if _, err := io.ReadFull(ours, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	if _, err := io.ReadFull(ours, body); err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	return append(head, body...)
}

// fragmented cuts the handshake message of one record into records of n bytes.
func fragmented(hello []byte, n int) []byte {
	var out []byte
	for body := hello[5:]; len(body) > 0; {
		part := body[:min(n, len(body))]
		out = append(out, hello[:3]...)
		out = binary.BigEndian.AppendUint16(out, uint16(len(part)))
		out = append(out, part...)
		body = body[len(part):]
	}
	return out
}

// withExtension adds one to a ClientHello's end.
func withExtension(hello []byte, number uint16, data []byte) []byte {
	body := bytes.Clone(hello[5:])
	at := 4 + 2 + 32
	at += 1 + int(body[at])
	at += 2 + int(binary.BigEndian.Uint16(body[at:]))
	at += 1 + int(body[at])
	extra := binary.BigEndian.AppendUint16(nil, number)
	extra = binary.BigEndian.AppendUint16(extra, uint16(len(data)))
	extra = append(extra, data...)
	binary.BigEndian.PutUint16(body[at:], binary.BigEndian.Uint16(body[at:])+uint16(len(extra)))
	body = append(body, extra...)
	size := len(body) - 4
	body[1], body[2], body[3] = byte(size>>16), byte(size>>8), byte(size)
	out := append([]byte{}, hello[:3]...)
	return append(binary.BigEndian.AppendUint16(out, uint16(len(body))), body...)
}

const site = "site.example.com"

func plain(name string) *tls.Config {
	return &tls.Config{ServerName: name, InsecureSkipVerify: true} //nolint:gosec // only its first message is used
}

func TestSniff_ReadsTheServerName(t *testing.T) {
	t.Parallel()
	old := plain(site)
	old.MaxVersion = tls.VersionTLS12
	hello := helloOf(t, plain(site))
	for name, row := range map[string]struct {
		hello  []byte
		want   string
		hidden bool
	}{
		"TLS 1.3":        {hello: hello, want: site},
		"TLS 1.2":        {hello: helloOf(t, old), want: site},
		"no name":        {hello: helloOf(t, &tls.Config{InsecureSkipVerify: true}), want: ""}, //nolint:gosec // as above
		"an address":     {hello: helloOf(t, plain("1.2.3.4")), want: ""},
		"upper case":     {hello: helloOf(t, plain("Site.Example.COM")), want: site},
		"in pieces":      {hello: fragmented(hello, 40), want: site},
		"byte by byte":   {hello: fragmented(hello, 1), want: site},
		"hidden":         {hello: withExtension(hello, extensionECH, echGrease()), want: site, hidden: true},
		"with more data": {hello: append(bytes.Clone(hello), "early data"...), want: site},
	} {
		name0, hidden, read, err := sniff(t.Context(), bytes.NewReader(row.hello))
		if err != nil || name0 != row.want || hidden != row.hidden {
			t.Errorf("%s: %q, hidden %v, %v", name, name0, hidden, err)
		}
		if !bytes.HasPrefix(row.hello, read) || len(read) < len(row.hello)-len("early data") {
			t.Errorf("%s: read %d bytes that are not the first of the %d", name, len(read), len(row.hello))
		}
	}
}

// echGrease is what clients without a key send: it looks like an encrypted name.
func echGrease() []byte {
	ext := []byte{0, 0, 1, 0, 1, 7, 0, 32}
	ext = append(ext, make([]byte, 32)...)
	return append(append(ext, 0, 144), make([]byte, 144)...)
}

func TestSniff_RefusesWhatIsNoClientHello(t *testing.T) {
	t.Parallel()
	hello := helloOf(t, plain(site))
	twice := withExtension(hello, 0, append([]byte{0, 19, 0, 0, 16}, "evil.example.com"...))
	for name, text := range map[string][]byte{
		"HTTP":                      []byte("GET / HTTP/1.1\r\nHost: site.example.com\r\n\r\n"),
		"SSH":                       []byte("SSH-2.0-OpenSSH_9.2\r\nxxxxxxxxxxxxxxxx"),
		"SSL 2":                     {0x80, 0x2e, 0x01, 0x00, 0x02, 0x00, 0x15, 0x00, 0x00, 0x00, 0x10},
		"an alert":                  {21, 3, 1, 0, 2, 2, 40, 0, 0, 0, 0},
		"data":                      {23, 3, 3, 0, 3, 1, 2, 3, 0, 0, 0},
		"a server's hello":          {22, 3, 1, 0, 4, 2, 0, 0, 0, 0, 0},
		"two server names":          twice,
		"a record of nothing":       append([]byte{22, 3, 1, 0, 0}, hello...),
		"a record too long":         append([]byte{22, 3, 1, 0xff, 0xff}, make([]byte, 70000)...),
		"a message too long":        append([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, make([]byte, 70000)...),
		"endless pieces":            bytes.Repeat([]byte{22, 3, 1, 0, 1, 1}, 5000),
		"endless warnings":          bytes.Repeat([]byte{21, 3, 1, 0, 2, 1, 90}, 5000),
		"a hello of more than 16 K": withExtension(hello, 21, make([]byte, 20000)),
	} {
		if got, _, _, err := sniff(t.Context(), bytes.NewReader(text)); !errors.Is(err, errNotTLS) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for n := range hello {
		if got, _, _, err := sniff(t.Context(), bytes.NewReader(hello[:n])); err == nil {
			t.Errorf("the first %d bytes name %q", n, got)
		}
	}
}

// said is a connection on which a program has said something.
type said struct{ *bytes.Reader }

func (said) Write(p []byte) (int, error) { return len(p), nil }
func (said) Close() error                { return nil }
func (said) CloseWrite() error           { return nil }

func TestHello_ANameThatMayBeHiddenIsForOpenSessions(t *testing.T) {
	t.Parallel()
	hidden := withExtension(helloOf(t, plain(site)), extensionECH, echGrease())
	for decided, want := range map[Rule]Rule{Open: Open, HostListed: ServerNameHidden, PrivateException: PrivateException} {
		c := &connection{program: &metered{EgressConn: said{bytes.NewReader(hidden)}, moved: func(int) error { return nil }}, target: target{site, portHTTPS}, decided: decided, record: func() {}}
		if _, ok := c.hello(t.Context()); ok != want.allows() || c.rule() != want {
			t.Errorf("%s: %v, rule %s, want %s", decided, ok, c.rule(), want)
		}
	}
}

// Whatever comes first: at most 16 KiB of it are read, and a name that is found was sent.
func FuzzSniff(f *testing.F) {
	hello := helloOf(f, plain(site))
	f.Add(hello)
	f.Add(fragmented(hello, 100))
	f.Add(withExtension(hello, extensionECH, echGrease()))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		from := bytes.NewReader(text)
		name, _, read, err := sniff(t.Context(), from)
		if used := len(text) - from.Len(); used > maxHello {
			t.Errorf("read %d bytes", used)
		}
		if err != nil {
			return
		}
		if !bytes.HasPrefix(text, read) || len(text)-from.Len() != len(read) {
			t.Errorf("read %d bytes, kept %d", len(text)-from.Len(), len(read))
		}
		if name == "" {
			return
		}
		var sent []byte // without the framing
		for rest := read; len(rest) >= 5; {
			end := min(5+int(binary.BigEndian.Uint16(rest[3:])), len(rest))
			sent = append(sent, rest[5:end]...)
			rest = rest[end:]
		}
		if !bytes.Contains(bytes.ToLower(sent), []byte(name)) {
			t.Errorf("the name %q was not sent", name)
		}
	})
}
