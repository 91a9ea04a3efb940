package handlers

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/a-h/templ"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/live"
	"agent-sandboxing/views/components"
)

// fragments renders the parts of a session's page that changed. It belongs to one stream.
type fragments struct {
	h      *Handlers
	id     core.SessionID
	rights chat.Rights
	shown  int64 // the page has everything up to this sequence
}

// write renders what a batch changed. The snapshot may already be ahead of the batch: then the
// batches that it covers have nothing left to show.
func (f *fragments) write(ctx context.Context, out *eventStream, b live.Batch) error {
	if n := len(b.Events); n > 0 && b.Events[n-1].Sequence > f.shown {
		if err := f.writeEvents(ctx, out); err != nil {
			return err
		}
	}
	for _, id := range b.Partials {
		if err := f.writeAnswer(ctx, out, id); err != nil {
			return err
		}
	}
	return nil
}

func (f *fragments) writeEvents(ctx context.Context, out *eventStream) error {
	enough := func(v sessionView) bool {
		return v.Events[0].Sequence <= f.shown+1 && v.line.newestIsWhole()
	}
	v, err := f.h.read(ctx, enough, func(limit int) (chat.View, error) {
		return f.h.Chat.Reread(ctx, f.id, f.rights, limit)
	})
	if err != nil {
		return err
	}
	var html bytes.Buffer
	for _, part := range v.changedSince(f.shown) {
		if err := part.Render(ctx, &html); err != nil {
			return err
		}
	}
	f.shown = v.Session.LastSequence
	out.add(f.shown, "", html.String())
	out.over = v.Session.Archived
	return nil
}

// writeAnswer redraws a growing answer. It has no id: it is no event, and the client's cursor must
// not move.
func (f *fragments) writeAnswer(ctx context.Context, out *eventStream, id core.MessageID) error {
	m, err := f.h.Chat.Growing(ctx, f.id, id)
	if err != nil {
		return err
	}
	if m.State != core.Working {
		return nil // its end comes as an event, with the final text
	}
	var html bytes.Buffer
	if err := components.ReplaceAnswer(answerProps(m, nil)).Render(ctx, &html); err != nil {
		return err
	}
	out.add(-1, "", html.String())
	return nil
}

// read takes a snapshot that is large enough for what it is read for: a turn of which a part is
// missing must never replace a whole one.
func (h *Handlers) read(ctx context.Context, enough func(sessionView) bool, read func(limit int) (chat.View, error)) (sessionView, error) {
	platform, err := h.Chat.Platform(ctx)
	if err != nil {
		return sessionView{}, err
	}
	for limit := windowEvents; ; limit *= 4 {
		t, err := read(limit)
		if err != nil {
			return sessionView{}, err
		}
		v := newSessionView(t, platform, h.Site, time.Now())
		if !v.Earlier || enough(v) {
			return v, nil
		}
	}
}

// changedSince is every part of the page that an event after the sequence may have changed.
func (v sessionView) changedSince(after int64) []templ.Component {
	var parts []templ.Component
	shown := v.visible(false)
	for i, t := range shown {
		// The card of a limit offers to go on, until another message does.
		overtaken := t.message.FailureCode == core.CodeLimitReached && i+1 < len(shown) && shown[i+1].queuedAt > after
		switch {
		case t.queuedAt > after:
			parts = append(parts, components.AppendTurn(v.turn(t)))
		case t.last > after, overtaken:
			parts = append(parts, components.ReplaceTurn(v.turn(t)))
		}
	}
	var turns, sandbox, changes, outputs, pull, network bool
	for _, e := range v.Events {
		if e.Sequence <= after {
			continue
		}
		switch family, _, _ := strings.Cut(string(e.Type), "_"); family {
		case "message", "session":
			turns = true
		case "sandbox", "repo", "command":
			sandbox = true
		case "diff":
			changes = true
		case "artifact":
			outputs = true
		case "publication", "pull":
			pull = true
		case "egress", "summary": // the last connections of a turn end with it
			network = true
		case "agent":
			network = network || e.Type == "agent_tool_result" // a command may have reached something
		}
	}
	if turns {
		parts = append(parts, components.ReplaceQueue(v.queue()), components.ReplaceComposerState(v.composer("", "", "")))
	}
	if sandbox || turns {
		parts = append(parts, components.ReplaceProvision(v.provision()))
	}
	if sandbox || turns || pull { // what can be stopped or archived depends on what is under way
		parts = append(parts, components.ReplaceDetails(v.details()))
	}
	if changes || turns {
		parts = append(parts, components.ReplaceChanges(v.changes()))
	}
	if outputs {
		parts = append(parts, components.ReplaceArtifacts(v.artifacts()))
	}
	if network || turns {
		parts = append(parts, components.ReplaceNetwork(v.network()))
	}
	if pull || changes || turns {
		parts = append(parts, components.ReplacePullRequest(v.pull()))
	}
	if pull || changes || turns || sandbox {
		parts = append(parts, components.ReplaceHead(v.head()))
	}
	parts = append(parts, components.ReplaceStatus(v.status()), components.ReplaceMark(v.mark()), components.TabTitle(v.title()))
	if v.Session.Archived {
		parts = append(parts, components.EndStream("This session is archived. Take it back to go on."))
	}
	return parts
}
