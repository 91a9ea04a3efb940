package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/agent/tools"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// benchSteps is a long turn: its messages grow to 60 calls with results of 8 KiB.
const benchSteps = 60

// BenchmarkStep: what the platform itself does in one step of a long turn (messages checked, measured
// and written for the wire, the answer's stream read, the call read, its result redacted and recorded),
// with a model and a tool that answer at once, against one `true` in the same machine's sandbox.
func BenchmarkStep(b *testing.B) {
	ws := start(b)
	model := openai.New(openai.Options{BaseURL: instantModel(b), Key: "k", Model: "bench"})
	defer model.Close()
	a, err := agent.New(agent.Options{Model: model, Tools: instantTools, Redactor: redact.New("planted-secret")})
	if err != nil {
		b.Fatal(err)
	}
	turn := func() {
		result, err := a.Run(b.Context(), core.TurnRequest{Profile: "main", Request: "go on"}, nil, nil, deaf{})
		if err != nil || result.Steps != benchSteps {
			b.Fatalf("%d steps, %v", result.Steps, err)
		}
	}
	trip := func() {
		if r := run(b, ws, core.Command{Shell: "true"}); r.Exit != 0 {
			b.Fatal(r.Exit)
		}
	}
	turn() // both once before they count
	trip()
	var own, base []time.Duration
	for b.Loop() {
		own = append(own, timed(turn)/benchSteps)
		base = append(base, timed(trip))
	}
	ours, theirs := median(own), median(base)
	b.ReportMetric(float64(ours.Microseconds()), "µs/step")
	b.Logf("bench: agent step %.2f ms, `true` in a sandbox %.2f ms, ratio %.2f (budget 1)",
		ours.Seconds()*1000, theirs.Seconds()*1000, float64(ours)/float64(theirs))
}

// instantModel calls read in every step but the last and does nothing else.
func instantModel(b *testing.B) string {
	b.Helper()
	var asked atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		step := asked.Add(1)
		delta := fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c%d","function":{"name":"read","arguments":"{\"path\":\"f%d\"}"}}]}`, step, step)
		if step%benchSteps == 0 {
			delta = `{"content":"done"}`
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", delta)
	}))
	b.Cleanup(web.Close)
	return web.URL + "/v1"
}

// instantTools are the real ones in every respect but what they do.
func instantTools(env agent.Env) []agent.Tool {
	list := tools.Options{}.New(env)
	for i, tool := range list {
		list[i] = instant{tool}
	}
	return list
}

type instant struct{ agent.Tool }

func (instant) Run(_ context.Context, args json.RawMessage) (agent.Result, error) {
	return agent.OK(string(args)+"\n"+strings.Repeat("a line of source code, as tools return it\n", 200), "1–200"), nil
}

// deaf records nothing.
type deaf struct{}

func (deaf) ToolCall(context.Context, core.AgentToolCall) error             { return nil }
func (deaf) ToolResult(context.Context, core.AgentToolResult, []byte) error { return nil }
func (deaf) PolicyRefused(context.Context, core.PolicyRefused) error        { return nil }
func (deaf) ModelRetry(context.Context, core.ModelRequestRetry) error       { return nil }
func (deaf) Spent(context.Context, core.Usage) error                        { return nil }
func (deaf) Partial(string)                                                 {}

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

func median(d []time.Duration) time.Duration { return slices.Sorted(slices.Values(d))[len(d)/2] }
