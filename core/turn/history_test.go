package turn_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/agent/tools"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

// scripted is the real agent on a scripted model; its server refuses a conversation that is not valid.
func scripted(t *testing.T, replies ...modeltest.Reply) (*agent.Agent, *modeltest.Server) {
	t.Helper()
	server := modeltest.NewServer(modeltest.Sequence(replies...), 0)
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	client := openai.New(openai.Options{BaseURL: web.URL + "/v1", Key: "k", Model: "scripted", RetryWait: time.Millisecond})
	t.Cleanup(client.Close)
	a, err := agent.New(agent.Options{Model: client, Tools: tools.Options{}.New, Redactor: redact.New("planted-secret")})
	if err != nil {
		t.Fatal(err)
	}
	return a, server
}

// impatient is a person who cancels as soon as a tool has begun.
type impatient struct {
	*store.Store
	t *testing.T
}

func (s impatient) Append(ctx context.Context, lease core.Lease, by core.Producer, id core.MessageID, events ...core.Payload) error {
	err := s.Store.Append(ctx, lease, by, id, events...)
	if call, ok := events[0].(core.AgentToolCall); ok && call.Object == "sleep 60" {
		if _, err := s.RequestCancel(ctx, lease.SessionID, "octo"); err != nil {
			s.t.Error(err)
		}
	}
	return err
}

// A cancel in the middle of several calls ends each of them, and the next turn begins a conversation of
// its own that tells of them.
func TestTurn_CancelledInTheMiddleOfSeveralCallsTheNextMessageWorks(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	a, server := scripted(t,
		modeltest.Reply{Text: "Both at once.", Calls: []modeltest.Call{
			modeltest.CallJSON("bash", map[string]any{"command": "sleep 60"}), modeltest.CallJSON("read", map[string]any{"path": "x"}),
		}},
		modeltest.Reply{Text: "Hello yourself."}, modeltest.Reply{Text: "no outline"})
	dir := t.TempDir()
	serveOne(t, impatient{s, t}, s, a, dir)
	if _, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: session.ID, OwnerID: session.OwnerID, Text: "hello", ClientKey: "next"}); err != nil {
		t.Fatal(err)
	}
	serveOne(t, s, s, a, dir)

	tl, err := s.Timeline(t.Context(), session.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []string
	for _, e := range tl.Events {
		var r core.AgentToolResult
		if e.Type == "agent_tool_result" && json.Unmarshal(e.Payload, &r) == nil {
			outcomes = append(outcomes, r.Tool+" "+r.Outcome)
		}
	}
	if diff := cmp.Diff([]string{"bash cancelled", "read cancelled"}, outcomes); diff != "" {
		t.Errorf("the calls ended as (-want +got):\n%s", diff)
	}
	if m := tl.Messages; len(m) != 4 || m[0].State != core.Cancelled || m[2].State != core.Completed || m[3].Text != "Hello yourself." {
		t.Errorf("messages %+v", m)
	}
	next := server.Journal()[1]
	if len(next.Messages) != 2 || next.Messages[0].Role != "system" || next.Messages[1].Role != "user" {
		t.Fatalf("the next turn began with %+v", next.Messages)
	}
	for _, told := range []string{"bash \"sleep 60\" cancelled\nread x cancelled", "— cancelled by a person", "assistant:\n> Both at once."} {
		if !strings.Contains(next.Messages[1].Content, told) {
			t.Errorf("the next turn is not told %q:\n%s", told, next.Messages[1].Content)
		}
	}
}

// Whatever characters a person, a model, a file or a command brings, the turn ends well, what is stored
// is text within its caps, and what a page reads later is what it was sent live.
func TestTurn_AnyOutputIsStoredAndReadAgain(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	wide, emoji := strings.Repeat("错", 300), strings.Repeat("🙂", 300)
	bash := func(command string) modeltest.Call {
		return modeltest.CallJSON("bash", map[string]any{"command": command})
	}
	write := func(path, content string) modeltest.Call {
		return modeltest.CallJSON("write", map[string]any{"path": path, "content": content})
	}
	a, _ := scripted(t,
		modeltest.Reply{Text: "Nothing \x00 ends \u2028 this.", Calls: []modeltest.Call{
			write("wide.txt", wide), write("emoji.txt", "x"+emoji), write("nul.txt", "a\x00b"),
			bash("cat wide.txt 1>&2 && false"), bash("cat emoji.txt"), bash(`printf 'a\0b\n'`), bash(`printf '\377\376 cut \342\202'`),
			bash(`printf 'Work\rWorking 100%%\n\033[?25l\033]0;title\007\033[31mplanted-\033[0msecret\n'`),
			modeltest.CallJSON("read", map[string]any{"path": "nul.txt"}), modeltest.CallJSON("read", map[string]any{"path": "no\u0000such"}),
			modeltest.CallJSON("grep", map[string]any{"pattern": "错"}),
		}},
		modeltest.Reply{Text: "It holds \u0000 and 错."}, modeltest.Reply{Text: "no outline"})
	serveOne(t, s, s, a, t.TempDir())

	tl, err := s.Timeline(t.Context(), session.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m := tl.Messages; len(m) != 2 || m[0].State != core.Completed || m[1].Text != "It holds \uFFFD and 错." {
		t.Errorf("messages %+v", m)
	}
	replayed, err := s.EventsSince(t.Context(), session.ID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tl.Events, replayed); diff != "" {
		t.Errorf("the stream tells other events than the page (-page +stream):\n%s", diff)
	}
	var snippets []string
	for _, e := range replayed {
		if !json.Valid(e.Payload) || !utf8.Valid(e.Payload) || strings.Contains(string(e.Payload), `\u0000`) || strings.Contains(string(e.Payload), "planted-secret") {
			t.Errorf("event %s: %s", e.Type, e.Payload)
		}
		var r core.AgentToolResult
		if e.Type != "agent_tool_result" || json.Unmarshal(e.Payload, &r) != nil {
			continue
		}
		if len(r.Snippet) > core.MaxSnippet {
			t.Errorf("a snippet of %d bytes", len(r.Snippet))
		}
		if r.Tool == "bash" {
			snippets = append(snippets, r.Snippet)
		}
	}
	want := []string{
		strings.Repeat("错", 165) + "…", "x" + strings.Repeat("🙂", 124) + "…", "a\uFFFDb", "\uFFFD cut \uFFFD", "Working 100%\n[redacted]",
	}
	if !slices.Equal(snippets, want) {
		t.Errorf("snippets %q, want %q", snippets, want)
	}
}
