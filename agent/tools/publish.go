package tools

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

const (
	maxTitle = 120     // characters
	maxBody  = 8 << 10 // bytes
)

// publishTool asks the platform for the session's pull request.
type publishTool struct{ publisher core.Publisher }

func (t *publishTool) Spec() agent.ToolSpec {
	return spec("publish_pull_request", `{"type":"object","additionalProperties":false,"required":["title","body"],"properties":{"title":{"type":"string","minLength":1,"maxLength":120},"body":{"type":"string","maxLength":8192}}}`)
}

func (t *publishTool) object(a *arguments) string { return a.text("title") }

func (t *publishTool) run(ctx context.Context, a *arguments) (agent.Result, error) {
	title := strings.Join(strings.Fields(a.need("title")), " ")
	body := a.need("body")
	if r := a.failed(); r != nil {
		return *r, nil
	}
	if title == "" || utf8.RuneCountInString(title) > maxTitle {
		return agent.Failed("invalid_arguments", "title must have 1 to %d characters. Send the call again with such a title.", maxTitle), nil
	}
	if len(body) > maxBody {
		return agent.Failed("invalid_arguments", "body has %d bytes; %d are allowed. Send the call again with a shorter body.", len(body), maxBody), nil
	}
	done, err := t.publisher.PublishPullRequest(ctx, title, body)
	if err != nil {
		return agent.FailedBy(ctx, err)
	}
	detail := fmt.Sprintf("#%d %s", done.Number, done.Outcome)
	if done.Outcome == core.PublishUnchanged {
		return agent.OK(fmt.Sprintf("Pull request #%d %s already holds this work; nothing new was published.", done.Number, done.URL), detail), nil
	}
	verb := "Updated"
	if done.Outcome == core.PublishOpened {
		verb = "Created"
	}
	kind := "pull request"
	if done.Draft {
		kind = "draft pull request"
	}
	text := fmt.Sprintf("%s %s #%d %s (%s, +%d −%d)", verb, kind, done.Number, done.URL, plural(done.Files, "file"), done.Additions, done.Deletions)
	if done.Merged > 0 {
		text += fmt.Sprintf("\nMerged with %s that others had pushed to the branch; read files again before you edit them.", plural(done.Merged, "commit"))
	}
	if len(done.LeftOut) > 0 {
		text += "\nLeft out: " + strings.Join(printedAll("", done.LeftOut), ", ")
	}
	return agent.OK(text, detail), nil
}
