package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/memory"
)

// benchSteps is a long turn: its messages grow to 60 calls with results of 8 KiB.
const benchSteps = 60

// BenchmarkStep: what the loop itself does in one step of a long turn (the messages checked and
// measured, calls read, results redacted and recorded), with a model and a tool that answer at once,
// against one `true` in a workspace. That workspace is in memory, where `true` starts no process and
// crosses no container: in a sandbox it takes longer.
func BenchmarkStep(b *testing.B) {
	ws, err := memory.New(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := ws.Close(); err != nil {
			b.Error(err)
		}
	}()
	text := strings.Repeat("a line of source code, as tools return it\n", 200)
	step := 0
	model := modelFunc(func(context.Context, Request) (Response, error) {
		if step++; step%benchSteps == 0 {
			return answer("done"), nil
		}
		return calling(step, "read"), nil
	})
	a := newAgent(b, model, toolset(func(context.Context, json.RawMessage) (Result, error) {
		return OK(fmt.Sprintf("%d\n%s", step, text), "1–200"), nil
	}), 0)
	var own, base []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := start(a, nobody{}).loop(b.Context()); err != nil {
			b.Fatal(err)
		}
		own = append(own, time.Since(began)/benchSteps)
		began = time.Now()
		if result, err := ws.Run(b.Context(), core.Command{Shell: "true"}); err != nil || result.Exit != 0 {
			b.Fatal(result.Exit, err)
		}
		base = append(base, time.Since(began))
	}
	ours, theirs := median(own), median(base)
	b.ReportMetric(float64(ours.Microseconds()), "µs/step")
	b.Logf("bench: agent step %.3f ms, `true` in a workspace in memory %.3f ms, ratio %.2f",
		ours.Seconds()*1000, theirs.Seconds()*1000, float64(ours)/float64(theirs))
}

func median(d []time.Duration) time.Duration { return slices.Sorted(slices.Values(d))[len(d)/2] }
