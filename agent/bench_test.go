package agent_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/agent/tools"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
	"agent-sandboxing/sandbox/memory"
)

const canary = "canary-secret-4711"

// recorder keeps what a turn records, and checks what every record must be.
type recorder struct {
	t       *testing.T
	mu      sync.Mutex
	events  []core.Payload
	full    [][]byte
	partial string
	onCall  func(core.AgentToolCall)
	onText  func(string)
	spent   core.Usage
	onSpent func(total core.Usage) error
}

func (r *recorder) add(e core.Payload) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	raw, err := json.Marshal(e)
	if err != nil {
		r.t.Error(err)
	}
	if strings.Contains(string(raw), canary) {
		r.t.Errorf("a secret in an event: %s", raw)
	}
	return nil
}

func (r *recorder) ToolCall(ctx context.Context, e core.AgentToolCall) error {
	if r.onCall != nil {
		r.onCall(e)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.add(e)
}

func (r *recorder) ToolResult(ctx context.Context, e core.AgentToolResult, full []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(e.Snippet) > core.MaxSnippet || !utf8.ValidString(e.Snippet) || len(e.Object) > core.MaxSnippet {
		r.t.Errorf("snippet of %d bytes, object of %d", len(e.Snippet), len(e.Object))
	}
	r.mu.Lock()
	r.full = append(r.full, full)
	r.mu.Unlock()
	return r.add(e)
}

func (r *recorder) PolicyRefused(_ context.Context, e core.PolicyRefused) error  { return r.add(e) }
func (r *recorder) ModelRetry(_ context.Context, e core.ModelRequestRetry) error { return r.add(e) }

// Spent counts as the platform does, every request for itself.
func (r *recorder) Spent(_ context.Context, u core.Usage) error {
	r.spent = r.spent.Add(u)
	if r.onSpent != nil {
		return r.onSpent(r.spent)
	}
	return nil
}

func (r *recorder) Partial(text string) {
	r.mu.Lock()
	r.partial = text
	r.mu.Unlock()
	if r.onText != nil {
		r.onText(text)
	}
}

// results are the tool results as "tool outcome detail".
func (r *recorder) results() []string {
	var list []string
	for _, e := range r.events {
		if e, ok := e.(core.AgentToolResult); ok {
			list = append(list, strings.TrimSpace(e.Tool+" "+e.Outcome+" "+e.Detail))
		}
	}
	return list
}

type publisher struct{ titles []string }

func (p *publisher) PublishPullRequest(_ context.Context, title, _ string) (core.PublishResult, error) {
	p.titles = append(p.titles, title)
	if len(p.titles) > 1 {
		return core.PublishResult{}, core.Fail(core.Conflict, "nothing_to_publish", "There is nothing to publish. Change something first.")
	}
	return core.PublishResult{Outcome: core.PublishOpened, Number: 12, URL: "https://example.org/pull/12", Files: 3, Additions: 40, Deletions: 5}, nil
}

type bench struct {
	agent     *agent.Agent
	model     agent.Model
	server    *modeltest.Server
	ws        *memory.Workspace
	dir       string
	rec       *recorder
	publisher *publisher
}

func setup(t *testing.T, script modeltest.Script, limits agent.Limits, files map[string]string) *bench {
	t.Helper()
	dir := t.TempDir()
	ws, err := memory.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := ws.Seed(files); err != nil {
		t.Fatal(err)
	}
	server := modeltest.NewServer(script, 0)
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	model := openai.New(openai.Options{
		BaseURL: web.URL + "/v1", Key: "k", Model: script.Name(), RetryWait: time.Millisecond, Replay: openai.ReplayDetails,
	})
	t.Cleanup(model.Close)
	b := &bench{model: model, server: server, ws: ws, dir: dir, rec: &recorder{t: t}, publisher: &publisher{}}
	b.limit(t, limits, nil)
	return b
}

// limit makes the agent anew, with other limits and prices.
func (b *bench) limit(t *testing.T, limits agent.Limits, prices *agent.Prices) {
	t.Helper()
	var err error
	b.agent, err = agent.New(agent.Options{Model: b.model, Tools: tools.Options{}.New, Redactor: redact.New(canary), Limits: limits, Prices: prices})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) run(ctx context.Context, prompt string) (core.TurnResult, error) {
	return b.agent.Run(ctx, core.TurnRequest{
		SessionID: core.NewID[core.SessionID](), MessageID: core.NewID[core.MessageID](),
		Profile: "main", Policy: core.PolicySeed, Request: prompt,
		Workspace: core.WorkspaceState{Repository: "octo/x", Branch: "agent/1", BaseBranch: "main", BaseSHA: strings.Repeat("a", 40)},
	}, b.ws, b.publisher, b.rec)
}

func (b *bench) file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "workspace", "repo", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func call(tool string, args map[string]any) modeltest.Call { return modeltest.CallJSON(tool, args) }

// toolAnswers are the tool messages that the model was last sent.
func (b *bench) toolAnswers() []string {
	journal := b.server.Journal()
	var list []string
	for _, m := range journal[len(journal)-1].Messages {
		if m.Role == "tool" {
			list = append(list, m.Content)
		}
	}
	return list
}
