package handlers

import (
	"cmp"
	"strconv"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/components"
	"agent-sandboxing/views/link"
)

// sessionView turns one snapshot into the props of the session page and of its stream's fragments.
type sessionView struct {
	chat.View
	line     *timeline
	platform chat.Platform
	site     Site
	now      time.Time
}

func newSessionView(v chat.View, platform chat.Platform, site Site, now time.Time) sessionView {
	return sessionView{View: v, line: fold(v.Timeline), platform: platform, site: site, now: now}
}

func (v sessionView) id() string { return string(v.Session.ID) }

func (v sessionView) head() components.HeadProps {
	p := components.HeadProps{
		SessionID: v.id(), Title: v.Session.Title, Repository: v.Session.Repository.FullName(),
		BaseBranch: v.Session.BaseBranch, BaseSHA: v.Session.BaseSHA, Branch: v.Session.Branch,
		Archived: v.Session.Archived, CanRename: v.Rights.Owner,
		CanPublish: v.publishBlocked() == "" && v.unpublished(), Files: len(v.Changed),
	}
	p.Additions, p.Deletions = core.Totals(v.Changed)
	if !v.Session.Repository.IsFixture() {
		p.RepositoryURL = v.site.GitHubURL + "/" + v.Session.Repository.FullName()
	}
	if v.Sandbox != nil {
		p.Sandbox = string(v.Sandbox.State)
	}
	if !v.Rights.Owner {
		p.Owner = v.Owner.Login
	}
	if v.PullRequest != nil {
		pr := v.pull()
		p.PullRequest = &pr
	}
	return p
}

// state is a turn's state in the page's words.
func (t *turn) state() string {
	m := t.message
	switch {
	case m.State.Terminal():
		return string(m.State)
	case !m.CancelRequestedAt.IsZero():
		return "cancelling"
	case m.State == core.Queued && t.preparing:
		return "preparing"
	}
	return string(m.State)
}

func (v sessionView) status() components.StatusProps {
	p := components.StatusProps{SessionID: v.id(), State: "idle", Label: "Ready for a message", Now: v.now}
	if t := v.line.active(); t != nil {
		p.State = t.state()
		p.CanCancel = v.Rights.MayCancel() && p.State != "cancelling"
		switch p.State {
		case "queued":
			p.Label, p.Detail = "Queued", cmp.Or(v.platform.Problem, "Waits for a free worker.")
		case "preparing":
			p.Label, p.Detail = "Preparing the sandbox", v.line.strip.running()
		case "working":
			p.Label, p.Detail, p.StartedAt = "Working", t.doing(), t.message.StartedAt
		case "cancelling":
			p.Label, p.Detail = "Cancelling", "The agent and its commands are being stopped."
		}
		return p
	}
	if publishing(v.Publication) {
		p.State, p.Label, p.Detail = "publishing", "Publishing", publishStepName(v.Publication.Step)
		return p
	}
	t := v.line.latest()
	if t == nil {
		return p
	}
	p.State = t.state()
	took := ""
	if m := t.message; !m.StartedAt.IsZero() && m.FinishedAt.After(m.StartedAt) {
		took = duration(m.FinishedAt.Sub(m.StartedAt))
	}
	switch p.State {
	case "completed":
		p.Label = join("Done in", took, "Done")
	case "failed":
		p.Label, p.Detail = join("Failed after", took, "Failed"), t.message.FailureCode
	case "cancelled":
		p.Label, p.Detail = join("Cancelled after", took, "Cancelled"), "Changes so far are kept in the workspace."
	}
	return p
}

func join(prefix, took, otherwise string) string {
	if took == "" {
		return otherwise
	}
	return prefix + " " + took
}

// doing is "9 actions · bash go build ./…".
func (t *turn) doing() string {
	n, running := 0, ""
	for _, it := range t.items {
		if it.tool == nil {
			continue
		}
		n++
		running = ""
		if it.tool.result == nil && it.tool.refusal == nil {
			running = it.tool.call.Tool + " " + it.tool.call.Object
		}
	}
	switch {
	case n == 0:
		return ""
	case running == "":
		return plural(n, "action")
	}
	return plural(n, "action") + " · " + running
}

func (v sessionView) queue() components.QueueProps {
	p := components.QueueProps{SessionID: v.id()}
	for _, t := range v.line.waiting() {
		p.Messages = append(p.Messages, components.QueuedProps{MessageID: string(t.message.ID), Text: t.message.Text})
	}
	return p
}

// composer is the form for the next message. Text and sentence are what was typed and why it was
// not taken, "" at first.
func (v sessionView) composer(key, text, sentence string) components.ComposerProps {
	return components.ComposerProps{
		SessionID: v.id(), ClientKey: key, Text: text, Error: sentence,
		Active: v.line.active() != nil, Disabled: v.silenced(),
		MaxBytes: core.MaxMessageBytes, Model: v.platform.Model,
	}
}

