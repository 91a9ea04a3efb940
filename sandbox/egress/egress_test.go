package egress_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/egress"
)

func TestConnect_CarriesTLSToTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trust := w.serveTLS(t, publicAddr+":443", func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(rw, r.Body)
	})
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	answer, err := w.client(t, trust).Post("https://"+site+"/", "text/plain", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d bytes of %d, %v", len(got), len(body), err)
	}
}

func TestConnect_RecordsEachConnectionOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trust := w.serveTLS(t, publicAddr+":443", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, 5000)) })
	program, done := w.connect(t, site, 443)
	conn := tls.Client(program, &tls.Config{ServerName: site, RootCAs: trust})
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+site+"\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	<-done
	r := w.record(t)
	if r.SessionID != "session" || r.Host != site || r.Port != 443 || !r.Allowed || r.Rule != "open" {
		t.Errorf("%+v", r)
	}
	if r.Sent < 200 || r.Sent > 5000 || r.Received < 5000 || r.Received > 15000 {
		t.Errorf("%d bytes sent, %d received", r.Sent, r.Received)
	}
	if r.StartedAt.IsZero() || !r.EndedAt.After(r.StartedAt) {
		t.Errorf("from %v to %v", r.StartedAt, r.EndedAt)
	}
}

// Each policy, by name and port. What is refused is refused before any name is resolved.
func TestConnect_JudgesByPolicyNameAndPort(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mode core.EgressMode
		host string
		port uint16
		want egress.Rule
	}{
		{core.EgressOpen, site, 443, egress.Open},
		{core.EgressOpen, site, 80, egress.Open},
		{core.EgressOpen, site, 8443, egress.PortNotAllowed},
		{core.EgressOpen, site, 22, egress.PortNotAllowed},
		{core.EgressOpen, "mirror.corp", 443, egress.Open},
		{core.EgressOpen, "mirror.corp", 8081, egress.PrivateException},
		{core.EgressOpen, "other.corp", 8081, egress.PortNotAllowed},
		{core.EgressOpen, "1.2.3.4", 443, egress.HostIsAddress},
		{core.EgressOpen, "2130706433", 443, egress.HostIsAddress},
		{core.EgressOpen, "0x7f000001", 443, egress.HostIsAddress},
		{core.EgressOpen, "0x7f.1", 443, egress.HostIsAddress},
		{core.EgressOpen, "0177.0.0.01", 443, egress.HostIsAddress},
		{core.EgressOpen, "a.b.0xc0", 443, egress.HostIsAddress},
		{core.EgressOpen, "x.0x", 443, egress.HostIsAddress},
		{core.EgressAllowlist, "listed.example.com", 443, egress.HostListed},
		{core.EgressAllowlist, "listed.example.com", 8443, egress.PortNotAllowed},
		{core.EgressAllowlist, "a.below.example.com", 80, egress.HostListed},
		{core.EgressAllowlist, "a.b.below.example.com", 443, egress.HostListed},
		{core.EgressAllowlist, "below.example.com", 443, egress.HostNotAllowed},
		{core.EgressAllowlist, "evilbelow.example.com", 443, egress.HostNotAllowed},
		{core.EgressAllowlist, "listed.example.com.evil.com", 443, egress.HostNotAllowed},
		{core.EgressAllowlist, "xlisted.example.com", 443, egress.HostNotAllowed},
		{core.EgressAllowlist, "mirror.corp", 8081, egress.PrivateException},
		{core.EgressNone, site, 443, egress.NetworkOff},
		{core.EgressNone, "listed.example.com", 443, egress.NetworkOff},
		{core.EgressNone, "mirror.corp", 8081, egress.NetworkOff},
		{"", site, 443, egress.NetworkOff},
		{"unknown", site, 443, egress.NetworkOff},
	} {
		t.Run(string(row.mode)+" "+row.host, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "mirror.corp:8081")
			w.set(row.mode, "listed.example.com", "*.below.example.com")
			w.names = map[string][]string{}
			program, done := w.connect(t, row.host, row.port)
			switch row.port {
			case 443:
				_ = tls.Client(program, &tls.Config{ServerName: row.host, InsecureSkipVerify: true}).Handshake()
			case 80:
				_, _ = io.WriteString(program, "GET / HTTP/1.1\r\nHost: "+row.host+"\r\n\r\n")
				_, _ = io.ReadAll(program)
			}
			_ = program.CloseWrite()
			<-done
			r := w.record(t)
			switch row.want {
			case egress.Open, egress.HostListed, egress.PrivateException:
				if len(w.asked) != 1 || r.Rule != string(egress.NameNotFound) {
					t.Errorf("resolved %v, rule %s; want it to go on to resolve the name", w.asked, r.Rule)
				}
			default:
				if len(w.asked) != 0 || r.Rule != string(row.want) || r.Allowed {
					t.Errorf("resolved %v, allowed %v, rule %s, want %s", w.asked, r.Allowed, r.Rule, row.want)
				}
			}
		})
	}
}

func TestConnect_FailsClosedWithoutAPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failing = true
	program, done := w.connect(t, site, 443)
	_, _ = io.ReadAll(program)
	_ = program.Close()
	<-done
	if r := w.record(t); r.Allowed || r.Rule != string(egress.PolicyUnreadable) {
		t.Errorf("%+v", r)
	}
}

func TestConnect_AHostThatIsAddedHoldsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(core.EgressAllowlist)
	trust := w.serveTLS(t, publicAddr+":443", func(http.ResponseWriter, *http.Request) {})
	client := w.client(t, trust)
	if answer, err := client.Get("https://" + site); err == nil {
		_ = answer.Body.Close()
		t.Fatal("a host that is on no list was reached")
	} else if !strings.Contains(err.Error(), "access denied") {
		t.Errorf("err = %v, want the alert", err)
	}
	w.set(core.EgressAllowlist, site)
	answer, err := client.Get("https://" + site)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

