package docker_test

import (
	"context"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/egress"
	"agent-sandboxing/sandbox/sandboxtest"
	"agent-sandboxing/sandbox/toolbox"
)

// letOut starts a sandbox whose programs are let out through way.
func letOut(t testing.TB, r *docker.Runtime, way toolbox.Egress) box {
	t.Helper()
	b := start(t, r, spec())
	if err := b.ServeEgress(t.Context(), way); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNetworkAttacks(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	sandboxtest.RunNetworkAttacks(t, func(t testing.TB, way toolbox.Egress) core.PlatformWorkspace {
		return letOut(t, r, way).Client
	})
}

// clients are what programs do with a network, with no setting for it but which registry to use.
func clients() []toolchain {
	return []toolchain{
		{"python: urllib", "", `python3 -c 'import urllib.request as u
for s in ("http", "https"): assert u.urlopen(s + "://site.example.com/").read() == b"hello"'`},
		{"git: clone over HTTPS", "", `git clone -q https://git.example.com/repo.git r && git -C r log --oneline | grep -q one`},
		{"curl", "curl", `test "$(curl -sSf https://site.example.com/ http://site.example.com/)" = hellohello`},
		{"node: fetch", "node", `node -e 'fetch("https://site.example.com/").then(r => r.text()).then(t => process.exit(t === "hello" ? 0 : 1))'`},
		{"npm: install", "npm", `npm init -y >/dev/null && npm install --no-audit --no-fund --registry=https://npm.example.com/ demo && node -e 'process.exit(require("demo") === 7 ? 0 : 1)'`},
		{"pip: install", "pip3", `pip3 install -q --disable-pip-version-check --no-cache-dir --target . --index-url https://pip.example.com/simple/ demo && python3 -c 'import demo; assert demo.seven == 7'`},
		{"go: get and build", "go", `go mod init example.com/m && GOPROXY=https://go.example.com GONOSUMDB='*' GOFLAGS=-mod=mod go get example.com/demo@v1.0.0 &&
			printf 'package main\n\nimport "example.com/demo"\n\nfunc main() { println(demo.Seven) }\n' > main.go && GONOSUMDB='*' go run . 2>&1 | grep -qx 7`},
		{"cargo: fetch and build", "cargo", `cargo new -q --vcs none c && cd c && mkdir .cargo && printf '[source.crates-io]\nreplace-with = "mirror"\n[source.mirror]\nregistry = "https://git.example.com/index.git"\n' > .cargo/config.toml &&
			echo 'demo = "1"' >> Cargo.toml && echo 'fn main() { println!("{}", demo::SEVEN); }' > src/main.rs && cargo run -q | grep -qx 7`},
		{"java: a URL and the HTTP client", "javac", `cat > A.java <<'EOF'
import java.net.*; import java.net.http.*;
public class A { public static void main(String[] a) throws Exception {
  for (String s : new String[] {"http", "https"}) {
    String one = new String(new URL(s + "://site.example.com/").openStream().readAllBytes());
    String two = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(s + "://site.example.com/")).build(), HttpResponse.BodyHandlers.ofString()).body();
    if (!one.equals("hello") || !two.equals("hello")) throw new Exception(one + two);
  }
} }
EOF
javac A.java && java -Xmx128m A`},
		{"ruby: open-uri", "ruby", `ruby -ropen-uri -e 'exit URI.open("https://site.example.com/").read == "hello"'`},
		{"services of one's own on loopback", "", `python3 -c '
import http.server, threading, urllib.request as u
for address in (("127.0.0.1", 80), ("127.0.0.1", 0), ("", 0)):
    s = http.server.ThreadingHTTPServer(address, http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    assert u.urlopen("http://localhost:%d/" % s.server_port).status == 200
    s.shutdown(); s.server_close()'`},
	}
}

// Programs need no setting to reach hosts, and trust what the operator says.
func TestCompatibility_ProgramsReachTheNetwork(t *testing.T) {
	t.Parallel()
	hosts := newRegistry(t)
	config := dockertest.Config(t)
	config.CAFile = hosts.CAFile
	s := spec()
	s.Limits.MemoryBytes, s.Limits.PIDs, s.Limits.CPUs = 2<<30, 512, 2
	b := start(t, dockertest.Open(t, config), s)
	if err := b.ServeEgress(t.Context(), hosts.Session("session")); err != nil {
		t.Fatal(err)
	}
	runToolchains(t, b, clients())
}

// outside are addresses of the real internet, for a machine that reaches it:
//
//	go test ./sandbox/docker -run TestOutside -outside 'https://… http://…'
var outside = flag.String("outside", "", "addresses to fetch from inside a sandbox, separated by spaces")

// anywhere lets everything public out, and notes what happened.
type anywhere struct {
	mu      sync.Mutex
	records []core.EgressRecord
}

func (*anywhere) EgressPolicy(context.Context, core.SessionID) (core.EgressPolicy, error) {
	return core.EgressPolicy{Mode: core.EgressOpen}, nil
}

func (a *anywhere) RecordEgress(r core.EgressRecord) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records = append(a.records, r)
}

// With the host's own certificates, names and routes. A name that leads nowhere ends soon in any case.
func TestOutside_IsReachedByName(t *testing.T) {
	t.Parallel()
	a := &anywhere{}
	proxy, err := egress.New(egress.Options{Policies: a, Recorder: a})
	if err != nil {
		t.Fatal(err)
	}
	b := letOut(t, dockertest.New(t), proxy.Session("session"))
	for _, url := range strings.Fields(*outside) {
		if exit, out := b.sh(t, "python3 -c 'import sys, urllib.request as u; print(len(u.urlopen(sys.argv[1]).read()))' "+url); exit != 0 {
			t.Errorf("%s: %s", url, out)
		}
	}
	if exit, out := b.sh(t, "timeout 20 python3 -c 'import urllib.request as u; u.urlopen(\"https://nowhere.invalid/\")'; test $? = 1"); exit != 0 {
		t.Errorf("a name that leads nowhere: %s", out)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.records {
		t.Logf("%s:%d %s, %d bytes sent, %d received in %v", r.Host, r.Port, r.Rule, r.Sent, r.Received, r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond))
	}
}
