package handlers

import (
	"encoding/json"
	"slices"
	"time"

	"agent-sandboxing/core"
)

// timeline is a session's log folded into what its page shows. It is a pure function of one
// snapshot, so that a reload and the stream can never show two different things.
type timeline struct {
	turns []*turn // in the order of their messages
	byID  map[core.MessageID]*turn

	// current is the turn that what happens without a message belongs to: the one being prepared or
	// working, else the last one that was.
	current  *turn
	strip    strip
	outputs  []core.ArtifactCreated
	created  map[core.ArtifactID]time.Time
	lastDiff core.ArtifactID
}

// turn is a person's message with what the log says about it.
type turn struct {
	message  core.Message
	answer   *core.Message
	queuedAt int64 // sequence, 0 when its event is outside the window
	endedAt  int64 // sequence of its end, 0 while it has none in the window
	last     int64 // newest sequence that changed it
	items    []item
	tools    map[string]*tool

	preparing bool
	diff      *core.DiffUpdated
	outputs   []core.ArtifactCreated
	pull      *core.PullRequestChanged
	context   core.ContextUse
	warnings  []string
}

// item is a tool call or a note: exactly one is set.
type item struct {
	tool *tool
	note *note
}

// tool is one call with its result once it is there.
type tool struct {
	call     core.AgentToolCall
	result   *core.AgentToolResult
	refusal  *core.PolicyRefused
	startsAt time.Time
}

// note is a line of the platform.
type note struct {
	sequence           int64
	tone, text, detail string
}

// fold reads the log. Events of unknown type or content change nothing: a newer worker may write
// what this page does not know yet.
func fold(t core.Timeline) *timeline {
	l := &timeline{
		byID:    make(map[core.MessageID]*turn),
		created: make(map[core.ArtifactID]time.Time),
	}
	for _, m := range t.Messages {
		if m.Role == core.RoleUser {
			tn := &turn{message: m, tools: make(map[string]*tool)}
			l.turns = append(l.turns, tn)
			l.byID[m.ID] = tn
		}
	}
	for _, m := range t.Messages {
		if tn := l.byID[m.ReplyTo]; tn != nil && m.Role == core.RoleAssistant {
			tn.answer = &m
		}
	}
	for _, e := range t.Events {
		l.apply(e)
	}
	if t.Diff != nil {
		l.lastDiff = t.Diff.ID
	}
	return l
}

