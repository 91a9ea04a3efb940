package probe_test

import (
	"context"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/agent/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// diligent does what the probe asks, and then spoils it.
type diligent struct {
	spoil func(ask string, last modeltest.Message, r *modeltest.Reply)
}

func (diligent) Name() string { return "scripted" }

var (
	file     = regexp.MustCompile(`file (\S+\.txt)\b`)
	count    = regexp.MustCompile(`^Count from 1 to (\d+)`)
	lines    = regexp.MustCompile(`content of (\d+) lines`)
	codeword = regexp.MustCompile(`The codeword is (\S+)\.\n`)
)

func (d diligent) Reply(req modeltest.Request) modeltest.Reply {
	ask, last := req.Messages[1].Content, req.Messages[len(req.Messages)-1]
	reply := d.obey(ask, last)
	if d.spoil != nil {
		d.spoil(ask, last, &reply)
	}
	return reply
}

func (diligent) obey(ask string, last modeltest.Message) modeltest.Reply {
	read := func(path string) modeltest.Call { return modeltest.CallJSON("read", map[string]any{"path": path}) }
	write := func(path, content string) modeltest.Reply {
		return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallJSON("write", map[string]any{"path": path, "content": content})}}
	}
	numbered := func(before, between, after string, n int) string {
		var b strings.Builder
		for i := 1; i <= n; i++ {
			b.WriteString(before + strconv.Itoa(i) + between)
			if between != "\n" {
				b.WriteString(strconv.Itoa(i) + after)
			}
		}
		return b.String()
	}
	switch {
	case last.Role == "tool" && !strings.HasPrefix(last.Content, "Error"):
		return modeltest.Reply{Text: last.Content}
	case strings.Contains(ask, "a.txt and for b.txt"):
		return modeltest.Reply{Calls: []modeltest.Call{read("a.txt"), read("b.txt")}}
	case strings.Contains(ask, "=====\n"):
		return write("hard.txt", strings.Split(ask, "=====")[1][1:])
	case lines.MatchString(ask):
		return write("long.js", numbered("const value", " = ", ";\n", number(lines.FindStringSubmatch(ask)[1])))
	case count.MatchString(ask):
		return modeltest.Reply{Text: numbered("", "\n", "", number(count.FindStringSubmatch(ask)[1]))}
	case codeword.MatchString(ask):
		return modeltest.Reply{Text: codeword.FindStringSubmatch(ask)[1]}
	case file.MatchString(ask):
		return modeltest.Reply{Reasoning: "A file is asked for.", Calls: []modeltest.Call{read(file.FindStringSubmatch(ask)[1])}}
	}
	return modeltest.Reply{Text: "ready"}
}

// number is one that a pattern has found.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func endpoint(t *testing.T, script modeltest.Script, o openai.Options) (*modeltest.Server, *openai.Client) {
	t.Helper()
	model := modeltest.NewServer(script, 0)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	o.BaseURL, o.Key, o.Model, o.RetryWait = server.URL+"/v1", "k", "scripted", time.Millisecond
	c := openai.New(o)
	t.Cleanup(c.Close)
	return model, c
}

const tokens = 5000 // of the long prompt: enough to be told apart from the others

func TestRun_FindsNothingWrongWithAGoodEndpoint(t *testing.T) {
	t.Parallel()
	for _, o := range []openai.Options{{}, {Dialect: openai.DialectOpenRouter}, {Schema: openai.SchemaMinimal}} {
		server, model := endpoint(t, diligent{}, o)
		var heard []probe.Finding
		report := probe.Run(t.Context(), model, probe.Options{ContextTokens: tokens, Promptly: time.Hour, Heard: func(f probe.Finding) { heard = append(heard, f) }})
		for _, f := range report.Findings {
			if f.State != probe.Fine {
				t.Errorf("%+v", f)
			}
		}
		if report.Requests != 10 || len(server.Journal()) != 10 || report.Worst() != probe.Fine || report.Verdict() != "Everything that the agent needs works." {
			t.Errorf("%d requests, %s: %s", report.Requests, report.Worst(), report.Verdict())
		}
		if diff := cmp.Diff(report.Findings, heard); diff != "" || len(heard) != 13 {
			t.Errorf("%d findings: %s", len(heard), diff)
		}
	}
}

