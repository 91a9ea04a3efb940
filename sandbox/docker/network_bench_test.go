package docker_test

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// fetch makes connections to a host, port and name, a request on each, and prints the milliseconds of
// each, and then those of one large download and its bytes.
const fetch = `
import socket, ssl, sys, time
host, port, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
def get(n):
    began, total = time.perf_counter(), 0
    s = context.wrap_socket(socket.create_connection((host, port)), server_hostname="site.example.com")
    s.sendall(b"GET /%d HTTP/1.0\r\nHost: site.example.com\r\n\r\n" % n)
    while True:
        part = s.recv(1 << 18)
        if not part:
            return (time.perf_counter() - began) * 1000, total
        total += len(part)
get(1)
for _ in range(count):
    print(get(1)[0])
print(*get(size))
`

// BenchmarkFetch: a TLS connection with one request from inside a sandbox, and a download, against the
// same program in a container on the host's network, which reaches the server directly.
func BenchmarkFetch(b *testing.B) {
	const count, size = 40, 64 << 20
	hosts := newRegistry(b)
	sandbox := start(b, dockertest.New(b), spec())
	if err := sandbox.ServeEgress(b.Context(), hosts.Session("session")); err != nil {
		b.Fatal(err)
	}
	if _, err := sandbox.Write(b.Context(), core.WriteFile{Path: "fetch.py", Data: []byte(fetch)}); err != nil {
		b.Fatal(err)
	}
	_, port, err := net.SplitHostPort(hosts.secure)
	if err != nil {
		b.Fatal(err)
	}
	rest := []string{strconv.Itoa(count), strconv.Itoa(size)}
	var through, direct []time.Duration
	var throughMs, directMs float64
	for b.Loop() {
		_, out := sandbox.sh(b, "python3 fetch.py site.example.com 443 "+strings.Join(rest, " "))
		throughMs += times(b, out, size, &through)
		out = dockertest.Docker(b, append([]string{"run", "--rm", "--network", "host", dockertest.Image(b), "python3", "-c", fetch, "127.0.0.1", port}, rest...)...)
		directMs += times(b, out, size, &direct)
	}
	own, other := percentile(through, 50), percentile(direct, 50)
	b.ReportMetric(ms(own), "ms/p50")
	b.ReportMetric(ms(own)-ms(other), "ms/added")
	b.ReportMetric(directMs/throughMs, "throughput-ratio")
	rate := func(total float64) float64 { return float64(size) * float64(b.N) / 1e3 / total }
	b.Logf("bench: fetch %.1f ms (p99 %.1f), direct %.1f ms, adds %.1f ms; download %.0f MB/s, direct %.0f MB/s",
		ms(own), ms(percentile(through, 99)), ms(other), ms(own)-ms(other), rate(throughMs), rate(directMs))
}

// times adds the milliseconds of the fetches to all, and returns those of the download.
func times(b *testing.B, out string, size int, all *[]time.Duration) float64 {
	b.Helper()
	lines := strings.Split(out, "\n")
	for _, line := range lines[:len(lines)-1] {
		n, err := strconv.ParseFloat(line, 64)
		if err != nil {
			b.Fatalf("output %q: %v", out, err)
		}
		*all = append(*all, time.Duration(n*float64(time.Millisecond)))
	}
	took, total, _ := strings.Cut(lines[len(lines)-1], " ")
	n, err := strconv.ParseFloat(took, 64)
	if got, totalErr := strconv.Atoi(total); err != nil || totalErr != nil || got < size {
		b.Fatalf("output %q", out)
	}
	return n
}

// percentile is the value below which p of a hundred lie.
func percentile(all []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)*p/100]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
