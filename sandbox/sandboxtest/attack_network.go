package sandboxtest

import (
	_ "embed"
	"fmt"
	"io"
	"log"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/egress"
)

//go:embed attack.py
var attackHelp string

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// attack is one attempt to reach what may not be reached: a Python text whose last line is an expression,
// what came back.
type attack struct {
	name string
	text string
	// rule is what a record of it must say; "" where the kernel refuses and the control plane sees nothing.
	rule egress.Rule
	// welcome: it is no attack, the site answers.
	welcome bool
}

// RunNetworkAttacks tries every attack under each policy, and afterwards whether the sandbox still
// reaches what it may.
func RunNetworkAttacks(t *testing.T, open OpenNetwork) {
	t.Helper()
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		n := NewNetwork(t, core.EgressPolicy{Mode: core.EgressOpen})
		n.lead(classNames())
		n.lead(map[string][]string{"mixed.example.com": {siteAddress, "10.0.0.1"}, reboundSite: {siteAddress}})
		n.later[reboundSite] = []string{"127.0.0.1"}
		n.attack(t, open(t, n.Way), literalAttacks(), targetAttacks(), classAttacks(), floodAttacks())
	})
	t.Run("allowlist", func(t *testing.T) {
		t.Parallel()
		n := NewNetwork(t, core.EgressPolicy{Mode: core.EgressAllowlist, Hosts: []string{NetworkSite, "*.below.example.com"}})
		n.attack(t, open(t, n.Way), listAttacks())
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		n := NewNetwork(t, core.EgressPolicy{Mode: core.EgressNone, Hosts: []string{NetworkSite}})
		ws := open(t, n.Way)
		n.attack(t, ws, literalAttacks(), offAttacks())
		if got := (box{PlatformWorkspace: ws}).must(t, "awk -F: 'NR > 2 {print $1}' /proc/net/dev | tr -d ' '"); got != "lo\n" {
			t.Errorf("interfaces %q, want lo alone", got)
		}
	})
}

// attack runs groups of attacks in one sandbox, each group as one program.
func (n *Network) attack(t *testing.T, ws core.PlatformWorkspace, groups ...[]attack) {
	t.Helper()
	b := box{PlatformWorkspace: ws}
	b.write(t, map[string]string{"attack.py": attackHelp})
	if n.policy.Mode != core.EgressNone {
		rule := egress.Open
		if n.policy.Mode == core.EgressAllowlist {
			rule = egress.HostListed
		}
		groups = append(groups, []attack{{name: "the site afterwards", text: "tls(SITE, SITE)", rule: rule, welcome: true}})
	}
	tried := 0
	for _, group := range groups {
		n.try(t, b, group)
		tried += len(group)
	}
	t.Logf("sandboxtest: %d network attacks tried with the policy %s", tried, n.policy.Mode)
}

func (n *Network) try(t *testing.T, b box, group []attack) {
	t.Helper()
	b.write(t, map[string]string{"try.py": program(group)})
	lines := strings.Split(strings.TrimSuffix(b.must(t, "python3 try.py"), "\n"), "\n")
	records, breaches := n.take(t, group)
	if len(breaches) > 0 {
		t.Errorf("breaches: %q", breaches)
	}
	if len(lines) != len(group) {
		t.Fatalf("%d answers of %d attacks: %q", len(lines), len(group), lines)
	}
	for i, a := range group {
		fields := strings.Split(lines[i], "\t")
		word, want := fields[1], "denied"
		if a.welcome {
			want = "welcome"
		}
		if fields[0] != a.name || word != want {
			t.Errorf("%s: it printed %q, want %s", a.name, lines[i], want)
		}
	}
	for rule, want := range rules(group) {
		if got := rulesOf(records)[rule]; got < want {
			t.Errorf("%d records with rule %s, want %d", got, rule, want)
		}
	}
}

// rules counts the records that a group must leave, by rule.
func rules(group []attack) map[egress.Rule]int {
	count := map[egress.Rule]int{}
	for _, a := range group {
		if a.rule != "" {
			count[a.rule]++
		}
	}
	return count
}

func rulesOf(records []core.EgressRecord) map[egress.Rule]int {
	count := map[egress.Rule]int{}
	for _, r := range records {
		count[egress.Rule(r.Rule)]++
	}
	return count
}

// program makes the Python program of a group.
func program(group []attack) string {
	var b strings.Builder
	b.WriteString("from attack import *\n")
	for i, a := range group {
		lines := strings.Split(a.text, "\n")
		last := len(lines) - 1
		fmt.Fprintf(&b, "def a%d():\n", i)
		for _, line := range lines[:last] {
			b.WriteString("    " + line + "\n")
		}
		fmt.Fprintf(&b, "    return %s\nrun(%q, a%d)\n", lines[last], a.name, i)
	}
	return b.String()
}