// What is odd and still right is no defect.
func TestRun_BearsWhatTheClientBears(t *testing.T) {
	t.Parallel()
	for _, quirk := range []modeltest.Quirk{modeltest.NoIndex, modeltest.ObjectArguments, modeltest.NoDone} {
		_, model := endpoint(t, diligent{spoil: func(_ string, _ modeltest.Message, r *modeltest.Reply) { r.Quirk = quirk }}, openai.Options{})
		if report := probe.Run(t.Context(), model, probe.Options{ContextTokens: tokens, Promptly: time.Hour}); report.Worst() != probe.Fine {
			t.Errorf("%s: %s", quirk, report.Verdict())
		}
	}
}

func TestRun_SaysEachDefectInWords(t *testing.T) {
	t.Parallel()
	type (
		reply = *modeltest.Reply
		spoil = func(ask string, last modeltest.Message, r reply)
	)
	when := func(words string, do func(reply)) spoil {
		return func(ask string, _ modeltest.Message, r reply) {
			if strings.Contains(ask, words) {
				do(r)
			}
		}
	}
	always := func(do func(reply)) spoil { return when("", do) }
	tests := map[string]struct {
		spoil  spoil
		name   string
		state  probe.State
		words  string
		others int // further findings that are not fine
	}{
		"no key":               {always(func(r reply) { r.Fault = modeltest.Unauthorized }), "answers", probe.Broken, "key", 0},
		"says nothing":         {when("ready", func(r reply) { r.Text = "" }), "answers", probe.Broken, "empty", 0},
		"page of a proxy":      {always(func(r reply) { r.Fault = modeltest.HTML }), "answers", probe.Broken, "stream", 0},
		"does not stream":      {always(func(r reply) { r.Quirk = modeltest.Whole }), "streams", probe.Degraded, "one piece", 1},
		"breaks off":           {when("to 60", func(r reply) { r.Fault = modeltest.Truncated }), "streams", probe.Broken, "broke off", 0},
		"fails in the middle":  {when("to 60", func(r reply) { r.Fault = modeltest.ErrorFrame }), "streams", probe.Broken, "failure", 0},
		"writes about a call":  {when("word.txt. Then", func(r reply) { *r = modeltest.Reply{Text: "<tool_call>read</tool_call>"} }), "tool call", probe.Broken, "neither read nor change", 1},
		"calls what it likes":  {when("word.txt. Then", func(r reply) { r.Calls = []modeltest.Call{{Name: "write", Arguments: "{}"}} }), "tool call", probe.Degraded, "another tool", 0},
		"refuses schemas":      {when("word.txt. Then", func(r reply) { r.Fault = modeltest.Rejected }), "tool call", probe.Broken, "MODEL_SCHEMA=minimal", 1},
		"half a call":          {when("word.txt. Then", func(r reply) { cut(r) }), "tool call", probe.Broken, "no valid JSON", 1},
		"refuses a result":     {onResult(func(r reply) { r.Fault = modeltest.Rejected }), "tool result", probe.Broken, "refuses a conversation", 0},
		"forgets the result":   {onResult(func(r reply) { r.Text = "done" }), "tool result", probe.Degraded, "does not use", 0},
		"one call a response":  {when("b.txt", func(r reply) { r.Calls = r.Calls[:1] }), "parallel calls", probe.Degraded, "more steps", 0},
		"calls glued together": {when("b.txt", func(r reply) { r.Calls[0].Arguments += r.Calls[1].Arguments; r.Calls = r.Calls[:1] }), "parallel calls", probe.Broken, "mixed up", 0},
		"other calls":          {when("b.txt", func(r reply) { r.Calls[1] = r.Calls[0] }), "parallel calls", probe.Degraded, "2 others", 0},
		"bad escapes":          {when("=====", func(r reply) { r.Calls[0].Arguments = strings.ReplaceAll(r.Calls[0].Arguments, `\"`, `"`) }), "arguments", probe.Broken, "no valid JSON", 0},
		"lost backslashes":     {when("=====", func(r reply) { r.Calls[0].Arguments = strings.ReplaceAll(r.Calls[0].Arguments, `C:\\n`, `C:n`) }), "arguments", probe.Degraded, "character 17", 0},
		"writes no file":       {when("=====", func(r reply) { *r = modeltest.Reply{Text: "here it is"} }), "arguments", probe.Broken, "with text", 0},
		"gives up":             {onError(func(r reply) { *r = modeltest.Reply{Text: "sorry"} }), "recovery", probe.Degraded, "does not send it again", 0},
		"the same again":       {onError(func(r reply) { cut(r) }), "recovery", probe.Degraded, "does not send it again", 0},
		"output limit":         {when("long.js", func(r reply) { cut(r); r.Finish = "length" }), "long output", probe.Degraded, "MODEL_MAX_OUTPUT", 0},
		"hidden output limit":  {when("long.js", func(r reply) { cut(r) }), "long output", probe.Broken, "nothing says so", 0},
		"and so on": {when("long.js", func(r reply) {
			r.Calls[0].Arguments = strings.Replace(r.Calls[0].Arguments, "const value300 = 300;", "// and so on", 1)
		}), "long output", probe.Degraded, "writes 299", 0},
		"small context":    {when("codeword", func(r reply) { r.Fault = modeltest.ContextLength }), "long context", probe.Degraded, "context_overflow", 0},
		"forgets":          {when("codeword", func(r reply) { r.Text = "I do not know" }), "long context", probe.Degraded, "does not find", 0},
		"drops text":       {when("codeword", func(r reply) { r.PromptTokens = 100 }), "long context", probe.Degraded, "drops text", 0},
		"counts nothing":   {always(func(r reply) { r.Quirk = modeltest.NoUsage }), "usage", probe.Degraded, "No answer counts", 1},
		"counts sometimes": {when("codeword", func(r reply) { r.Quirk = modeltest.NoUsage }), "usage", probe.Degraded, "1 of 9", 1},
		"says no price":    {always(func(r reply) { r.Quirk = modeltest.NoCost }), "cost", probe.Degraded, "9 of 9", 0},
		"busy":             {once(func(r reply) { r.Fault = modeltest.Overloaded }), "stability", probe.Degraded, "1 times", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, model := endpoint(t, diligent{spoil: test.spoil}, openai.Options{})
			report := probe.Run(t.Context(), model, probe.Options{ContextTokens: tokens, Promptly: time.Hour})
			others := 0
			for _, f := range report.Findings {
				switch {
				case f.Name == test.name:
					if f.State != test.state || !strings.Contains(f.Words, test.words) || strings.Contains(f.Words, "canary") {
						t.Errorf("%+v", f)
					}
				case f.State != probe.Fine:
					others++
				}
			}
			if others != test.others {
				t.Errorf("%d other defects: %+v", others, report.Findings)
			}
			if report.Worst() != test.state || !strings.Contains(report.Verdict(), test.name) {
				t.Errorf("%s: %s", report.Worst(), report.Verdict())
			}
		})
	}
}

