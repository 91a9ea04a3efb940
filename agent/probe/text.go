package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

// answers is the first check. Without it there is nothing to look at.
func (p *prober) answers(ctx context.Context) bool {
	resp, err := p.ask(ctx, say("Reply with the one word: ready"), nil)
	switch {
	case err != nil:
		p.found("answers", Broken, "%s", core.MessageOf(err))
		return false
	case strings.TrimSpace(resp.Text) == "":
		p.found("answers", Broken, "The answer to a plain question is empty.")
	case resp.Model != "" && resp.Model != p.model.Name():
		p.found("answers", Fine, "as %s", resp.Model)
	default:
		p.found("answers", Fine, "as %s", p.model.Name())
	}
	return true
}

// minPieces is in how many pieces a text of sixty lines comes at least when it is streamed.
const minPieces = 3

func (p *prober) streams(ctx context.Context) {
	pieces := 0
	_, err := p.ask(ctx, say("Count from 1 to 60, one number a line, nothing else."), func(string) { pieces++ })
	switch {
	case err != nil:
		p.found("streams", Broken, "%s", core.MessageOf(err))
	case pieces < minPieces:
		p.found("streams", Degraded, "The answer does not come as it is made but in one piece: people see nothing until it is whole, and a proxy may give up before.")
	default:
		p.found("streams", Fine, "in %d pieces", pieces)
	}
}

var errEnough = errors.New("the check has seen enough")

func (p *prober) cancel(ctx context.Context) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var at time.Time
	_, err := p.ask(ctx, say("Count from 1 to 2000, one number a line, nothing else."), func(string) {
		if at.IsZero() {
			at = time.Now()
			stop(errEnough)
		}
	})
	took := time.Since(at)
	switch {
	case at.IsZero() && err != nil:
		p.found("cancel", Broken, "%s", core.MessageOf(err))
	case at.IsZero():
		p.found("cancel", Untested, "There was no text to cancel.")
	case p.report.state("streams") == Degraded:
		p.found("cancel", Untested, "The answer is whole before it can be cancelled.")
	case !errors.Is(err, errEnough) || took > p.options.Promptly:
		p.found("cancel", Degraded, "A cancelled request goes on: people wait %s for the end of a turn that they have cancelled.", took.Round(time.Millisecond))
	default:
		p.found("cancel", Fine, "ends within %s", max(took, time.Millisecond).Round(time.Millisecond))
	}
}

// state is that of a finding that was made before.
func (r Report) state(name string) State {
	for _, f := range r.Findings {
		if f.Name == name {
			return f.State
		}
	}
	return Untested
}

const (
	codeword       = "heron-4711"
	bytesPerToken  = 4
	lineOfTheBlock = "Line %d of the long text says nothing of importance at all, and so does the next one.\n"
)

func (p *prober) longContext(ctx context.Context) {
	var b strings.Builder
	b.WriteString("Somewhere in this long text is a codeword. Reply with it and nothing else.\n")
	size := p.options.ContextTokens * bytesPerToken
	for n, hidden := 1, false; b.Len() < size; n++ {
		if !hidden && b.Len() > size/4 {
			b.WriteString("The codeword is " + codeword + ".\n")
			hidden = true
		}
		fmt.Fprintf(&b, lineOfTheBlock, n)
	}
	b.WriteString("What is the codeword?")
	resp, err := p.ask(ctx, say(b.String()), nil)
	tokens := p.options.ContextTokens
	switch {
	case core.CodeOf(err) == core.CodeContextOverflow:
		p.found("long context", Degraded, "A prompt of about %d tokens is too long: turns that read much will end with context_overflow.", tokens)
	case err != nil:
		p.found("long context", Broken, "With a prompt of about %d tokens: %s", tokens, core.MessageOf(err))
	case resp.UsageKnown && resp.Usage.PromptTokens < int64(tokens)/3:
		p.found("long context", Degraded, "Of a prompt of about %d tokens the endpoint counts %d: it drops text without saying so, and the agent forgets what it has read.", tokens, resp.Usage.PromptTokens)
	case !strings.Contains(resp.Text, codeword):
		p.found("long context", Degraded, "In a prompt of about %d tokens the model does not find what is there: long turns will go wrong.", tokens)
	default:
		p.found("long context", Fine, "about %d tokens", tokens)
	}
}

// answerText is the text of resp, or what it called, for a finding.
func answerText(resp agent.Response) string {
	if len(resp.Calls) > 0 {
		return "a call of " + resp.Calls[0].Name
	}
	if strings.TrimSpace(resp.Text) == "" {
		return "nothing"
	}
	return "text"
}
