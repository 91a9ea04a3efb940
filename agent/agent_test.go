package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_CallsToolsInOrderAndAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t, modeltest.Sequence(
		modeltest.Reply{Text: "Looking.", Calls: []modeltest.Call{
			call("read", map[string]any{"path": "a.txt"}),
			call("edit", map[string]any{"path": "a.txt", "edits": []any{map[string]any{"oldText": "one", "newText": "two " + canary}}}),
			call("bash", map[string]any{"command": "cat a.txt && cat missing"}),
			call("bash", map[string]any{"command": "git commit -m x"}),
			call("grep", map[string]any{"pattern": "two " + canary}),
			call("publish_pull_request", map[string]any{"title": "Say two", "body": "Because."}),
		}},
		modeltest.Reply{Text: "Changed a.txt. The value is " + canary + "."},
	), agent.Limits{}, map[string]string{"a.txt": "one\n", "b.txt": "b\n"})

	got, err := b.run(t.Context(), "Say two")
	if err != nil {
		t.Fatal(err)
	}
	if want := "Changed a.txt. The value is [redacted]."; got.Answer != want || b.rec.partial != "Looking.\n\n"+want {
		t.Errorf("answer %q, partial %q", got.Answer, b.rec.partial)
	}
	if got.Steps != 2 || got.Usage.PromptTokens == 0 || len(got.PromptHash) != 64 || got.Model != "scripted" {
		t.Errorf("result %+v", got)
	}
	want := []string{"read ok 1–1", "edit ok +1 −1", "bash ok exit 1", "bash refused git_not_allowed", "grep ok 1 match", "publish_pull_request ok #12 opened"}
	if diff := cmp.Diff(want, b.rec.results()); diff != "" {
		t.Error(diff)
	}
	if text := b.file(t, "a.txt"); text != "two "+canary+"\n" {
		t.Errorf("a.txt is %q", text)
	}
	var calls, results, refusals int
	for i, e := range b.rec.events {
		switch e := e.(type) {
		case core.AgentToolCall:
			calls++
			if next, ok := b.rec.events[i+1].(core.AgentToolResult); ok && next.CallID != e.CallID {
				t.Errorf("call %s is followed by the result of %s", e.CallID, next.CallID)
			}
		case core.AgentToolResult:
			results++
		case core.PolicyRefused:
			refusals++
			if e.Rule != "git_not_allowed" || e.Snippet != "git commit -m x" {
				t.Errorf("refusal %+v", e)
			}
		}
	}
	if calls != 6 || results != 6 || refusals != 1 {
		t.Errorf("%d calls, %d results, %d refusals", calls, results, refusals)
	}
}

