package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// fixed gives every name one address.
type fixed struct{}

func (fixed) address(name string) (netip.Addr, error) {
	if !wire.IsHostName(name) || name != strings.ToLower(name) {
		panic("asked for " + name)
	}
	return netip.MustParseAddr("127.100.0.1"), nil
}

type nobody struct{}

func (nobody) address(string) (netip.Addr, error) { return netip.Addr{}, errNobody }

// query is one question; labels are put together as they are.
func query(kind dnsmessage.Type, class dnsmessage.Class, labels ...string) []byte {
	b := []byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, label := range labels {
		b = append(append(b, byte(len(label))), label...)
	}
	b = append(b, 0)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, uint16(kind)), uint16(class))
}

func TestAnswerDNS(t *testing.T) {
	t.Parallel()
	const in = dnsmessage.ClassINET
	long := strings.Repeat("a", 63)
	for name, row := range map[string]struct {
		query []byte
		code  dnsmessage.RCode
		addr  string // "" for no record
	}{
		"a name":              {query(dnsmessage.TypeA, in, "site", "example", "com"), dnsmessage.RCodeSuccess, "127.100.0.1"},
		"upper case":          {query(dnsmessage.TypeA, in, "SiTe", "EXAMPLE", "com"), dnsmessage.RCodeSuccess, "127.100.0.1"},
		"one label":           {query(dnsmessage.TypeA, in, "postgres"), dnsmessage.RCodeSuccess, "127.100.0.1"},
		"an underscore":       {query(dnsmessage.TypeA, in, "_dmarc", "example", "com"), dnsmessage.RCodeSuccess, "127.100.0.1"},
		"253 bytes":           {query(dnsmessage.TypeA, in, long, long, long, long[:61]), dnsmessage.RCodeSuccess, "127.100.0.1"},
		"254 bytes":           {query(dnsmessage.TypeA, in, long, long, long, long[:62]), dnsmessage.RCodeFormatError, ""},
		"localhost":           {query(dnsmessage.TypeA, in, "localhost"), dnsmessage.RCodeSuccess, "127.0.0.1"},
		"below localhost":     {query(dnsmessage.TypeA, in, "app", "localhost"), dnsmessage.RCodeSuccess, "127.0.0.1"},
		"IPv6":                {query(dnsmessage.TypeAAAA, in, "site", "example", "com"), dnsmessage.RCodeSuccess, ""},
		"mail":                {query(dnsmessage.TypeMX, in, "example", "com"), dnsmessage.RCodeSuccess, ""},
		"text":                {query(dnsmessage.TypeTXT, in, "example", "com"), dnsmessage.RCodeSuccess, ""},
		"a service":           {query(dnsmessage.TypeSRV, in, "_x", "_tcp", "example", "com"), dnsmessage.RCodeSuccess, ""},
		"HTTPS":               {query(65, in, "example", "com"), dnsmessage.RCodeSuccess, ""},
		"everything":          {query(dnsmessage.TypeALL, in, "example", "com"), dnsmessage.RCodeSuccess, ""},
		"an address's name":   {query(dnsmessage.TypePTR, in, "1", "0", "0", "127", "in-addr", "arpa"), dnsmessage.RCodeNameError, ""},
		"another class":       {query(dnsmessage.TypeA, dnsmessage.ClassCHAOS, "version", "bind"), dnsmessage.RCodeRefused, ""},
		"the root":            {query(dnsmessage.TypeA, in), dnsmessage.RCodeNameError, ""},
		"a zero byte":         {query(dnsmessage.TypeA, in, "a\x00b", "example", "com"), dnsmessage.RCodeNameError, ""},
		"an escape":           {query(dnsmessage.TypeA, in, "\x1b[0m", "example", "com"), dnsmessage.RCodeNameError, ""},
		"a space":             {query(dnsmessage.TypeA, in, "a b", "com"), dnsmessage.RCodeNameError, ""},
		"UTF-8":               {query(dnsmessage.TypeA, in, "m\u00fcnchen", "de"), dnsmessage.RCodeNameError, ""},
		"a dot in a label":    {query(dnsmessage.TypeA, in, "site.example", "com"), dnsmessage.RCodeFormatError, ""},
		"a label of 64":       {query(dnsmessage.TypeA, in, strings.Repeat("a", 64), "com"), dnsmessage.RCodeFormatError, ""},
		"no question":         {[]byte{0, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, dnsmessage.RCodeFormatError, ""},
		"a cut question":      {query(dnsmessage.TypeA, in, "example", "com")[:20], dnsmessage.RCodeFormatError, ""},
		"a pointer to itself": {[]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1}, dnsmessage.RCodeFormatError, ""},
		"more than one":       {append([]byte{0, 7, 1, 0, 0, 2}, append(query(dnsmessage.TypeA, in, "a")[6:], query(dnsmessage.TypeA, in, "b")[12:]...)...), dnsmessage.RCodeFormatError, ""},
		"another operation":   {append([]byte{0, 7, 0x28}, query(dnsmessage.TypeA, in, "a")[3:]...), dnsmessage.RCodeNotImplemented, ""},
		"an extension (EDNS)": {append(append([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1}, query(dnsmessage.TypeA, in, "a", "b")[12:]...), 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0), dnsmessage.RCodeSuccess, "127.100.0.1"},
	} {
		var got dnsmessage.Message
		if err := got.Unpack(answerDNS(row.query, fixed{})); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		addr := ""
		for _, a := range got.Answers {
			addr += netip.AddrFrom4(a.Body.(*dnsmessage.AResource).A).String()
		}
		if got.ID != 7 || !got.Response || got.RCode != row.code || addr != row.addr {
			t.Errorf("%s: id %d, %v, address %q; want %v, %q", name, got.ID, got.RCode, addr, row.code, row.addr)
		}
	}
	for name, text := range map[string][]byte{"nothing": nil, "less than a head": make([]byte, 11), "an answer": append([]byte{0, 7, 0x81}, query(dnsmessage.TypeA, in, "a")[3:]...)} {
		if got := answerDNS(text, fixed{}); got != nil {
			t.Errorf("%s has the answer %x", name, got)
		}
	}
	var got dnsmessage.Message
	if err := got.Unpack(answerDNS(query(dnsmessage.TypeA, in, "a", "b"), nobody{})); err != nil || got.RCode != dnsmessage.RCodeRefused {
		t.Errorf("with nobody there: %v, %v", got.RCode, err)
	}
}