// silenced says why the viewer may not post, "" when they may.
func (v sessionView) silenced() string {
	switch {
	case !v.Rights.Owner:
		return "Read-only: only @" + v.Owner.Login + ", who started this session, may write here."
	case v.Session.Archived:
		return "This session is archived. Take it back to go on."
	case !v.Rights.Push:
		return "Read-only: you may not push to " + v.Session.Repository.FullName() + " any more."
	}
	return ""
}

// shownFiles is how many changed files a card or the panel lists.
const shownFiles = 50

func (v sessionView) changes() components.ChangesProps {
	p := components.ChangesProps{SessionID: v.id(), Total: len(v.Changed), Now: v.now}
	p.Additions, p.Deletions = core.Totals(v.Changed)
	if v.Diff != nil {
		p.DiffURL = link.Diff(v.id(), string(v.Diff.ID))
		p.CapturedAt, p.Truncated = v.Diff.CreatedAt, v.Diff.Truncated
		p.Files, p.MoreFiles = fileProps(v.Changed, v.id(), string(v.Diff.ID), shownFiles)
	}
	return p
}

func fileProps(files []core.ChangedFile, session, diff string, limit int) (shown []components.FileProps, more int) {
	for i, f := range files[:min(len(files), limit)] {
		shown = append(shown, components.FileProps{
			Path: f.Path, OldPath: f.OldPath, Status: f.Status, Additions: f.Additions,
			Deletions: f.Deletions, Binary: f.Binary, URL: link.DiffFile(session, diff, i),
		})
	}
	return shown, len(files) - len(shown)
}

func (v sessionView) artifacts() []components.ArtifactProps {
	return v.artifactProps(v.line.outputs)
}

func (v sessionView) artifactProps(list []core.ArtifactCreated) []components.ArtifactProps {
	var out []components.ArtifactProps
	for _, a := range list {
		out = append(out, components.ArtifactProps{
			ID: string(a.ArtifactID), URL: link.Artifact(v.id(), string(a.ArtifactID), 1),
			Name: a.Name, Kind: artifactKind(a.Kind), Size: a.Size, CreatedAt: v.line.created[a.ArtifactID],
		})
	}
	return out
}

func artifactKind(k core.ArtifactKind) string {
	switch k {
	case core.ArtifactDiff:
		return "diff"
	case core.ArtifactOutput:
		return "tool output"
	}
	return string(k)
}

func (v sessionView) details() components.DetailsProps {
	p := components.DetailsProps{
		SessionID: v.id(), Branch: v.Session.Branch, BaseBranch: v.Session.BaseBranch, BaseSHA: v.Session.BaseSHA,
		Policy: string(v.Session.BashPolicy), Model: v.platform.Model, Messages: len(v.line.turns),
		CreatedAt: v.Session.CreatedAt, Now: v.now, EventsURL: link.Events(v.id()),
		CanArchive: v.Rights.Owner && (v.Session.Archived || v.idle()), Archived: v.Session.Archived,
	}
	var sum core.Usage
	for _, t := range v.line.turns {
		sum = sum.Add(t.message.Usage)
		if t.message.Model != "" {
			p.Model = t.message.Model
		}
	}
	p.Usage = usageText(sum, "")
	if b := v.Sandbox; b != nil {
		p.Sandbox = string(b.State)
		p.SandboxInfo = b.Runtime + " · image " + shortImage(b.Image) + " · generation " + strconv.Itoa(b.Generation)
		p.CanStop = v.Rights.MayCancel() && b.State == core.SandboxReady && b.StopRequestedAt.IsZero() && v.idle()
		if b.State == core.SandboxReady && !b.StopRequestedAt.IsZero() {
			p.Sandbox = string(core.SandboxStopping)
		}
	}
	return p
}

// idle says that nothing of the session is under way or waits.
func (v sessionView) idle() bool { return v.line.active() == nil && !publishing(v.Publication) }

// mark is the state behind the session's dot in a list, as rowState says it.
func (v sessionView) mark() string {
	state := v.status().State
	if state == string(core.Completed) && len(v.Changed) > 0 && v.PullRequest == nil {
		return "review"
	}
	return state
}

func (v sessionView) provision() components.ProvisionProps {
	s := v.line.strip
	p := components.ProvisionProps{Shown: len(s.steps) > 0, Done: s.done && s.failed == nil}
	for _, st := range s.steps {
		p.Steps = append(p.Steps, components.StepProps{
			Name: st.name, Detail: st.detail, State: st.state, StartedAt: st.startedAt, Duration: st.took,
		})
	}
	if p.Done {
		p.Summary = "Sandbox ready in " + duration(s.took)
	}
	if s.failed != nil {
		f := v.failure(s.failed.Code, s.failed.Message, "")
		f.Title = "The sandbox could not be made ready"
		p.Failure = &f
	}
	return p
}

// running names the step under way.
func (s *strip) running() string {
	for _, st := range s.steps {
		if st.state == "running" {
			return join(st.name, st.detail, st.name)
		}
	}
	return ""
}
