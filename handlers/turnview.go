package handlers

import (
	"strings"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/views/components"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/markdown"
)

// recordFiles is how many changed files a turn's card lists.
const recordFiles = 10

// turns is what a page shows of the timeline; older says that it is not the newest page.
func (v sessionView) turns(older bool) []components.TurnProps {
	var out []components.TurnProps
	for _, t := range v.visible(older) {
		out = append(out, v.turn(t))
	}
	return out
}

// visible leaves out the turns that began before the window, and on an older page those that ended
// after it: they are whole on another page.
func (v sessionView) visible(older bool) []*turn {
	var out []*turn
	for _, t := range v.line.turns {
		if (t.queuedAt > 0 || !v.Earlier) && (t.endedAt > 0 || !older) {
			out = append(out, t)
		}
	}
	return out
}

// earlier is the sequence before which the turns lie that visible left out: after the end of the
// last of them, because a message may have been queued while it ran.
func (v sessionView) earlier() int64 {
	before := int64(0)
	for _, t := range v.line.turns {
		if t.queuedAt > 0 {
			if before == 0 {
				before = t.queuedAt
			}
			break
		}
		before = max(before, t.last+1)
	}
	return before
}

func (v sessionView) turn(t *turn) components.TurnProps {
	m := t.message
	p := components.TurnProps{
		SessionID: v.id(), MessageID: string(m.ID), Sequence: t.queuedAt,
		Author: v.Owner.Login, AvatarURL: link.Avatar(int64(v.Owner.GitHubID)),
		Text: m.Text, CreatedAt: m.CreatedAt, State: t.state(),
		StartedAt: m.StartedAt, FinishedAt: m.FinishedAt, Now: v.now,
		Answer: answerProps(m, t.answer),
	}
	for _, it := range t.items {
		switch {
		case it.tool != nil:
			row := v.tool(t, it.tool)
			p.Items = append(p.Items, components.Item{Tool: &row})
		case it.note != nil:
			p.Items = append(p.Items, components.Item{Note: &components.NoteProps{
				Sequence: it.note.sequence, Tone: it.note.tone, Text: it.note.text, Detail: it.note.detail,
			}})
		}
	}
	if p.State == "queued" {
		p.QueueNote = v.queueNote(t)
		p.CanEdit = v.Rights.Owner
	}
	if m.State.Terminal() && !m.StartedAt.IsZero() {
		r := v.records(t)
		p.Records = &r
	}
	if m.State == core.Failed {
		f := v.failure(m.FailureCode, m.FailureText, m.ID)
		p.Failure = &f
	}
	return p
}

// queueNote says what a waiting message waits for.
func (v sessionView) queueNote(t *turn) string {
	ahead := 0
	for _, other := range v.line.turns {
		if other == t {
			break
		}
		if !other.message.State.Terminal() {
			ahead++
		}
	}
	switch {
	case ahead > 1:
		return plural(ahead, "message") + " ahead in this session"
	case ahead == 1:
		return "runs next"
	case v.platform.Problem != "":
		return v.platform.Problem
	}
	return "waits for a free worker"
}

// answerProps is the agent's prose: the final text once there is one, else what has been written.
func answerProps(m core.Message, final *core.Message) components.AnswerProps {
	text, growing := m.PartialText, !m.State.Terminal()
	if final != nil {
		text, growing = final.Text, false
	}
	p := components.AnswerProps{MessageID: string(m.ID), Growing: growing && text != ""}
	if text != "" {
		p.HTML = markdown.Render(text)
	}
	return p
}

// tool is a row. A row that a crash left running never spins for ever: once the turn has ended it
// is interrupted.
func (v sessionView) tool(t *turn, row *tool) components.ToolProps {
	p := components.ToolProps{
		CallID: row.call.CallID, Tool: row.call.Tool, Object: row.call.Object,
		Input: row.call.Snippet, State: "running", StartedAt: row.startsAt,
	}
	if r := row.result; r != nil {
		p.State, p.Detail, p.Code = r.Outcome, r.Detail, r.Code
		p.Output, p.Truncated = r.Snippet, r.Truncated
		p.Duration = time.Duration(r.Ms) * time.Millisecond
		if r.Object != "" {
			p.Object = r.Object
		}
		if r.Exit != nil {
			p.Exit = *r.Exit
		}
		if r.ArtifactID != "" {
			p.ArtifactURL = link.Artifact(v.id(), string(r.ArtifactID), 1)
		}
	}
	if r := row.refusal; r != nil {
		p.State, p.Code, p.Message = "refused", r.Rule, r.Message
		if p.Input == "" {
			p.Input = r.Snippet
		}
	}
	if p.State == "running" && t.message.State.Terminal() {
		p.State = "interrupted"
	}
	return p
}

// records is what the tables say of a finished turn; the agent's prose is never asked.
func (v sessionView) records(t *turn) components.RecordsProps {
	m := t.message
	p := components.RecordsProps{
		Usage:     joined(usageText(m.Usage, m.Model), contextText(t.context)),
		Artifacts: v.artifactProps(t.outputs),
		Warning:   strings.Join(t.warnings, " "),
	}
	switch {
	case t.diff == nil:
		p.NoChange = len(t.warnings) == 0
	case !v.changedBy(t):
		p.NoChange = true
	case v.Diff != nil && t.diff.ArtifactID == v.Diff.ID:
		p.DiffURL = link.Diff(v.id(), string(v.Diff.ID))
		p.Files, p.MoreFiles = fileProps(v.Changed, v.id(), string(v.Diff.ID), recordFiles)
		p.Additions, p.Deletions = core.Totals(v.Changed)
		p.NoChange = len(v.Changed) == 0
	default:
		// The file list of an older diff is on its own page.
		p.DiffURL = link.Diff(v.id(), string(t.diff.ArtifactID))
		p.MoreFiles, p.Additions, p.Deletions = t.diff.Files, t.diff.Additions, t.diff.Deletions
		p.NoChange = t.diff.Files == 0
	}
	if p.NoChange {
		p.DiffURL = "" // it is empty
	}
	if t.pull != nil {
		p.PullRequest = v.pullOf(*t.pull)
	}
	return p
}

// changedBy says whether a turn changed files, as far as the records tell: each turn has the
// session's whole diff, so it is compared with that of the turn before.
func (v sessionView) changedBy(t *turn) bool {
	before, found := core.DiffUpdated{}, !v.Earlier
	for _, other := range v.line.turns {
		if other == t {
			break
		}
		if other.diff != nil {
			before, found = *other.diff, true
		}
	}
	before.ArtifactID = t.diff.ArtifactID
	return !found || before != *t.diff || before.Files > 0 && t.changedAfter(time.Time{})
}

// pullOf is the card of the turn that opened or updated the pull request.
func (v sessionView) pullOf(e core.PullRequestChanged) *components.PullRequestProps {
	p := &components.PullRequestProps{
		SessionID: v.id(), Number: e.Number, URL: e.URL, State: "open", HeadSHA: e.HeadSHA,
		LeftOut: e.LeftOut, Now: v.now, Draft: e.Draft, Outcome: pullOutcome(e.Number, e.Opened, e.Draft),
	}
	if v.PullRequest != nil && v.PullRequest.Number == e.Number {
		p.State, p.Draft, p.Title = v.PullRequest.State, v.PullRequest.Draft, v.PullRequest.Title
	}
	return p
}
