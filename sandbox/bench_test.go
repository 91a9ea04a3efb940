package sandbox_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// BenchmarkSessionReady: a session from nothing to the end of its first command, with a checkout of
// 2,000 files, beside what the parts cannot be faster than: docker run of a bare container, and the
// same files unpacked by the host's tar. Run with -benchtime=15x or more.
func BenchmarkSessionReady(b *testing.B) {
	f := setup(b)
	archive := f.source.grow(b, 2000)
	image := dockertest.Image(b)
	ready := func() {
		claim := f.newClaim()
		ws, err := f.Acquire(b.Context(), claim)
		if err != nil {
			b.Fatal(err)
		}
		run(b, ws, "git rev-parse HEAD")
		f.Release(b.Context(), claim, ws)
	}
	ready() // looks into the image once
	var ours, container, files []time.Duration
	for b.Loop() {
		ours = append(ours, timed(ready))
		container = append(container, timed(func() { dockertest.Docker(b, "run", "--rm", "--network", "none", image, "true") }))
		files = append(files, timed(func() {
			untar := exec.CommandContext(b.Context(), "tar", "-x", "-C", b.TempDir())
			untar.Stdin = bytes.NewReader(archive)
			if out, err := untar.CombinedOutput(); err != nil {
				b.Fatalf("tar: %v\n%s", err, out)
			}
		}))
		b.StopTimer()
		if err := f.RemoveAll(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	own, bare, untar := median(ours), median(container), median(files)
	ratio := float64(own) / float64(bare+2*untar)
	b.ReportMetric(ratio, "ratio")
	b.Logf("bench: session ready with 2,000 files %d ms, docker run %d ms + 2 x host tar %d ms, ratio %.2f",
		own.Milliseconds(), bare.Milliseconds(), untar.Milliseconds(), ratio)
}

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// grow commits n small files and returns them as a tar too.
func (s *source) grow(t testing.TB, n int) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for i := range n {
		name, text := fmt.Sprintf("src/pkg%d/file%d.txt", i%40, i), bytes.Repeat([]byte(core.NewID[string]()+"\n"), 100)
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.commit(t)
	return archive.Bytes()
}