// Every class of address that is not the public internet's, alone and beside a public one.
func TestConnect_RefusesNamesWithAddressesThatAreNotPublic(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1",
		"169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.88.99.1",
		"192.168.1.1", "198.18.0.1", "198.19.255.255", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::2", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::10.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1",
		"64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "100::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
		"2001::1", "2001:0:102:304::f5ff:fffe", "2001:2::1", "2001:10::1", "2001:20::1", "2002:a00:1::1", "2002:5db8:d822::1", "5f00::1", "::ffff:0:10.0.0.1",
	} {
		for name, addrs := range map[string][]string{"alone": {addr}, "first": {addr, publicAddr}, "last": {publicAddr, addr}} {
			w := newWorld(t)
			w.names[site] = addrs
			program, done := w.connect(t, site, 443)
			err := tls.Client(program, &tls.Config{ServerName: site, InsecureSkipVerify: true}).Handshake()
			_ = program.Close()
			<-done
			if r := w.record(t); err == nil || r.Allowed || r.Rule != string(egress.AddressNotPublic) || len(w.dialled) != 0 {
				t.Errorf("%s, %s: %v, rule %s, dialled %v", addr, name, err, r.Rule, w.dialled)
			}
		}
	}
}

func TestConnect_ReachesPublicAddressesInEveryForm(t *testing.T) {
	t.Parallel()
	for addr, dialled := range map[string]string{
		publicAddr: publicAddr + ":443", "::ffff:" + publicAddr: publicAddr + ":443", "64:ff9b::5db8:d822": "[64:ff9b::5db8:d822]:443",
		"2606:4700::1": "[2606:4700::1]:443", "192.0.2.1": "192.0.2.1:443", "198.51.100.7": "198.51.100.7:443",
		"203.0.113.9": "203.0.113.9:443", "2001:db8::1": "[2001:db8::1]:443", "172.32.0.1": "172.32.0.1:443", "100.128.0.1": "100.128.0.1:443",
	} {
		w := newWorld(t)
		w.names[site] = []string{addr}
		trust := w.serveTLS(t, dialled, func(http.ResponseWriter, *http.Request) {})
		answer, err := w.client(t, trust).Get("https://" + site)
		if err != nil {
			t.Errorf("%s: %v, dialled %v", addr, err, w.dialled)
			continue
		}
		_ = answer.Body.Close()
	}
}

func TestConnect_NeverReachesThisMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, own := range ownAddresses(t) {
		w.names[site] = []string{own}
		program, done := w.connect(t, site, 443)
		_ = tls.Client(program, &tls.Config{ServerName: site, InsecureSkipVerify: true}).Handshake()
		_ = program.Close()
		<-done
		if r := w.record(t); r.Rule != string(egress.AddressNotPublic) {
			t.Errorf("%s: rule %s", own, r.Rule)
		}
	}
}

// The address that was checked is the one that is dialled, whatever the name leads to a moment later.
func TestConnect_ResolvesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names["later "+site] = []string{"127.0.0.1"}
	trust := w.serveTLS(t, publicAddr+":443", func(http.ResponseWriter, *http.Request) {})
	answer, err := w.client(t, trust).Get("https://" + site)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if len(w.asked) != 1 || len(w.dialled) != 1 || w.dialled[0] != publicAddr+":443" {
		t.Errorf("resolved %v, dialled %v", w.asked, w.dialled)
	}
	if w.asked[0] != site+"." {
		t.Errorf("resolved %q, which the machine's search domains could change", w.asked[0])
	}
}

func TestConnect_TriesTheNextAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.names[site] = []string{"2606:4700::1", "93.184.216.35", publicAddr}
	trust := w.serveTLS(t, publicAddr+":443", func(http.ResponseWriter, *http.Request) {})
	answer, err := w.client(t, trust).Get("https://" + site)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if len(w.dialled) != 2 {
		t.Errorf("dialled %v, want IPv4 first", w.dialled)
	}
}

func TestConnect_AnExceptionMayBePrivateAndSpeakWhatItWants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mirror.corp:9000", "mirror.corp:443")
	w.names["mirror.corp"] = []string{"10.1.2.3"}
	w.serve(t, "10.1.2.3:9000", func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "mirror") })
	program, done := w.connect(t, "mirror.corp", 9000)
	_, _ = io.WriteString(program, "GET / HTTP/1.0\r\n\r\n")
	if got, err := io.ReadAll(program); err != nil || !strings.HasSuffix(string(got), "mirror") {
		t.Errorf("%q, %v", got, err)
	}
	_ = program.Close()
	<-done
	if r := w.record(t); !r.Allowed || r.Rule != string(egress.PrivateException) {
		t.Errorf("%+v", r)
	}
	// On 443 it has to be the server that it says it is.
	program, done = w.connect(t, "mirror.corp", 443)
	_ = tls.Client(program, &tls.Config{ServerName: "other.corp", InsecureSkipVerify: true}).Handshake()
	_ = program.Close()
	<-done
	if r := w.record(t); r.Rule != string(egress.ServerNameDiffers) {
		t.Errorf("rule %s", r.Rule)
	}
}

func TestNew_DemandsHostAndPort(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "host", "host:", ":443", "host:0", "host:65536", "host:x", "10.0.0.1:443", "0x7f.1:443", "[::1]:443", "Host:443", "a b:443", "*.corp:443", "https://host:443"} {
		if _, err := egress.New(egress.Options{Private: []string{entry}}); core.CodeOf(err) != "invalid_configuration" {
			t.Errorf("%q: %v", entry, err)
		}
	}
}
