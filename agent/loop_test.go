package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
	"agent-sandboxing/prompts"
)

// modelFunc is a model that is a function of its request. It refuses what a strict provider would.
type modelFunc func(ctx context.Context, req Request) (Response, error)

func (modelFunc) Name() string { return "function" }
func (f modelFunc) Stream(ctx context.Context, req Request, _ Listener) (Response, error) {
	if err := checkMessages(req.Messages); err != nil {
		return Response{}, fmt.Errorf("an invalid request was sent: %w", err)
	}
	return f(ctx, req)
}

// plainTool answers with a text of the wanted length, and can fail the turn.
type plainTool struct {
	name string
	run  func(ctx context.Context, args json.RawMessage) (Result, error)
}

func (t plainTool) Spec() ToolSpec {
	return ToolSpec{Name: t.name, Description: "A tool.", Parameters: json.RawMessage(`{"type":"object"}`)}
}
func (t plainTool) Object(args json.RawMessage) string { return redact.Line(string(args), 60) }
func (t plainTool) Run(ctx context.Context, args json.RawMessage) (Result, error) {
	return t.run(ctx, args)
}

// toolset has a tool for every name that the profiles know, all of them run.
func toolset(run func(ctx context.Context, args json.RawMessage) (Result, error)) Toolset {
	return func(Env) []Tool {
		var list []Tool
		for _, name := range []string{"read", "write", "edit", "bash", "grep", "find", "ls", "subagent", "publish_pull_request"} {
			list = append(list, plainTool{name, run})
		}
		return list
	}
}

// nobody records nothing; before may end the turn at a call or at a result, spent at a request.
type nobody struct {
	before func(ctx context.Context) error
	spent  func(u core.Usage) error
}

func (n nobody) hook(ctx context.Context) error {
	if n.before == nil {
		return nil
	}
	return n.before(ctx)
}
func (n nobody) ToolCall(ctx context.Context, _ core.AgentToolCall) error { return n.hook(ctx) }
func (n nobody) ToolResult(ctx context.Context, _ core.AgentToolResult, _ []byte) error {
	return n.hook(ctx)
}

func (n nobody) PolicyRefused(ctx context.Context, _ core.PolicyRefused) error { return n.hook(ctx) }

func (n nobody) ModelRetry(ctx context.Context, _ core.ModelRequestRetry) error { return n.hook(ctx) }
func (nobody) Partial(string)                                                   {}

func (n nobody) Spent(_ context.Context, u core.Usage) error {
	if n.spent == nil {
		return nil
	}
	return n.spent(u)
}