func TestRun_FailuresEndWithTheirCode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault modeltest.Fault
		code  string
	}{
		{modeltest.Unauthorized, core.CodeModelUnauthorized},
		{modeltest.LongLimit, core.CodeModelRateLimited},
		{modeltest.ServerError, core.CodeModelUnavailable},
		{modeltest.Broken, core.CodeModelStreamError},
		{modeltest.Truncated, core.CodeModelStreamError},
		{modeltest.ErrorFrame, core.CodeModelStreamError},
		{modeltest.HTML, core.CodeModelStreamError},
		{modeltest.ContextLength, core.CodeContextOverflow},
	}
	for _, test := range tests {
		t.Run(string(test.fault), func(t *testing.T) {
			t.Parallel()
			b := setup(t, modeltest.Sequence(
				modeltest.Reply{Calls: []modeltest.Call{call("ls", nil)}},
				modeltest.Reply{Text: "half an answer is", Fault: test.fault, Calls: []modeltest.Call{call("write", map[string]any{"path": "x", "content": "x"})}},
			), agent.Limits{}, map[string]string{"a.txt": "a\n"})
			got, err := b.run(t.Context(), "hello")
			e, ok := errors.AsType[*core.Error](err)
			if !ok || e.Code != test.code || !strings.HasSuffix(e.Message, ".") {
				t.Fatalf("got %v, want code %s", err, test.code)
			}
			if strings.Contains(e.Error(), "canary-provider-text") {
				t.Errorf("provider text in %v", e)
			}
			if got.Steps != 2 {
				t.Errorf("%d steps", got.Steps)
			}
			// A broken answer executes nothing.
			if diff := cmp.Diff([]string{"ls ok 1 entry"}, b.rec.results()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRun_EndsByFinishReason(t *testing.T) {
	t.Parallel()
	ls := []modeltest.Call{call("ls", nil)}
	bad := []modeltest.Call{{Name: "ls", Arguments: `{"path": "a`}}
	cut := modeltest.Reply{Calls: ls, Finish: "length"}
	tests := map[string]struct {
		replies []modeltest.Reply
		code    string
	}{
		"empty":            {[]modeltest.Reply{{}}, core.CodeModelEmptyResponse},
		"filtered":         {[]modeltest.Reply{{Text: "x", Finish: "content_filter"}}, core.CodeModelRefused},
		"too long":         {[]modeltest.Reply{{Text: "x", Finish: "length"}}, core.CodeModelTruncated},
		"calls cut thrice": {[]modeltest.Reply{cut, cut, cut}, core.CodeModelTruncated},
		"calls cut twice":  {[]modeltest.Reply{cut, cut, {Text: "ok"}}, ""},
		"malformed thrice": {[]modeltest.Reply{{Calls: bad}, {Calls: bad}, {Calls: bad}}, core.CodeModelMalformed},
		"malformed twice":  {[]modeltest.Reply{{Calls: bad}, {Calls: bad}, {Text: "ok"}}, ""},
		"unknown tool":     {[]modeltest.Reply{{Calls: []modeltest.Call{call("apply_patch", nil)}}, {Text: "ok"}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, modeltest.Sequence(test.replies...), agent.Limits{}, map[string]string{"a.txt": "a\n"})
			_, err := b.run(t.Context(), "hello")
			if test.code == "" && err != nil || test.code != "" && core.CodeOf(err) != test.code {
				t.Errorf("got %v, want %q", err, test.code)
			}
		})
	}
}

func TestRun_MalformedCallsAreAnswered(t *testing.T) {
	t.Parallel()
	b := setup(t, modeltest.Sequence(
		modeltest.Reply{Calls: []modeltest.Call{
			{ID: "same", Name: "read", Arguments: `{"path": "a`},
			{ID: "same", Name: "apply_patch", Arguments: `{}`},
			{ID: "same", Name: "ls", Arguments: ``},
			{ID: "same", Name: "read", Arguments: `"{\"path\":\"a.txt\"}"`},
			{ID: "same", Name: "read", Arguments: `[1]`},
			{ID: "same", Name: "read", Arguments: `{}`},
		}},
		modeltest.Reply{Text: "ok"},
	), agent.Limits{}, map[string]string{"a.txt": "text\n"})
	if _, err := b.run(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Error (invalid_arguments): the arguments are not valid JSON at byte 11, after \"{\\\"path\\\": \\\"a\". Send the call again with valid JSON.",
		"Error (unknown_tool): there is no tool \"apply_patch\". Available: bash, edit, find, grep, ls, publish_pull_request, read, subagent, write.",
		"a.txt",
		"text\n",
		"Error (invalid_arguments): the arguments are not a JSON object. Send the call again with valid JSON.",
		"Error (invalid_arguments): path is missing. Correct the call and send it again.",
	}
	if diff := cmp.Diff(want, b.toolAnswers()); diff != "" {
		t.Error(diff)
	}
}

func TestRun_Limits(t *testing.T) {
	t.Parallel()
	ls := func(n int) modeltest.Reply {
		return modeltest.Reply{Calls: []modeltest.Call{call("ls", map[string]any{"limit": n})}}
	}
	many := make([]modeltest.Call, 6)
	for i := range many {
		many[i] = call("ls", map[string]any{"limit": i + 1})
	}
	t.Run("steps", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(ls(1), ls(2), ls(3), ls(4), ls(5), ls(6)), agent.Limits{Steps: 5}, nil)
		got, err := b.run(t.Context(), "x")
		if core.CodeOf(err) != core.CodeLimitReached || got.Steps != 5 {
			t.Errorf("%v after %d steps", err, got.Steps)
		}
		if answers := b.toolAnswers(); !strings.Contains(answers[3], ">1 step left: finish and report.</notice id=") {
			t.Errorf("no warning: %q", answers)
		}
	})
	t.Run("same call", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(ls(1), ls(1), ls(1), ls(1), ls(1)), agent.Limits{}, nil)
		got, err := b.run(t.Context(), "x")
		if core.CodeOf(err) != core.CodeLimitReached || got.Steps != 4 {
			t.Errorf("%v after %d steps", err, got.Steps)
		}
	})
	t.Run("same error", func(t *testing.T) {
		t.Parallel()
		missing := func(n int) modeltest.Reply {
			return modeltest.Reply{Calls: []modeltest.Call{call("read", map[string]any{"path": "missing", "offset": n}), call("ls", map[string]any{"limit": n})}}
		}
		b := setup(t, modeltest.Sequence(missing(1), missing(2), missing(3), missing(4), missing(5)), agent.Limits{}, nil)
		got, err := b.run(t.Context(), "x")
		if core.CodeOf(err) != core.CodeLimitReached || got.Steps != 4 {
			t.Errorf("%v after %d steps", err, got.Steps)
		}
		if answers := b.toolAnswers(); !strings.Contains(answers[4], "This error has come three times") {
			t.Errorf("no nudge: %q", answers)
		}
	})
	t.Run("calls in a response", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(modeltest.Reply{Calls: many}, modeltest.Reply{Text: "ok"}), agent.Limits{CallsPerResponse: 4}, nil)
		if _, err := b.run(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		answers := b.toolAnswers()
		if len(answers) != 6 || len(b.rec.results()) != 4 || !strings.HasPrefix(answers[5], "Not executed: at most 4 calls") {
			t.Errorf("%q", answers)
		}
	})
	t.Run("wall clock", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Sequence(modeltest.Reply{Text: "a b c", Delay: time.Hour}), agent.Limits{Wall: 100 * time.Millisecond}, nil)
		if _, err := b.run(t.Context(), "x"); core.CodeOf(err) != core.CodeLimitReached {
			t.Errorf("%v", err)
		}
	})
}