// cut takes away the end of the call.
func cut(r *modeltest.Reply) {
	c := &r.Calls[0]
	c.Arguments = c.Arguments[:len(c.Arguments)-4]
}

func onResult(do func(*modeltest.Reply)) func(string, modeltest.Message, *modeltest.Reply) {
	return func(_ string, last modeltest.Message, r *modeltest.Reply) {
		if last.Role == "tool" && !strings.HasPrefix(last.Content, "Error") {
			do(r)
		}
	}
}

func onError(do func(*modeltest.Reply)) func(string, modeltest.Message, *modeltest.Reply) {
	return func(_ string, last modeltest.Message, r *modeltest.Reply) {
		if strings.HasPrefix(last.Content, "Error") {
			do(r)
		}
	}
}

func once(do func(*modeltest.Reply)) func(string, modeltest.Message, *modeltest.Reply) {
	var done atomic.Bool
	return func(_ string, _ modeltest.Message, r *modeltest.Reply) {
		if !done.Swap(true) {
			do(r)
		}
	}
}

// deaf does not hear that it is cancelled.
type deaf struct{ *openai.Client }

func (d deaf) Stream(ctx context.Context, req agent.Request, on agent.Listener) (agent.Response, error) {
	return d.Client.Stream(context.WithoutCancel(ctx), req, on)
}

func TestRun_SaysThatACancelIsNotHeard(t *testing.T) {
	t.Parallel()
	_, model := endpoint(t, diligent{}, openai.Options{})
	report := probe.Run(t.Context(), deaf{model}, probe.Options{ContextTokens: tokens, Promptly: time.Hour})
	if got := report.Verdict(); got != "The agent can work with this model. Not as it should be: cancel." {
		t.Errorf("%s: %+v", got, report.Findings)
	}
}

// A probe that is cancelled itself ends.
func TestRun_EndsWhenItIsCancelled(t *testing.T) {
	t.Parallel()
	_, model := endpoint(t, diligent{}, openai.Options{})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if report := probe.Run(ctx, model, probe.Options{}); report.Worst() != probe.Broken || report.Requests != 1 {
		t.Errorf("%+v", report)
	}
}
