package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

func readTool() agent.ToolSpec {
	return agent.ToolSpec{
		Name: "read", Description: "Reads a file.",
		Parameters: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{"path":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":2000}}}`),
	}
}

func writeTool() agent.ToolSpec {
	return agent.ToolSpec{
		Name: "write", Description: "Writes a file.",
		Parameters: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path","content"],"properties":{"path":{"type":"string"},"content":{"type":"string","description":"The full text of the file"}}}`),
	}
}

// arguments of a call, as far as the checks look at them.
type arguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func argumentsOf(call agent.ToolCall) (arguments, bool) {
	var a arguments
	return a, json.Unmarshal([]byte(call.Arguments), &a) == nil
}

// toolCall returns the conversation to go on with, or none.
func (p *prober) toolCall(ctx context.Context) *agent.Request {
	req := say("Call the tool read for the file word.txt. Then reply with the word that it holds, and nothing else.", readTool(), writeTool())
	resp, err := p.ask(ctx, req, nil)
	if err != nil {
		words := core.MessageOf(err)
		if core.CodeOf(err) == core.CodeModelRejected {
			words = "The endpoint takes no request with tools, or not their schemas. Try MODEL_SCHEMA=minimal, or another model."
		}
		p.found("tool call", Broken, "%s", words)
		return nil
	}
	if len(resp.Calls) == 0 {
		p.found("tool call", Broken, "Asked to call a tool, the model answers with %s: it can neither read nor change a file.", answerText(resp))
		return nil
	}
	args, ok := argumentsOf(resp.Calls[0])
	switch {
	case resp.Calls[0].Name != "read":
		p.found("tool call", Degraded, "The model calls another tool than it was asked to.")
	case !ok:
		p.found("tool call", Broken, "The arguments of a simple call are no valid JSON.")
		return nil
	case args.Path != "word.txt":
		p.found("tool call", Degraded, "The model calls a tool with other arguments than it was asked to.")
	default:
		p.found("tool call", Fine, "calls what it is asked to call")
	}
	req.Messages = append(req.Messages, agent.Message{Role: agent.Assistant, Text: resp.Text, Calls: resp.Calls, Reasoning: resp.Reasoning})
	for _, call := range resp.Calls {
		req.Messages = append(req.Messages, agent.Message{Role: agent.ToolRole, CallID: call.ID, Text: "kingfisher\n"})
	}
	return &req
}

func (p *prober) toolResult(ctx context.Context, req *agent.Request) {
	if req == nil {
		p.found("tool result", Untested, "There is no call to answer.")
		return
	}
	resp, err := p.ask(ctx, *req, nil)
	switch {
	case core.CodeOf(err) == core.CodeModelRejected:
		p.found("tool result", Broken, "The endpoint refuses a conversation with a call and its result. If the model reasons, try another MODEL_REASONING_REPLAY.")
	case err != nil:
		p.found("tool result", Broken, "%s", core.MessageOf(err))
	case !strings.Contains(strings.ToLower(resp.Text), "kingfisher"):
		p.found("tool result", Degraded, "The model does not use what a tool has told it.")
	default:
		p.found("tool result", Fine, "is read and used")
	}
}

func (p *prober) parallelCalls(ctx context.Context) {
	resp, err := p.ask(ctx, say("Call the tool read twice in this one response: for a.txt and for b.txt.", readTool()), nil)
	if err != nil {
		p.found("parallel calls", Broken, "%s", core.MessageOf(err))
		return
	}
	paths := map[string]bool{}
	for _, call := range resp.Calls {
		args, ok := argumentsOf(call)
		if !ok || call.Name != "read" {
			p.found("parallel calls", Broken, "Two calls in one response come out mixed up: the endpoint does not keep their pieces apart. Try MODEL_ONE_CALL=true.")
			return
		}
		paths[args.Path] = true
	}
	switch {
	case len(resp.Calls) == 0:
		p.found("parallel calls", Degraded, "Asked for two calls, the model answers with %s.", answerText(resp))
	case paths["a.txt"] && paths["b.txt"] && len(resp.Calls) == 2:
		p.found("parallel calls", Fine, "two in one response")
	case len(resp.Calls) == 1:
		p.found("parallel calls", Degraded, "One call a response: the agent works, with more steps.")
	default:
		p.found("parallel calls", Degraded, "Asked for two calls, the model makes %d others.", len(resp.Calls))
	}
}

// hardText has everything that is lost when arguments are escaped wrongly.
const hardText = "say \"hi\"\\n to C:\\new\\\\dir\n\tif (a < b && c > d) { return '日本 🙂 é'; } // </tool> {\"x\": [1, 2]} `$y` %s\n"

func (p *prober) arguments(ctx context.Context) {
	resp, err := p.ask(ctx, say("Call the tool write with path hard.txt. The content is exactly what stands between the two lines of equal signs, with every character and line break:\n=====\n"+hardText+"=====", writeTool()), nil)
	if err != nil {
		p.found("arguments", Broken, "%s", core.MessageOf(err))
		return
	}
	if len(resp.Calls) == 0 {
		p.found("arguments", Broken, "Asked to write a file, the model answers with %s.", answerText(resp))
		return
	}
	args, ok := argumentsOf(resp.Calls[0])
	got, want := strings.TrimRight(args.Content, "\n"), strings.TrimRight(hardText, "\n")
	switch {
	case !ok:
		p.found("arguments", Broken, "Text with quotes, backslashes and line breaks makes arguments that are no valid JSON: most edits will fail.")
	case got != want:
		p.found("arguments", Degraded, "Text with quotes, backslashes and line breaks is changed on its way, first at character %d: edits may fail or damage files.", firstDifference(got, want))
	default:
		p.found("arguments", Fine, "arrive as they are meant")
	}
}

// firstDifference counts characters from 1.
func firstDifference(a, b string) int {
	as, bs := []rune(a), []rune(b)
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return i + 1
		}
	}
	return min(len(as), len(bs)) + 1
}