func TestRun_CancelDuringACommand(t *testing.T) {
	t.Parallel()
	b := setup(t, modeltest.Sequence(modeltest.Reply{Text: "I will wait.", Calls: []modeltest.Call{
		call("bash", map[string]any{"command": "sleep 30 && touch late.txt"}),
		call("write", map[string]any{"path": "never.txt", "content": "x"}),
	}}), agent.Limits{}, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	b.rec.onCall = func(e core.AgentToolCall) {
		if e.Tool == "bash" {
			time.AfterFunc(20*time.Millisecond, func() { cancel(core.ErrCancelledByUser) })
		}
	}
	_, err := b.run(ctx, "x")
	if !errors.Is(err, core.ErrCancelledByUser) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff([]string{"bash cancelled", "write cancelled"}, b.rec.results()); diff != "" {
		t.Error(diff)
	}
	if b.rec.partial != "I will wait." {
		t.Errorf("partial %q", b.rec.partial)
	}
	for name, what := range map[string]string{"late.txt": "the command went on", "never.txt": "a call was executed"} {
		if _, err := os.Stat(filepath.Join(b.dir, "workspace", "repo", name)); err == nil {
			t.Errorf("after the cancel %s", what)
		}
	}
}

func TestRun_CancelDuringTheAnswerKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	b := setup(t, modeltest.Sequence(modeltest.Reply{Text: strings.Repeat("word ", 50), Delay: 5 * time.Millisecond}), agent.Limits{}, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	b.rec.onText = func(string) { cancel(core.ErrCancelledByUser) }
	_, err := b.run(ctx, "x")
	if !errors.Is(err, core.ErrCancelledByUser) {
		t.Fatalf("got %v", err)
	}
	if !strings.HasPrefix(b.rec.partial, "word") {
		t.Errorf("partial %q", b.rec.partial)
	}
}

func TestRun_RecorderErrorEndsTheTurn(t *testing.T) {
	t.Parallel()
	b := setup(t, modeltest.Sequence(modeltest.Reply{Calls: []modeltest.Call{call("write", map[string]any{"path": "x", "content": "x"})}}), agent.Limits{}, nil)
	rec := &failingRecorder{recorder: b.rec}
	_, err := b.agent.Run(t.Context(), core.TurnRequest{Profile: "main", Policy: core.PolicySeed, Request: "x"}, b.ws, b.publisher, rec)
	if !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "workspace", "repo", "x")); err == nil {
		t.Error("the call was executed although it could not be recorded")
	}
}