// literalAttacks go around names. The kernel has no way for them.
func literalAttacks() []attack {
	return []attack{
		{name: "an address", text: `tcp("93.184.216.34", 443)`},
		{name: "an address on port 80", text: `tcp("93.184.216.34", 80)`},
		{name: "the metadata service", text: `tcp("169.254.169.254", 80)`},
		{name: "the metadata service of containers", text: `tcp("169.254.170.2", 80)`},
		{name: "Docker on the bridge", text: `tcp("172.17.0.1", 2375)`},
		{name: "a private network", text: `tcp("10.0.0.1", 5432)`},
		{name: "the address of the site", text: `tcp("203.0.113.10", 443)`},
		{name: "a decimal address", text: `tcp("2852039166", 80)`},
		{name: "an octal address", text: `tcp("0251.0376.0251.0376", 80)`},
		{name: "a hexadecimal address", text: `tcp("0xa9fea9fe", 80)`},
		{name: "a short address", text: `tcp("10.1", 80)`},
		{name: "an address in a URL", text: `fetch("http://2852039166/latest/meta-data/")`},
		{name: "IPv6", text: `tcp("2606:4700::1111", 443, family=socket.AF_INET6)`},
		{name: "IPv6 metadata", text: `tcp("fd00:ec2::254", 80, family=socket.AF_INET6)`},
		{name: "a mapped address", text: `tcp("::ffff:169.254.169.254", 80, family=socket.AF_INET6)`},
		{name: "NAT64", text: `tcp("64:ff9b::a9fe:a9fe", 80, family=socket.AF_INET6)`},
		{name: "UDP", text: `udp("8.8.8.8", 53)`},
		{name: "QUIC to an address", text: `udp("93.184.216.34", 443)`},
		{name: "QUIC to the site", text: `udp(socket.gethostbyname(SITE), 443)`},
		{name: "multicast", text: `udp("239.255.255.250", 1900)`},
		{name: "broadcast", text: `udp("255.255.255.255", 67)`},
		{name: "another name server", text: `query("example.com", server="8.8.8.8")`},
		{name: "another name server by TCP", text: `query("example.com", server="1.1.1.1", stream=True)`},
		{name: "DNS over HTTPS at an address", text: `tls("1.1.1.1", "cloudflare-dns.com")`},
		{name: "a raw socket", text: `socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)`},
		{name: "a raw packet", text: `socket.socket(17, socket.SOCK_RAW, 3)`},
		{name: "a ping", text: "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)\ns.sendto(b'\\x08\\0\\0\\0\\0\\0\\0\\0', ('8.8.8.8', 0))"},
		{name: "the hypervisor", text: `socket.socket(40, socket.SOCK_STREAM).connect((2, 1024))`},
		{name: "SCTP", text: `socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).connect(("93.184.216.34", 443))`},
		{name: "multipath TCP", text: `socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(("93.184.216.34", 443))`},
		{name: "a device of choice", text: "s = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, 25, b'eth0\\0')\ns.connect(('93.184.216.34', 443))"},
		{name: "a route of one's own", text: "s = socket.socket(16, socket.SOCK_RAW, 0)\ns.send(struct.pack('=IHHIIBBBBBBBBIHHI', 36, 24, 0x605, 1, 0, 2, 0, 0, 0, 254, 3, 0, 1, 0, 8, 4, 1))\nb'CANARY' if struct.unpack('=i', s.recv(4096)[16:20])[0] == 0 else b''"},
		{name: "a tunnel device", text: `open("/dev/net/tun", "r+b")`},
		{name: "a name of one's own", text: `open("/etc/hosts", "a").write("203.0.113.10 other.example.com\n")`},
		{name: "a resolver of one's own", text: `open("/etc/resolv.conf", "w").write("nameserver 8.8.8.8\n")`},
		{name: "the name server's port", text: "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 53))"},
		{name: "an address that no name has", text: `tcp("127.100.200.1", 443)`},
	}
}

