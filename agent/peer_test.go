package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/agent/tools"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// peer starts aimock, a model server by others, with testdata/aimock/fixtures.json and returns its
// address. ok is false on a machine without a Node that can run it, which CI may not be.
func peer(t *testing.T) (url string, ok bool) {
	t.Helper()
	node, err := peerNode(t)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI has to test against the outside peer: %v", err)
		}
		t.Logf("NOT TESTED against the outside peer: %v", err)
		return "", false
	}
	folder := os.Getenv("TEST_AIMOCK")
	if folder == "" {
		t.Fatal("set TEST_AIMOCK to what scripts/npm-folder agent/testdata/aimock prints")
	}
	program := filepath.Join(folder, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("the outside peer is not installed: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, node, program, "--port", "0", "--strict", "--fixtures", filepath.Join("testdata", "aimock", "fixtures.json"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it was killed
	})
	address := regexp.MustCompile(`listening on (http://127\.0\.0\.1:\d+)`)
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			return m[1], true
		}
		said = append(said, lines.Text())
	}
	t.Fatalf("the outside peer did not start: %q", said)
	return "", false
}

// peerNode finds a Node of version 20.15 or newer, which aimock needs and Debian 12 does not have.
func peerNode(t *testing.T) (path string, err error) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		return "", errors.New("there is no node")
	}
	out, err := exec.CommandContext(t.Context(), node, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("node --version: %w", err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "v%d.%d", &major, &minor); err != nil {
		return "", fmt.Errorf("node says it is %q", out)
	}
	if major < 20 || major == 20 && minor < 15 {
		return "", fmt.Errorf("node %d.%d is older than 20.15", major, minor)
	}
	return node, nil
}

// peered is a bench whose agent speaks to the outside peer.
func peered(t *testing.T, base string, dialect openai.Dialect, files map[string]string) *bench {
	t.Helper()
	b := setup(t, modeltest.Sequence(), agent.Limits{}, files)
	model := openai.New(openai.Options{BaseURL: base, Key: "k", Model: "vendor/model", Dialect: dialect})
	t.Cleanup(model.Close)
	a, err := agent.New(agent.Options{Model: model, Tools: tools.Options{}.New, Redactor: redact.New(canary)})
	if err != nil {
		t.Fatal(err)
	}
	b.agent = a
	return b
}

func TestPeer_WholeTurns(t *testing.T) {
	t.Parallel()
	url, ok := peer(t)
	if !ok {
		return
	}
	files := map[string]string{"greet.go": "package greet\n\nconst Text = \"hello, 日本\"\n"}
	tests := map[string]struct {
		base    string
		dialect openai.Dialect
		prompt  string
		results []string
		answer  string
		code    string
		retries int
		file    string // greet.go, when it changes
	}{
		"several steps, parallel calls, cut arguments, an unknown tool": {
			prompt: "Please make the greeting louder.",
			results: []string{
				"ls ok", "read ok", "edit error invalid_arguments", "apply_patch error unknown_tool", "edit ok",
			},
			answer: "The greeting is louder now.",
			file:   "package greet\n\nconst Text = \"HELLO, 日本 🙂\"\n",
		},
		"the same behind a router": {
			base: "/api/v1", dialect: openai.DialectOpenRouter,
			prompt: "Please make the greeting louder.",
			results: []string{
				"ls ok", "read ok", "edit error invalid_arguments", "apply_patch error unknown_tool", "edit ok",
			},
			answer: "The greeting is louder now.",
			file:   "package greet\n\nconst Text = \"HELLO, 日本 🙂\"\n",
		},
		"a call at the output limit is not carried out": {prompt: "Please write a long file.", results: []string{"write ok"}, answer: "Written in smaller pieces."},
		"a text at the output limit":                    {prompt: "Please say everything.", code: core.CodeModelTruncated},
		"a filtered answer":                             {prompt: "Please say nothing nice.", code: core.CodeModelRefused},
		"a busy provider":                               {prompt: "Please ask while it is busy.", answer: "It was worth the wait.", retries: 1},
		"a provider that is busy for long":              {prompt: "Please come back in an hour.", code: core.CodeModelRateLimited},
		"a stream that breaks off":                      {prompt: "Please break off.", code: core.CodeModelStreamError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := url + "/v1"
			if test.base != "" {
				base = url + test.base
			}
			b := peered(t, base, test.dialect, files)
			got, err := b.run(t.Context(), test.prompt)
			code := ""
			if err != nil {
				code = core.CodeOf(err)
				if strings.Contains(err.Error(), "canary") {
					t.Errorf("provider text in %v", err)
				}
			}
			if code != test.code || got.Answer != test.answer {
				t.Errorf("answer %q, error %v", got.Answer, err)
			}
			var results []string
			retries := 0
			for _, e := range b.rec.events {
				switch e := e.(type) {
				case core.AgentToolResult:
					results = append(results, strings.TrimSpace(e.Tool+" "+e.Outcome+" "+e.Code))
				case core.ModelRequestRetry:
					retries++
				}
			}
			if diff := cmp.Diff(test.results, results); diff != "" {
				t.Error(diff)
			}
			if test.file != "" && b.file(t, "greet.go") != test.file {
				t.Errorf("greet.go is %q", b.file(t, "greet.go"))
			}
			if err == nil && (got.Usage.PromptTokens == 0 || got.Usage.CompletionTokens == 0) {
				t.Errorf("usage %+v", got.Usage)
			}
			if retries != test.retries {
				t.Errorf("%d retries", retries)
			}
		})
	}
}