type failingRecorder struct{ *recorder }

func (failingRecorder) ToolCall(context.Context, core.AgentToolCall) error { return core.ErrLeaseLost }

func TestRun_LongOutputIsKeptWhole(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&long, "line %d %s\n", i, strings.Repeat("x", 10))
	}
	b := setup(t, modeltest.Sequence(
		modeltest.Reply{Calls: []modeltest.Call{call("bash", map[string]any{"command": "cat long.txt"})}},
		modeltest.Reply{Text: "ok"},
	), agent.Limits{}, map[string]string{"long.txt": long.String()})
	if _, err := b.run(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	answer := b.toolAnswers()[0]
	if len(answer) > 52<<10 || !strings.Contains(answer, "Full output (") || !strings.Contains(answer, ": /tmp/agent-out/") || !strings.HasSuffix(answer, "line 8999 xxxxxxxxxx") {
		t.Errorf("answer of %d bytes, ends %q", len(answer), answer[len(answer)-100:])
	}
	if got := string(b.rec.full[0]); got != long.String() {
		t.Errorf("kept %d bytes of %d", len(got), long.Len())
	}
}

func TestRun_UnknownProfile(t *testing.T) {
	t.Parallel()
	b := setup(t, modeltest.Sequence(), agent.Limits{}, nil)
	_, err := b.agent.Run(t.Context(), core.TurnRequest{Profile: "nobody"}, b.ws, b.publisher, b.rec)
	if core.CodeOf(err) != "unknown_profile" {
		t.Errorf("got %v", err)
	}
}

// Whatever a model sends, the history stays one that a strict provider takes: the scripted server
// refuses any other.
func TestRun_HistoryIsAlwaysValid(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := setup(t, randomScript(seed), agent.Limits{Steps: 12, CallsPerResponse: 3}, map[string]string{"a.txt": "a\n"})
			_, err := b.run(t.Context(), "x")
			switch code := core.CodeOf(err); {
			case err == nil, code == core.CodeLimitReached, code == core.CodeModelMalformed, code == core.CodeModelTruncated, code == core.CodeModelEmptyResponse:
			default:
				t.Errorf("got %v", err)
			}
			open := map[string]bool{}
			for _, e := range b.rec.events {
				switch e := e.(type) {
				case core.AgentToolCall:
					if open[e.CallID] {
						t.Errorf("call id %s is used twice", e.CallID)
					}
					open[e.CallID] = true
				case core.AgentToolResult:
					if !open[e.CallID] {
						t.Errorf("result %s has no call", e.CallID)
					}
					open[e.CallID] = false
				}
			}
			for id, unanswered := range open {
				if unanswered {
					t.Errorf("call %s has no result", id)
				}
			}
		})
	}
}

// randomScript answers with calls of every quality.
func randomScript(seed uint64) modeltest.Script {
	random := rand.New(rand.NewPCG(seed, 7))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var replies []modeltest.Reply
	for range 12 {
		reply := modeltest.Reply{Text: pick("", "Looking.", "\n"), Finish: pick("", "", "", "stop", "length", "odd_reason")}
		for range random.IntN(6) {
			reply.Calls = append(reply.Calls, modeltest.Call{
				ID:        pick("", "same", "other"),
				Name:      pick("ls", "read", "bash", "nothing", ""),
				Arguments: pick("", "null", "{}", `{"path":"a.txt"}`, `{"command":"ls"}`, `{"command":"rm -rf *"}`, `{"path":`, `[]`, `"{}"`, "\xff"),
			})
		}
		replies = append(replies, reply)
	}
	return modeltest.Sequence(replies...)
}