func newAgent(tb testing.TB, model Model, tools Toolset, window int) *Agent {
	tb.Helper()
	a, err := New(Options{Model: model, Tools: tools, Redactor: redact.New("planted-secret"), Window: window})
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// start makes a run of the main profile, as Run does, for tests that look into it.
func start(a *Agent, rec core.TurnRecorder) *run {
	p := a.profiles[profileMain]
	r := a.begin(p, a.limits, rec)
	r.offer(a.tools(Env{}), p)
	r.open(p.system, compose(core.TurnRequest{Request: "x"}, 10_000))
	return r
}

func answer(text string) Response { return Response{Text: text, Finish: FinishStop} }

func calling(step int, names ...string) Response {
	resp := Response{Finish: FinishToolCalls}
	for i, name := range names {
		resp.Calls = append(resp.Calls, ToolCall{ID: fmt.Sprintf("c%d_%d", step, i), Name: name, Arguments: fmt.Sprintf(`{"path":"f%d_%d"}`, step, i)})
	}
	return resp
}

// Before every request and after every end the list is one that a provider takes: whatever the model
// sends, however long results are, and wherever a cancel, a lost lease or a lost sandbox comes.
func TestLoop_MessagesAreValidWhateverHappens(t *testing.T) {
	t.Parallel()
	elided := 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 11))
		ctx, cancel := context.WithCancelCause(t.Context())
		step := 0
		model := modelFunc(func(ctx context.Context, req Request) (Response, error) {
			step++
			for _, m := range req.Messages {
				if strings.HasPrefix(m.Text, "[elided: ") {
					elided++
					break
				}
			}
			if random.IntN(40) == 0 {
				cancel(core.ErrCancelledByUser)
				return Response{}, context.Cause(ctx)
			}
			resp := Response{Text: []string{"", "Looking.", " "}[random.IntN(3)], Finish: FinishToolCalls}
			if random.IntN(25) == 0 {
				resp.Finish = FinishLength
			}
			for i := range 1 + random.IntN(5) {
				resp.Calls = append(resp.Calls, ToolCall{
					ID:        []string{"", "same", fmt.Sprint("id", i)}[random.IntN(3)],
					Name:      []string{"read", "bash", "grep", "read", "nothing", ""}[random.IntN(6)],
					Arguments: []string{"", "{}", `{"path":`, fmt.Sprintf(`{"n":%d}`, step)}[random.IntN(4)],
				})
			}
			if random.IntN(2) == 0 {
				resp.Usage = core.Usage{PromptTokens: int64(random.IntN(12_000))}
			}
			return resp, nil
		})
		tools := toolset(func(ctx context.Context, _ json.RawMessage) (Result, error) {
			switch random.IntN(60) {
			case 0:
				cancel(core.ErrCancelledByUser)
				return Result{}, context.Cause(ctx)
			case 1:
				return Result{}, core.Fail(core.Unavailable, "sandbox_lost", "Lost.")
			case 2:
				return Failed("not_found", "there is no such file %d", random.IntN(1000)), nil
			}
			return OK(strings.Repeat("x", 1+random.IntN(9_000)), ""), nil
		})
		rec := nobody{before: func(context.Context) error {
			if random.IntN(150) == 0 {
				return core.ErrLeaseLost
			}
			return nil
		}}
		r := start(newAgent(t, model, tools, 16_000), rec)
		err := r.loop(ctx)
		if err == nil || strings.Contains(err.Error(), "invalid request") || core.CodeOf(err) == "context_invalid" {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := checkMessages(r.messages); err != nil {
			t.Fatalf("seed %d: after the end: %v", seed, err)
		}
		cancel(nil)
	}
	if elided == 0 {
		t.Error("nothing was ever elided: the test does not reach it")
	}
}

func TestLoop_ElidesTheOldestResultsInOneStep(t *testing.T) {
	t.Parallel()
	const window = 64_000 // usable: 41,600 tokens; each result has 2,000
	var seen [][]Message
	model := modelFunc(func(_ context.Context, req Request) (Response, error) {
		seen = append(seen, slices.Clone(req.Messages))
		if len(seen) > 25 {
			return answer("done"), nil
		}
		return calling(len(seen), "read"), nil
	})
	step := 0
	tools := toolset(func(context.Context, json.RawMessage) (Result, error) {
		step++
		return OK(fmt.Sprintf("result %d %s", step, strings.Repeat("y", 7_000)), "1–100"), nil
	})
	r := start(newAgent(t, model, tools, window), nobody{})
	if err := r.loop(t.Context()); err != nil {
		t.Fatal(err)
	}
	rewrites := 0 // requests that changed what a provider may have cached
	for i := 1; i < len(seen); i++ {
		changed := false
		for j, before := range seen[i-1] {
			after := seen[i][j]
			if after.Role != before.Role || after.CallID != before.CallID || len(after.Calls) != len(before.Calls) {
				t.Fatalf("request %d: message %d is another one", i, j)
			}
			changed = changed || after.Text != before.Text
		}
		if changed {
			rewrites++
		}
		var results []Message
		for _, m := range seen[i] {
			if m.Role == ToolRole {
				results = append(results, m)
			}
		}
		for _, m := range results[max(0, len(results)-keptResults):] {
			if strings.HasPrefix(m.Text, "[elided") {
				t.Fatalf("request %d: one of the last results is gone: %q", i, m.Text)
			}
		}
	}
	last := seen[len(seen)-1]
	if got, want := last[3].Text, `[elided: read {"path":"f1_0"} 1–100; call the tool again if you need it]`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if rewrites < 1 || rewrites > 3 {
		t.Errorf("%d requests of %d were rewritten; each costs the cache", rewrites, len(seen))
	}
}