// targetAttacks ask for one thing and want another.
func targetAttacks() []attack {
	list := []attack{
		{name: "another server name", text: `tls(SITE, "other.example.com")`, rule: egress.ServerNameDiffers},
		{name: "a server name below", text: `tls(SITE, "a." + SITE)`, rule: egress.ServerNameDiffers},
		{name: "no server name", text: `tls(SITE, None)`, rule: egress.ServerNameMissing},
		{name: "HTTP on the port of TLS", text: `tcp(SITE, 443)`, rule: egress.NotTLS},
		{name: "SSH on the port of TLS", text: `tcp(SITE, 443, b"SSH-2.0-OpenSSH_9.2\r\n")`, rule: egress.NotTLS},
		{name: "TLS on the port of HTTP", text: `tls(SITE, SITE, port=80)`, rule: egress.NotHTTP},
		{name: "another Host", text: `http(SITE, ("/", "other.example.com"))`, rule: egress.HostHeaderDiffers},
		{name: "an address as Host", text: `http(SITE, ("/latest/meta-data/", "169.254.169.254"))`, rule: egress.HostHeaderDiffers},
		{name: "another Host in the second request", text: "got = http(SITE, (\"/\", SITE), (\"/\", \"other.example.com\"))\ngot if b'CANARY' in got or b'egress_refused' not in got else b''", rule: egress.HostHeaderDiffers},
		{name: "another host in the request line", text: `http(SITE, ("http://other.example.com/", SITE))`, rule: egress.HostHeaderDiffers},
		{name: "a hidden request", text: `tcp(SITE, 80, b"POST / HTTP/1.1\r\nHost: site.example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n").replace(b"WELCOME", b"")`, rule: egress.HostHeaderDiffers},
		{name: "two Hosts", text: `tcp(SITE, 80, b"GET / HTTP/1.1\r\nHost: site.example.com\r\nHost: other.example.com\r\n\r\n")`, rule: egress.NotHTTP},
		{name: "a tunnel", text: `tcp(SITE, 80, b"CONNECT other.example.com:443 HTTP/1.1\r\nHost: other.example.com:443\r\n\r\n")`, rule: egress.TunnelNotAllowed},
		{name: "HTTP/2 to another host", text: `tcp(SITE, 80, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")`, rule: egress.HostHeaderDiffers},
		{name: "an HTTP proxy", text: "os.environ['http_proxy'] = 'http://' + SITE\nfetch('http://other.example.com/')", rule: egress.HostHeaderDiffers},
		{name: "an HTTPS proxy", text: "os.environ['https_proxy'] = 'http://' + SITE + ':80'\nfetch('https://other.example.com/')", rule: egress.TunnelNotAllowed},
		{name: "a proxy for everything", text: "os.environ['ALL_PROXY'] = os.environ['http_proxy'] = 'http://169.254.169.254:80'\nfetch('http://' + SITE + '/')"},
		{name: "no proxy for a private name", text: "os.environ['NO_PROXY'] = '*'\nfetch('http://a10-0-0-1.example.com/')", rule: egress.AddressNotPublic},
		{name: "a redirect inside", text: `fetch("http://" + SITE + "/?to=http://a169-254-169-254.example.com/latest/")`, rule: egress.AddressNotPublic},
		{name: "a redirect to an address", text: `fetch("http://" + SITE + "/?to=http://10.0.0.1/")`, rule: egress.Open},
		{name: "a huge ClientHello", text: `tcp(SITE, 443, hello(SITE, 60000))`, rule: egress.NotTLS},
		{name: "an endless ClientHello", text: "s = socket.create_connection((SITE, 443))\ndef feed():\n    try:\n        s.sendall(b'\\x16\\x03\\x01\\x40\\x00\\x01\\xff\\xff\\xff' + b'\\0' * 10000000)\n    except OSError: pass\nthreading.Thread(target=feed, daemon=True).start()\ndrain(s)", rule: egress.NotTLS},
		{name: "a dripping ClientHello", text: "s = socket.create_connection((SITE, 443))\ndef feed():\n    try:\n        for b in hello(SITE):\n            s.sendall(bytes([b]))\n            time.sleep(0.5)\n    except OSError: pass\nthreading.Thread(target=feed, daemon=True).start()\ndrain(s)", rule: egress.NothingAsked},
		{name: "a dripping request", text: "s = socket.create_connection((SITE, 80))\ndef feed():\n    try:\n        for b in b'GET / HTTP/1.1' * 100:\n            s.sendall(bytes([b]))\n            time.sleep(0.5)\n    except OSError: pass\nthreading.Thread(target=feed, daemon=True).start()\ndrain(s)", rule: egress.NotHTTP},
		{name: "a name in decimal", text: `tcp(address("2852039166"), 80, b"GET / HTTP/1.1\r\nHost: 2852039166\r\n\r\n")`, rule: egress.HostIsAddress},
		{name: "a name in hexadecimal", text: `tls(address("0xa9fea9fe"), "0xa9fea9fe")`, rule: egress.HostIsAddress},
		{name: "a name with octal labels", text: `tls(address("0251.0376.0251.0376"), "0251.0376.0251.0376")`, rule: egress.HostIsAddress},
		{name: "a name that is an address", text: `tls(address("169.254.169.254"), "169.254.169.254")`, rule: egress.HostIsAddress},
		{name: "a name with a zero byte", text: `query(b"\x04a\0.b\7example\3com\0") and address("a\0.b.example.com")`},
		{name: "a name with a dot in a label", text: `query(b"\x10site.example.com\4evil\3com\0") and b""`},
		{name: "a name with an address first and another later", text: "got = tls('rebound.example.com', 'rebound.example.com')\ntls('rebound.example.com', 'rebound.example.com')", rule: egress.AddressNotPublic},
		{name: "a name with a private address beside a public one", text: `tls("mixed.example.com", "mixed.example.com")`, rule: egress.AddressNotPublic},
		{name: "a name that does not exist", text: `tls("nowhere.example.com", "nowhere.example.com")`, rule: egress.NameNotFound},
	}
	for _, port := range []int{21, 22, 25, 53, 3306, 5432, 6379, 8080, 8443, 9418} {
		list = append(list, attack{name: fmt.Sprintf("port %d of the site", port), text: fmt.Sprintf("tcp(SITE, %d)", port)})
	}
	return list
}

