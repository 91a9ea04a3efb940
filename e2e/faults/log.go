package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// logEvent is one entry of a session's log.
type logEvent struct {
	Sequence  int64
	Type      string
	MessageID string    `json:"message_id"`
	CreatedAt time.Time `json:"created_at"`
	Payload   json.RawMessage
}

// logPage is how much of a log one answer holds at most.
const logPage = 1000

// log is a session's whole log, which must have no holes.
func (b *bench) log(ctx context.Context, id string) ([]logEvent, error) {
	var all []logEvent
	for {
		var page struct{ Events []logEvent }
		if err := b.owner.Ask(ctx, http.MethodGet, fmt.Sprintf("/chat-sessions/%s/events?limit=%d&after=%d", id, logPage, len(all)), "", nil, &page); err != nil {
			return nil, err
		}
		for _, e := range page.Events {
			if e.Sequence != int64(len(all)+1) {
				return nil, fmt.Errorf("session %s: after event %d comes %d", id, len(all), e.Sequence)
			}
			all = append(all, e)
		}
		if len(page.Events) < logPage {
			return all, nil
		}
	}
}

// events are the types of the session's log, each with the tool that it is about.
func (b *bench) events(ctx context.Context, id string) ([]string, error) {
	log, err := b.log(ctx, id)
	if err != nil {
		return nil, err
	}
	var types []string
	for _, e := range log {
		var p struct{ Tool string }
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			return nil, err
		}
		types = append(types, strings.TrimSpace(e.Type+" "+p.Tool))
	}
	return types, nil
}

// toolResult is what the log says of a tool call's end.
type toolResult struct {
	Tool, Outcome, Code, Detail, Snippet, Object string
	Truncated                                    bool
	Ms                                           int64
}

// results are the ends of a session's tool calls.
func (b *bench) results(ctx context.Context, id string) ([]toolResult, error) {
	log, err := b.log(ctx, id)
	if err != nil {
		return nil, err
	}
	var all []toolResult
	for _, e := range log {
		if e.Type != "agent_tool_result" {
			continue
		}
		var r toolResult
		if err := json.Unmarshal(e.Payload, &r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// result is the end of the session's last call of a tool.
func (b *bench) result(ctx context.Context, id, tool string) (toolResult, error) {
	all, err := b.results(ctx, id)
	for _, r := range slices.Backward(all) {
		if r.Tool == tool {
			return r, err
		}
	}
	return toolResult{}, errors.Join(err, fmt.Errorf("session %s has no result of %s", id, tool))
}

// written are the files whose write the log tells as done.
func (b *bench) written(ctx context.Context, id string) ([]string, error) {
	all, err := b.results(ctx, id)
	var paths []string
	for _, r := range all {
		if r.Tool == "write" && r.Outcome == "ok" {
			paths = append(paths, r.Object)
		}
	}
	return paths, err
}

// oneEndEach demands of a session's log that every message ended once, and so did every tool call.
func (b *bench) oneEndEach(ctx context.Context, id string) error {
	events, err := b.log(ctx, id)
	if err != nil {
		return err
	}
	ends, queued, calls := map[string]int{}, 0, map[string]int{}
	for _, e := range events {
		var p struct {
			CallID string `json:"call_id"`
		}
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			return err
		}
		switch e.Type {
		case "message_queued":
			queued++
		case "message_completed", "message_failed", "message_cancelled":
			ends[e.MessageID]++
		case "agent_tool_call":
			calls[e.MessageID+" "+p.CallID]++
		case "agent_tool_result":
			calls[e.MessageID+" "+p.CallID]--
		}
	}
	if len(ends) != queued {
		return fmt.Errorf("%d messages, %d with an end", queued, len(ends))
	}
	for m, n := range ends {
		if n != 1 {
			return fmt.Errorf("message %s ended %d times", m, n)
		}
	}
	for call, n := range calls {
		if n != 0 {
			return fmt.Errorf("call %s has %d results too few", call, n)
		}
	}
	return nil
}