// Wherever the shortening stops, calls that went out together keep all their answers, in order.
func TestElide_WhateverTheTargetGroupsStayWhole(t *testing.T) {
	t.Parallel()
	history := func() *run {
		r := start(newAgent(t, modelFunc(nil), toolset(nil), 0), nobody{})
		for step := range 8 {
			names := slices.Repeat([]string{"read"}, 1+step%4)
			resp := calling(step, names...)
			r.messages = append(r.messages, Message{Role: Assistant, Calls: resp.Calls})
			for _, c := range resp.Calls {
				r.did[c.ID] = "read " + c.ID
				r.answer(c, strings.Repeat("z", 1000*(1+step)))
			}
		}
		return r
	}
	whole := history()
	size := whole.meter.size(whole.messages)
	elided := map[int]bool{}
	for target := size; target >= 0; target -= 100 {
		r := history()
		r.elide(size, target)
		if err := checkMessages(r.messages); err != nil {
			t.Fatalf("down to %d tokens: %v", target, err)
		}
		n := 0
		for i, m := range r.messages {
			if m.CallID != whole.messages[i].CallID || len(m.Calls) != len(whole.messages[i].Calls) {
				t.Fatalf("down to %d tokens: message %d is another one", target, i)
			}
			if strings.HasPrefix(m.Text, "[elided: ") {
				n++
			}
		}
		elided[n] = true
	}
	if most := len(whole.did) - keptResults; len(elided) != most+1 {
		t.Errorf("%d different cuts were made of %d", len(elided), most+1)
	}
}

func TestLoop_OverflowEndsBeforeTheRequest(t *testing.T) {
	t.Parallel()
	requests := 0
	model := modelFunc(func(_ context.Context, req Request) (Response, error) {
		requests++
		return calling(requests, "read", "read", "read", "read", "read", "read"), nil
	})
	tools := toolset(func(context.Context, json.RawMessage) (Result, error) {
		return OK(strings.Repeat("z", 12_000), ""), nil
	})
	// Six results of about 3,400 tokens may never be elided, and they are more than the window has.
	r := start(newAgent(t, model, tools, 20_000), nobody{})
	if err := r.loop(t.Context()); core.CodeOf(err) != core.CodeContextOverflow || requests != 1 {
		t.Errorf("%v after %d requests", err, requests)
	}
	if err := checkMessages(r.messages); err != nil {
		t.Error(err)
	}
}

func TestMeter_TakesOverWhatTheProviderCounted(t *testing.T) {
	t.Parallel()
	messages := []Message{{Role: System, Text: strings.Repeat("s", 400)}, {Role: User, Text: strings.Repeat("u", 400)}}
	m := meter{window: DefaultWindow, fixed: 1000}
	if got := m.size(messages); got != 1000+2*(100+messageOverhead) {
		t.Errorf("estimate %d", got)
	}
	m.calibrate(core.Usage{PromptTokens: 5000}, len(messages))
	messages = append(messages, Message{Role: Assistant, Calls: []ToolCall{{ID: "a", Name: "read", Arguments: "{}"}}}, Message{Role: ToolRole, CallID: "a", Text: strings.Repeat("r", 3500)})
	if got, want := m.size(messages), 5000+2*messageOverhead+codeTokens(7)+messageOverhead+1000; got != want {
		t.Errorf("calibrated %d, want %d", got, want)
	}
	m.calibrate(core.Usage{}, len(messages)) // nobody counted
	if m.counted != 5000 || m.upTo != 2 {
		t.Errorf("an answer without usage changed the meter: %+v", m)
	}
	m.elided(1, 50)
	m.elided(3, 50) // is estimated anew anyway
	if m.counted != 4950 {
		t.Errorf("%d tokens after eliding", m.counted)
	}
}