// recovery looks at what follows a call whose arguments could not be read. The history then holds {}.
func (p *prober) recovery(ctx context.Context) {
	req := say("Call the tool read for the file word.txt.", readTool())
	req.Messages = append(req.Messages,
		agent.Message{Role: agent.Assistant, Calls: []agent.ToolCall{{ID: "call_probe1", Name: "read", Arguments: "{}"}}},
		agent.Message{Role: agent.ToolRole, CallID: "call_probe1", Text: "Error (invalid_arguments): the arguments are not valid JSON at byte 12. Send the call again with valid JSON."})
	resp, err := p.ask(ctx, req, nil)
	if err != nil {
		p.found("recovery", Broken, "After a call that could not be read: %s", core.MessageOf(err))
		return
	}
	if len(resp.Calls) > 0 {
		if args, ok := argumentsOf(resp.Calls[0]); ok && args.Path == "word.txt" {
			p.found("recovery", Fine, "a call that could not be read is sent again")
			return
		}
	}
	p.found("recovery", Degraded, "Told that a call could not be read, the model does not send it again as it should: one bad call may end the work.")
}

// longLines is about 4,000 tokens of output.
const longLines = 400

func longLine(n int) string { return fmt.Sprintf("const value%d = %d;\n", n, n) }

func (p *prober) longOutput(ctx context.Context) {
	resp, err := p.ask(ctx, say(fmt.Sprintf("Call the tool write with path long.js and a content of %d lines. Line 1 is `%s`, line 2 is `%s`, and so on to line %d. Write every line.",
		longLines, strings.TrimSpace(longLine(1)), strings.TrimSpace(longLine(2)), longLines), writeTool()), nil)
	if err != nil {
		p.found("long output", Broken, "%s", core.MessageOf(err))
		return
	}
	if resp.Finish == agent.FinishLength {
		p.found("long output", Degraded, "An answer ends at %d tokens: large files cannot be written in one call. Raise MODEL_MAX_OUTPUT.", resp.Usage.CompletionTokens)
		return
	}
	if len(resp.Calls) == 0 {
		p.found("long output", Degraded, "Asked to write a long file, the model answers with %s.", answerText(resp))
		return
	}
	args, ok := argumentsOf(resp.Calls[0])
	lines := 0
	for line := range strings.Lines(strings.TrimRight(args.Content, "\n") + "\n") {
		if line == longLine(lines+1) {
			lines++
		}
	}
	switch {
	case !ok:
		p.found("long output", Broken, "A long call is cut and nothing says so: the endpoint hides that its output limit was reached. Set MODEL_MAX_OUTPUT.")
	case lines < longLines:
		p.found("long output", Degraded, "Of %d lines the model writes %d: it shortens long files.", longLines, lines)
	default:
		p.found("long output", Fine, "%d lines in one call", lines)
	}
}