func (l *timeline) apply(e core.Event) {
	tn := l.current
	if e.MessageID != "" {
		tn = l.byID[e.MessageID]
	}
	switch e.Type {
	case "message_queued":
		tn.mark(e, func() { tn.queuedAt = e.Sequence })
	case "message_edited", "message_cancel_requested":
		tn.mark(e, func() {}) // the row has what changed
	case "message_preparing":
		tn.mark(e, func() { tn.preparing, l.current = true, tn })
	case "message_requeued":
		p := payload[core.MessageRequeued](e)
		tn.mark(e, func() { tn.preparing = false })
		tn.note(e, "warning", "The worker that prepared this message was lost. It is prepared again.", ordinal(p.Losses))
	case "message_working":
		tn.mark(e, func() { tn.preparing, l.current = false, tn })
		l.strip.finish()
	case "message_completed", "message_failed", "message_cancelled":
		p := payload[core.MessageCompleted](e) // the context is in the other two as well
		tn.mark(e, func() { tn.preparing, tn.endedAt, tn.context = false, e.Sequence, p.Context })
	case "agent_tool_call":
		p := payload[core.AgentToolCall](e)
		tn.tool(e, p.CallID, func(row *tool) { row.call = p })
	case "agent_tool_result":
		p := payload[core.AgentToolResult](e)
		tn.tool(e, p.CallID, func(row *tool) {
			row.result = &p
			if row.call.Tool == "" {
				row.call.Tool, row.call.Object = p.Tool, p.Object
			}
		})
	case "policy_refused":
		p := payload[core.PolicyRefused](e)
		tn.tool(e, p.CallID, func(row *tool) {
			row.refusal = &p
			if row.call.Tool == "" {
				row.call.Tool, row.call.Object = "bash", p.Snippet
			}
		})
	case "model_request_retry":
		p := payload[core.ModelRequestRetry](e)
		tn.note(e, "warning", "The model did not answer and is asked again.", retryDetail(p))
	case "egress_refused":
		p := payload[core.EgressRefused](e)
		tn.note(e, "warning", refusedText(p), p.Rule)
	case "egress_host_allowed":
		p := payload[core.EgressHostAllowed](e)
		tn.note(e, "info", "@"+p.By+" allowed "+p.Host+" for this repository.", "")
	case "artifact_created":
		p := payload[core.ArtifactCreated](e)
		l.created[p.ArtifactID] = e.CreatedAt
		if p.Kind != core.ArtifactDiff {
			l.outputs = append(l.outputs, p)
			tn.mark(e, func() { tn.outputs = append(tn.outputs, p) })
		}
	case "diff_updated":
		p := payload[core.DiffUpdated](e)
		tn.mark(e, func() { tn.diff = &p })
	case "capture_failed":
		p := payload[core.CaptureFailed](e)
		tn.mark(e, func() { tn.warnings = append(tn.warnings, captureWarning(p)) })
	case "checkpoint_saved":
		p := payload[core.CheckpointSaved](e)
		if len(p.Missing) > 0 {
			tn.mark(e, func() { tn.warnings = append(tn.warnings, partialWarning(p.Missing)) })
		}
	case "pull_request_opened", "pull_request_updated":
		p := payload[core.PullRequestChanged](e)
		p.Opened = e.Type == "pull_request_opened"
		tn.mark(e, func() { tn.pull = &p })
	case "publication_merged":
		p := payload[core.PublicationMerged](e)
		tn.note(e, "info", mergedText(p), nameSome(p.Files, 5))
	case "publication_failed":
		p := payload[core.PublicationChanged](e)
		tn.note(e, "danger", "The pull request was not published. "+p.Message, p.Code)
	case "sandbox_restored":
		p := payload[core.SandboxRestored](e)
		tone := "info"
		if p.PassedOver > 0 {
			tone = "warning"
		}
		tn.note(e, tone, restoredText(p), "")
		if len(p.Missing) > 0 {
			tn.mark(e, func() { tn.warnings = append(tn.warnings, partialWarning(p.Missing)) })
		}
	default:
		l.strip.apply(e)
	}
}

// mark notes that the event changed the turn. A nil turn is one whose message the page does not
// have; nothing is shown of it.
func (tn *turn) mark(e core.Event, change func()) {
	if tn == nil {
		return
	}
	tn.last = e.Sequence
	change()
}

func (tn *turn) note(e core.Event, tone, text, detail string) {
	tn.mark(e, func() {
		tn.items = append(tn.items, item{note: &note{sequence: e.Sequence, tone: tone, text: text, detail: detail}})
	})
}

// tool changes the row of a call, which is made at the first sight of its id.
func (tn *turn) tool(e core.Event, callID string, change func(*tool)) {
	if callID == "" {
		return // the payload could not be read
	}
	tn.mark(e, func() {
		row := tn.tools[callID]
		if row == nil {
			row = &tool{call: core.AgentToolCall{CallID: callID}, startsAt: e.CreatedAt}
			tn.tools[callID] = row
			tn.items = append(tn.items, item{tool: row})
		}
		change(row)
	})
}

// active is the turn that is worked on or comes next, nil when nothing waits.
func (l *timeline) active() *turn {
	i := slices.IndexFunc(l.turns, func(t *turn) bool { return t.message.State == core.Working })
	if i < 0 {
		i = slices.IndexFunc(l.turns, func(t *turn) bool { return t.message.State == core.Queued })
	}
	if i < 0 {
		return nil
	}
	return l.turns[i]
}

// waiting is every queued message behind the active one, oldest first.
func (l *timeline) waiting() []*turn {
	var out []*turn
	active := l.active()
	for _, t := range l.turns {
		if t.message.State == core.Queued && t != active {
			out = append(out, t)
		}
	}
	return out
}

// newestIsWhole says that the window holds the first event of the turn that changes next.
func (l *timeline) newestIsWhole() bool {
	t := l.active()
	if t == nil {
		t = l.latest()
	}
	return t == nil || t.queuedAt > 0
}

// latest is the newest turn that has begun or ended, nil when there is none.
func (l *timeline) latest() *turn {
	for _, t := range slices.Backward(l.turns) {
		if t.message.State != core.Queued {
			return t
		}
	}
	return nil
}

// payload decodes an event's content; what cannot be read is the zero value.
func payload[P any](e core.Event) P {
	var p P
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		var zero P
		return zero
	}
	return p
}
