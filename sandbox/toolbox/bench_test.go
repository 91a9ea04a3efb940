package toolbox_test

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// BenchmarkTurnEnd: what the platform looks at when a turn has ended (state, snapshot, checkpoint) after
// three edits in a checkout, beside what git takes to say which files differ with its index warm. Run
// with -benchtime=10x or more.
func BenchmarkTurnEnd(b *testing.B) {
	for _, files := range []int{2_000, 20_000} {
		b.Run(fmt.Sprintf("%d files", files), func(b *testing.B) {
			c := dial(b, startBox(b))
			p := newTree(b, files)
			if err := c.Checkout(b.Context(), p.spec, p.pack()); err != nil {
				b.Fatal(err)
			}
			var state, snapshot, checkpoint, git []time.Duration
			turn := 0
			for b.Loop() {
				turn++
				sh(b, c, fmt.Sprintf("for f in 1 2 3; do echo turn %d >> dir0/file$((f * 40)); done", turn))
				git = append(git, timed(func() { sh(b, c, "git status --porcelain | wc -l") }))
				state = append(state, timed(func() {
					if _, err := c.GitState(b.Context()); err != nil {
						b.Fatal(err)
					}
				}))
				snapshot = append(snapshot, timed(func() {
					if _, err := c.Snapshot(b.Context(), io.Discard); err != nil {
						b.Fatal(err)
					}
				}))
				checkpoint = append(checkpoint, timed(func() {
					if _, err := c.Checkpoint(b.Context(), io.Discard, 64<<20); err != nil {
						b.Fatal(err)
					}
				}))
			}
			b.Logf("bench: turn end of %d files: state %v, snapshot %v, checkpoint %v; git status %v", files,
				median(state), median(snapshot), median(checkpoint), median(git))
			b.ReportMetric(float64(median(snapshot)+median(checkpoint))/float64(2*median(git)), "ratio")
		})
	}
}

func sh(t testing.TB, c *toolbox.Client, text string) {
	t.Helper()
	if res, err := c.Run(t.Context(), core.Command{Shell: text}); err != nil || res.Exit != 0 {
		t.Fatalf("%s: exit %d, %v", text, res.Exit, err)
	}
}

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(100 * time.Microsecond)
}