func TestPeer_OneRequest(t *testing.T) {
	t.Parallel()
	url, ok := peer(t)
	if !ok {
		return
	}
	ask := func(base string, o openai.Options, text string) (agent.Response, error) {
		o.BaseURL, o.Key, o.Model, o.Retries = url+base, "k", "vendor/model", new(0)
		c := openai.New(o)
		defer c.Close()
		return c.Stream(t.Context(), agent.Request{
			Messages: []agent.Message{{Role: agent.System, Text: "rules"}, {Role: agent.User, Text: text}},
			Tools:    []agent.ToolSpec{{Name: "ls", Description: "Lists.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}},
		}, agent.Listener{})
	}

	got, err := ask("/v1", openai.Options{Replay: openai.ReplayContent}, "make the greeting louder")
	if err != nil {
		t.Fatal(err)
	}
	want := []agent.ToolCall{{ID: "c1", Name: "ls", Arguments: "{}"}, {ID: "c2", Name: "read", Arguments: `{"path":"greet.go"}`}}
	if diff := cmp.Diff(want, got.Calls); diff != "" {
		t.Error(diff)
	}
	if got.Text != "I look at two things." || string(got.Reasoning) != `"Two files matter."` {
		t.Errorf("%+v", got)
	}
	if !got.UsageKnown || got.Usage.CostUSD != nil {
		t.Errorf("%+v", got)
	}

	got, err = ask("/api/v1", openai.Options{Dialect: openai.DialectOpenRouter, Effort: "low", Providers: []string{"one"}}, "make the greeting louder")
	if err != nil || got.Model != "vendor/model" || !got.UsageKnown {
		t.Errorf("%+v, %v", got, err)
	}

	// Strict: what no fixture answers is a failure of the provider.
	if _, err := ask("/v1", openai.Options{}, "what nobody expects"); core.CodeOf(err) != core.CodeModelUnavailable {
		t.Errorf("got %v", err)
	}

	// What the peer saw is what was meant.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/__aimock/journal", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var journal []struct {
		Path string `json:"path"`
		Body struct {
			Model     string          `json:"model"`
			Provider  json.RawMessage `json:"provider"`
			Reasoning json.RawMessage `json:"reasoning"`
			Messages  []struct {
				Role, Content string
			} `json:"messages"`
		} `json:"body"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&journal); err != nil {
		t.Fatal(err)
	}
	if len(journal) != 3 {
		t.Fatalf("the peer saw %d requests", len(journal))
	}
	second := journal[1].Body
	if second.Model != "vendor/model" || !strings.Contains(string(second.Provider), `"only"`) || string(second.Reasoning) != `{"effort":"low"}` || second.Messages[1].Content != "make the greeting louder" {
		t.Errorf("%+v", second)
	}
}