func TestSubagent_HasItsOwnContextAndIsPaidForByItsParent(t *testing.T) {
	t.Parallel()
	cost := 0.5
	var child []Request
	model := modelFunc(func(_ context.Context, req Request) (Response, error) {
		resp := answer("parent is done")
		names := make([]string, len(req.Tools))
		for i, tool := range req.Tools {
			names[i] = tool.Name
		}
		switch {
		case slices.Equal(names, subagentTools()):
			child = append(child, req)
			if resp = calling(len(child), "grep"); len(child) == 3 {
				resp = answer("It is in a.go:1, planted-secret.")
			}
		case len(req.Messages) == 2:
			resp = calling(1, "subagent")
		}
		resp.Usage = core.Usage{PromptTokens: 100, CompletionTokens: 10, CostUSD: &cost}
		return resp, nil
	})
	calls := 0
	tools := toolset(func(context.Context, json.RawMessage) (Result, error) { calls++; return OK("a.go:1: x", ""), nil })
	a := newAgent(t, model, func(env Env) []Tool {
		list := tools(env)
		for i, tool := range list {
			if tool.Spec().Name == "subagent" {
				list[i] = plainTool{"subagent", func(ctx context.Context, _ json.RawMessage) (Result, error) {
					report, err := env.Investigate(ctx, "Where is x?")
					return OK(report.Text, fmt.Sprint(report.Steps)), err
				}}
			}
		}
		return list
	}, 0)
	recorded := 0
	result, err := a.Run(t.Context(), core.TurnRequest{Profile: "main", Request: "find x", Summary: "SECRETS OF THE SESSION"}, nil, nil, nobody{before: func(context.Context) error { recorded++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if len(child) != 3 || calls != 2 || recorded != 2 {
		t.Errorf("%d requests and %d calls of the subagent, %d records of both", len(child), calls, recorded)
	}
	if first := child[0].Messages; len(first) != 2 || !strings.Contains(first[1].Text, "Where is x?") || strings.Contains(first[1].Text, "SECRETS") {
		t.Errorf("the subagent was told %+v", first)
	}
	if result.Steps != 2 || result.Usage.PromptTokens != 500 || *result.Usage.CostUSD != 2.5 {
		t.Errorf("result %+v", result)
	}
	if result.Context != (core.ContextUse{Tokens: 100, Window: DefaultWindow}) {
		t.Errorf("context %+v", result.Context)
	}
}

func TestSubagent_EndsAtItsLimitAndWithItsParent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	steps := 0
	model := modelFunc(func(ctx context.Context, _ Request) (Response, error) {
		if steps++; steps > 30 {
			cancel(core.ErrCancelledByUser)
			return Response{}, context.Cause(ctx)
		}
		resp := calling(steps, "ls")
		resp.Text = fmt.Sprintf("Step %d.", steps)
		return resp, nil
	})
	a := newAgent(t, model, toolset(func(context.Context, json.RawMessage) (Result, error) {
		return OK(fmt.Sprint("entry ", steps), ""), nil
	}), 0)
	parent := a.begin(a.profiles[profileMain], a.limits, nobody{})
	report, err := a.investigate(ctx, "x", Env{}, parent)
	if want := (Report{Text: "Step 20.", Steps: 20, Failure: "reached 20 steps."}); err != nil || report != want {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := a.investigate(ctx, "x", Env{}, parent); !errors.Is(err, core.ErrCancelledByUser) {
		t.Errorf("a cancelled parent gives %v", err)
	}
}

// The caps of money hold for what a subagent spends, and what it spends is recorded as it is spent.
func TestSubagent_StopsAtItsParentsMoney(t *testing.T) {
	t.Parallel()
	cost := 0.4
	requests := 0
	model := modelFunc(func(context.Context, Request) (Response, error) {
		requests++
		resp := calling(requests, "ls")
		resp.Usage = core.Usage{PromptTokens: 10, CostUSD: &cost}
		return resp, nil
	})
	a, err := New(Options{Model: model, Tools: toolset(func(context.Context, json.RawMessage) (Result, error) {
		return OK(fmt.Sprint("entry ", requests), ""), nil
	}), Redactor: redact.New(), Limits: Limits{CostUSD: 1}})
	if err != nil {
		t.Fatal(err)
	}
	recorded := 0.0
	rec := nobody{spent: func(u core.Usage) error {
		if u.CostUSD != nil {
			recorded += *u.CostUSD
		}
		return nil
	}}
	parent := a.begin(a.profiles[profileMain], a.limits, rec)
	report, err := a.investigate(t.Context(), "x", Env{}, parent)
	if err != nil || requests != 3 || !strings.Contains(report.Failure, "it cost $1.20 of the $1.00") {
		t.Errorf("%d requests, %+v, %v", requests, report, err)
	}
	if core.CodeOf(parent.mayAsk()) != core.CodeLimitReached || recorded < 1.19 || recorded > 1.21 {
		t.Errorf("the parent may go on: %v; $%.2f are recorded", parent.mayAsk(), recorded)
	}
}

func TestProfiles_AreCheckedAtStart(t *testing.T) {
	t.Parallel()
	known := map[string]ToolSpec{}
	for _, tool := range toolset(nil)(Env{}) {
		known[tool.Spec().Name] = tool.Spec()
	}
	known["mute"] = ToolSpec{Name: "mute"}
	good := func() map[string]prompts.Profile {
		return map[string]prompts.Profile{
			"main":       {Prompt: "session-agent/v3", Tools: []string{"read", "subagent"}},
			"subagent":   {Prompt: "subagent/v2", Tools: []string{"ls", "read"}},
			"compaction": {Prompt: "compaction/v1"},
		}
	}
	if _, err := profiles(good(), known); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(map[string]prompts.Profile){
		"no prompt": func(p map[string]prompts.Profile) { p["main"] = prompts.Profile{Prompt: "session-agent/v99"} },
		"unknown tool": func(p map[string]prompts.Profile) {
			p["main"] = prompts.Profile{Prompt: "session-agent/v3", Tools: []string{"fly"}}
		},
		"twice": func(p map[string]prompts.Profile) {
			p["main"] = prompts.Profile{Prompt: "session-agent/v3", Tools: []string{"ls", "ls"}}
		},
		"undescribed": func(p map[string]prompts.Profile) {
			p["main"] = prompts.Profile{Prompt: "session-agent/v3", Tools: []string{"mute"}}
		},
		"no main":       func(p map[string]prompts.Profile) { delete(p, "main") },
		"no subagent":   func(p map[string]prompts.Profile) { delete(p, "subagent") },
		"no compaction": func(p map[string]prompts.Profile) { delete(p, "compaction") },
		"a subagent that writes": func(p map[string]prompts.Profile) {
			p["subagent"] = prompts.Profile{Prompt: "subagent/v2", Tools: []string{"write"}}
		},
		"a subagent with another": func(p map[string]prompts.Profile) {
			p["subagent"] = prompts.Profile{Prompt: "subagent/v2", Tools: []string{"subagent"}}
		},
		"a compaction with a tool": func(p map[string]prompts.Profile) {
			p["compaction"] = prompts.Profile{Prompt: "compaction/v1", Tools: []string{"ls"}}
		},
	}
	for name, spoil := range tests {
		p := good()
		spoil(p)
		if _, err := profiles(p, known); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := New(Options{Model: modelFunc(nil), Tools: toolset(nil), Redactor: redact.New(), Window: 1000}); err == nil {
		t.Error("a window of 1,000 tokens is taken")
	}
}