// Whatever is asked: no panic, an answer no longer than a record more, and to the question that was asked.
func FuzzAnswerDNS(f *testing.F) {
	f.Add(query(dnsmessage.TypeA, dnsmessage.ClassINET, "site", "example", "com"))
	f.Add(query(dnsmessage.TypeAAAA, dnsmessage.ClassINET, "localhost"))
	f.Add([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1})
	f.Fuzz(func(t *testing.T, text []byte) {
		answer := answerDNS(text, fixed{})
		if answer == nil {
			return
		}
		if len(answer) > 12+256+4+16 {
			t.Errorf("an answer of %d bytes", len(answer))
		}
		var got dnsmessage.Message
		if err := got.Unpack(answer); err != nil || !got.Response || !bytes.Equal(answer[:2], text[:2]) {
			t.Errorf("answer %x to %x: %v", answer, text, err)
		}
	})
}

func TestDNSServer_AnswersOnBothTransports(t *testing.T) {
	t.Parallel()
	d, err := listenDNS(t.Context(), "127.0.0.1:0", fixed{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	at := d.udp.LocalAddr().String()
	for _, network := range []string{"udp", "tcp"} {
		resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, network, at)
		}}
		addrs, err := resolver.LookupNetIP(t.Context(), "ip", "site.example.com.")
		if err != nil || len(addrs) != 1 || addrs[0].Unmap().String() != "127.100.0.1" {
			t.Errorf("%s: %v, %v", network, addrs, err)
		}
	}
	// Connections beyond the bound are closed, and do not keep others out for long.
	var kept []net.Conn
	for range maxDNSConns + 4 {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		kept = append(kept, conn)
	}
	if _, err := kept[len(kept)-1].Read(make([]byte, 1)); err == nil {
		t.Error("a connection beyond the bound was kept")
	}
}

// Each name has its own address and listeners, a bounded number of them, and an address comes back late.
func TestEgress_NamesAreBounded(t *testing.T) {
	t.Parallel()
	var work sync.WaitGroup
	s, _ := (&server{out: newWriter(io.Discard)}).newSession(t.Context(), &work, 0)
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(free.Addr().(*net.TCPAddr).Port)
	_ = free.Close()
	e := newEgress(s, []uint16{port})
	given := map[netip.Addr]string{}
	for i := range 3 * maxHostNames {
		name := fmt.Sprintf("n%d.example.com", i)
		addr, err := e.address(name)
		if err != nil {
			t.Fatal(err)
		}
		if other := given[addr]; other != "" || !netip.MustParsePrefix("127.100.0.0/16").Contains(addr) {
			t.Fatalf("%s has the address %s of %q", name, addr, other)
		}
		given[addr] = name
		if again, err := e.address("n0.example.com"); i < maxHostNames && (err != nil || given[again] != "n0.example.com") {
			t.Fatalf("the name that is used all the time moved to %s, %v", again, err)
		}
	}
	if len(e.names) != maxHostNames || e.recent.Len() != maxHostNames || len(e.taken) != maxHostNames {
		t.Errorf("%d names, %d addresses", len(e.names), len(e.taken))
	}
	s.end()
	e.close()
	work.Wait()
	if len(e.names) != 0 || len(e.taken) != 0 {
		t.Errorf("%d names are left", len(e.names))
	}
	if _, err := e.address("late.example.com"); err == nil {
		t.Error("a name had an address after the end")
	}
}
