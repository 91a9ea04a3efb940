package agent_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/core"
)

// outcomes are the tool results as "tool outcome code".
func outcomes(b *bench) []string {
	var list []string
	for _, e := range b.rec.events {
		if e, ok := e.(core.AgentToolResult); ok {
			list = append(list, strings.TrimSpace(e.Tool+" "+e.Outcome+" "+e.Code))
		}
	}
	return list
}

// A name that a model made up is answered, whatever is in it, and the loop goes on. The scripted
// server refuses the next request when the name in its history is none.
func TestRun_AnswersEveryNameThatIsNoTool(t *testing.T) {
	t.Parallel()
	names := []string{"search_files", " read ", "", strings.Repeat("a/b", 1000), "read\nfile", "日本"}
	var replies []modeltest.Reply
	for i, name := range names {
		replies = append(replies, modeltest.Reply{Calls: []modeltest.Call{{Name: name, Arguments: "{}"}}})
		if i%2 == 1 { // a good call in between, or the turn ends as one that makes no sense
			replies = append(replies, modeltest.Reply{Calls: []modeltest.Call{call("ls", nil)}})
		}
	}
	b := setup(t, modeltest.Sequence(append(replies, modeltest.Reply{Text: "done"})...), agent.Limits{}, map[string]string{"a.txt": "a\n"})
	got, err := b.run(t.Context(), "hello")
	if err != nil || got.Answer != "done" {
		t.Fatalf("%+v, %v", got, err)
	}
	last := b.server.Journal()[len(replies)]
	unknown := 0
	for _, m := range last.Messages {
		if m.Role == "tool" && strings.HasPrefix(m.Content, "Error (unknown_tool)") {
			unknown++
			if !strings.Contains(m.Content, "read") || !strings.Contains(m.Content, "bash") || len(m.Content) > 400 {
				t.Errorf("an answer that names no tool: %s", m.Content)
			}
		}
	}
	if unknown != len(names) {
		t.Errorf("%d of %d names were answered", unknown, len(names))
	}
}

// The id of a call is a model's text as any other: in an event it is short and plain, and goes back to the
// model as it came.
func TestRun_IDsOfCallsAreForeignText(t *testing.T) {
	t.Parallel()
	ids := []string{"call_1", canary, strings.Repeat("x", 1<<10), "../../etc/passwd", "a\x00b\u202e", "<b>"}
	var calls []modeltest.Call
	for i, id := range ids {
		calls = append(calls, modeltest.Call{ID: id, Name: "ls", Arguments: fmt.Sprintf(`{"limit":%d}`, i+1)})
	}
	b := setup(t, modeltest.Sequence(modeltest.Reply{Calls: calls}, modeltest.Reply{Text: "done"}), agent.Limits{}, nil)
	if _, err := b.run(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, m := range b.server.Journal()[1].Messages {
		if m.Role == "tool" {
			sent = append(sent, m.ToolCallID)
		}
	}
	if diff := cmp.Diff(ids, sent); diff != "" {
		t.Errorf("ids that went back (-want +got):\n%.500s", diff)
	}
	plain := regexp.MustCompile(`^[A-Za-z0-9_]{1,100}$`)
	seen := map[string]int{}
	for _, e := range b.rec.events {
		if e, ok := e.(core.AgentToolResult); ok {
			if seen[e.CallID]++; !plain.MatchString(e.CallID) || seen[e.CallID] > 1 {
				t.Errorf("an event has the id %.100q", e.CallID)
			}
		}
	}
	if len(seen) != len(ids) || seen["call_1"] != 1 {
		t.Errorf("%d ids in events, want %d", len(seen), len(ids))
	}
}

// What an output limit has cut is never carried out, whether or not it happens to be JSON.
func TestRun_NeverCarriesOutACutCall(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{`{"path":"a.md","content":"# T`, `{"path":"a.md","content":"# T"}`} {
		cut := modeltest.Reply{Finish: "length", Calls: []modeltest.Call{
			{Name: "write", Arguments: `{"path":"b.md","content":"whole"}`}, {Name: "write", Arguments: arguments},
		}}
		b := setup(t, modeltest.Sequence(cut, cut, modeltest.Reply{Text: "done"}), agent.Limits{}, nil)
		if _, err := b.run(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		if got := outcomes(b); got != nil {
			t.Errorf("%v ran", got)
		}
		journal := b.server.Journal()
		for _, m := range journal[len(journal)-1].Messages {
			if m.Role == "tool" && !strings.Contains(m.Content, "output limit") {
				t.Errorf("answered with %q", m.Content)
			}
		}

		b = setup(t, modeltest.Sequence(cut, cut, cut, cut), agent.Limits{}, nil)
		if _, err := b.run(t.Context(), "hello"); core.CodeOf(err) != core.CodeModelTruncated || len(b.server.Journal()) != 3 {
			t.Errorf("%v after %d requests", err, len(b.server.Journal()))
		}
	}
}

// Nothing is no answer, also after work.
func TestRun_EmptyAnswerIsNoEnd(t *testing.T) {
	t.Parallel()
	ls := modeltest.Reply{Calls: []modeltest.Call{call("ls", nil)}}
	for _, text := range []string{"", " \n\t"} {
		b := setup(t, modeltest.Sequence(ls, ls, modeltest.Reply{Text: text}), agent.Limits{}, nil)
		got, err := b.run(t.Context(), "hello")
		if core.CodeOf(err) != core.CodeModelEmptyResponse || len(b.server.Journal()) != 3 {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// An error in the middle of a stream fails the turn; what was said before stays, and nothing of the
// provider's own words.
func TestRun_KeepsWhatWasSaidBeforeAFailure(t *testing.T) {
	t.Parallel()
	b := setup(t, modeltest.Sequence(modeltest.Reply{Text: "one two three four", Fault: modeltest.ErrorFrame}), agent.Limits{}, nil)
	_, err := b.run(t.Context(), "hello")
	if core.CodeOf(err) != core.CodeModelStreamError || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
	if got := strings.TrimSpace(b.rec.partial); got != "one two" {
		t.Errorf("partial %q", got)
	}
}

// Reasoning goes back with its message in every later request of the turn, and the server accepts
// only what it has signed; it is no part of what people are shown.
func TestRun_ReasoningStaysWithItsMessage(t *testing.T) {
	t.Parallel()
	reply := func(thought string) modeltest.Reply {
		return modeltest.Reply{Reasoning: thought, Calls: []modeltest.Call{call("ls", nil)}}
	}
	b := setup(t, modeltest.Sequence(reply("first thought"), reply("second thought"), modeltest.Reply{Reasoning: "third", Text: "done"}), agent.Limits{}, map[string]string{"a": "a"})
	got, err := b.run(t.Context(), "hello")
	if err != nil || got.Answer != "done" || strings.Contains(b.rec.partial, "thought") {
		t.Fatalf("%+v, %v, %q", got, err, b.rec.partial)
	}
	var thoughts []string
	var messages []struct {
		Details []struct{ Text string } `json:"reasoning_details"`
	}
	if err := json.Unmarshal(b.server.Journal()[2].Body["messages"], &messages); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		for _, d := range m.Details {
			thoughts = append(thoughts, d.Text)
		}
	}
	if diff := cmp.Diff([]string{"first thought", "second thought"}, thoughts); diff != "" {
		t.Error(diff)
	}
}