// classes are addresses of every class that is refused after resolution.
func classes() []string {
	return []string{
		"0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.0.0.192", "192.168.0.1", "198.18.0.1",
		"224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2001::a00:1",
		"2002:a00:1::", "fd00:ec2::254", "fe80::1", "ff02::1",
	}
}

func className(addr string) string {
	return "a" + strings.NewReplacer(".", "-", ":", "-").Replace(addr) + ".example.com"
}

func classNames() map[string][]string {
	names := map[string][]string{}
	for _, addr := range classes() {
		names[className(addr)] = []string{addr}
	}
	return names
}

func classAttacks() []attack {
	var list []attack
	for _, addr := range classes() {
		name := className(addr)
		list = append(list,
			attack{name: "a name of " + addr, text: fmt.Sprintf("tls(%q, %q)", name, name), rule: egress.AddressNotPublic})
	}
	return list
}

// floodAttacks try to use up what the way out has.
func floodAttacks() []attack {
	return []attack{
		{name: "a flood of queries", text: "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.connect(('127.0.0.1', 53))\nfor i in range(20000):\n    try: s.send(os.urandom(40))\n    except OSError: pass\nb''"},
		{name: "ten thousand names", text: "for i in range(10000): address('n%d.example.com' % i)\nb''"},
		{name: "the address of a name that was forgotten", text: "old = address('forgotten.example.com')\nfor i in range(600): address('m%d.example.com' % i)\ntls(old, 'forgotten.example.com')"},
		{name: "a thousand connections", text: "kept = []\nfor i in range(1000):\n    try: kept.append(socket.create_connection((SITE, 443)))\n    except OSError: pass\nb''", rule: egress.NothingAsked},
		{name: "connections to the name server", text: "kept = []\nfor i in range(100):\n    try: kept.append(socket.create_connection(('127.0.0.1', 53)))\n    except OSError: pass\nb'' if address(SITE) else b''"},
	}
}

// listAttacks want what is not on the list.
func listAttacks() []attack {
	list := []attack{
		{name: "DNS over HTTPS", text: `tls("dns.google", "dns.google")`, rule: egress.HostNotAllowed},
		{name: "the site's server for another name", text: `tls("other.example.com", "site.example.com")`, rule: egress.HostNotAllowed},
		{name: "the site's name for another server", text: `tls(SITE, "other.example.com")`, rule: egress.ServerNameDiffers},
		{name: "what is refused says why", text: "got = http('other.example.com', ('/', 'other.example.com'))\ngot if b'host_not_allowed' not in got else b''", rule: egress.HostNotAllowed},
		{name: "a listed name in a query", text: `fetch("http://other.example.com/?site.example.com")`, rule: egress.HostNotAllowed},
		{name: "a listed name as a user", text: `fetch("http://site.example.com@other.example.com/")`},
	}
	for _, name := range []string{
		"evil.com", "site.example.com.evil.com", "evilsite.example.com", "example.com", "com", "below.example.com", "xbelow.example.com",
		"www.site.example.com", "site-example.com", "xn--ste-4ma.example.com", "localhost.evil.com",
	} {
		list = append(list, attack{name: "the name " + name, text: fmt.Sprintf("tls(%q, %q)", name, name), rule: egress.HostNotAllowed})
	}
	return list
}

// offAttacks want names when there is no network.
func offAttacks() []attack {
	var list []attack
	for _, name := range []string{
		NetworkSite, "github.com", "example.com", "registry.example.com", "packages.example.org", "dns.google", "metadata.google.internal", "host.docker.internal", "gateway.docker.internal",
	} {
		list = append(list,
			attack{name: "TLS to " + name, text: fmt.Sprintf("tls(%q, %q)", name, name), rule: egress.NetworkOff},
			attack{name: "HTTP to " + name, text: fmt.Sprintf("http(%q, (\"/\", %q))", name, name), rule: egress.NetworkOff})
	}
	return list
}
