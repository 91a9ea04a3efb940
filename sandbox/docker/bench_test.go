package docker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// The benchmarks measure beside a baseline in the same loop, so that the ratio holds on a busy machine
// too. Run with -benchtime=20x or more.

// BenchmarkCommand: one command in a running sandbox, against docker exec in the same container.
func BenchmarkCommand(b *testing.B) {
	sandbox := start(b, dockertest.New(b), spec())
	compare(b, "command", func() {
		result, err := sandbox.Run(b.Context(), core.Command{Shell: "true"})
		if err != nil || result.Exit != 0 {
			b.Fatal(result.Exit, err)
		}
	}, "docker exec", func() { dockertest.Docker(b, "exec", sandbox.ref, "true") })
}

// BenchmarkReady: a new sandbox from nothing to the end of its first command, against docker run of a
// bare container of the same image.
func BenchmarkReady(b *testing.B) {
	r := dockertest.New(b)
	image := dockertest.Image(b)
	compare(b, "session ready", func() { start(b, r, spec()).sh(b, "true") },
		"docker run", func() { dockertest.Docker(b, "run", "--rm", "--network", "none", image, "true") })
}

// compare runs ours and theirs in turns and reports the medians and their ratio.
func compare(b *testing.B, name string, ours func(), baseline string, theirs func()) {
	b.Helper()
	var own, other []time.Duration
	ours()
	theirs()
	for b.Loop() {
		own = append(own, timed(ours))
		other = append(other, timed(theirs))
	}
	p50, p99, base := percentile(own, 50), percentile(own, 99), percentile(other, 50)
	b.ReportMetric(ms(p50), "ms/p50")
	b.ReportMetric(ms(p99), "ms/p99")
	b.ReportMetric(float64(p50)/float64(base), "ratio")
	ratio := fmt.Sprintf("%.2f", float64(p50)/float64(base))
	if p50*2 < base {
		ratio = fmt.Sprintf("1/%.0f", float64(base)/float64(p50))
	}
	b.Logf("bench: %s %.1f ms, %s %.0f ms, ratio %s", name, ms(p50), baseline, ms(base), ratio)
}

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

func percentile(all []time.Duration, p int) time.Duration {
	slices.Sort(all)
	return all[(len(all)-1)*p/100]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
