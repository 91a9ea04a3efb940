package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// calm sends each session one more message, which must work, and then counts what is wrong.
func (c *chaos) calm(ctx context.Context) error {
	wrong := map[string]int{"orphans": 0, "stuck rows": 0, "double runs": 0, "lost edits": 0, "lost events": 0, "unusable sessions": 0}
	var failures []error
	began := time.Now()
	ends := map[string]int{}
	edits := 0
	for _, s := range c.session {
		for code, n := range s.ends {
			ends[code] += n
		}
		done, err := c.account(ctx, s, wrong)
		edits += done
		failures = append(failures, err)
	}
	forgotten := 0
	for {
		orphans, stuck := errors.Join(c.orphans(ctx), c.unknownProcesses(ctx)), c.stuck(ctx)
		if orphans == nil && stuck == nil {
			break
		}
		if time.Since(began) < orphansGone {
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
			continue
		}
		if n, err := c.endForgotten(ctx); err != nil || n > 0 {
			forgotten += n
			failures = append(failures, err, pause(ctx, time.Second))
			continue
		}
		for kind, err := range map[string]error{"orphans": orphans, "stuck rows": stuck} {
			if err != nil {
				wrong[kind]++
				failures = append(failures, err)
			}
		}
		break
	}
	total := 0
	for _, n := range c.kills {
		total += n
	}
	fmt.Printf("chaos: %d kills: %s\n", total, counted(c.kills))
	fmt.Printf("chaos: messages: %s; %d edits were told as done\n", counted(ends), edits)
	fmt.Printf("chaos: %s; %d containers that dockerd forgot\n", counted(wrong), forgotten)
	for _, n := range wrong {
		if n > 0 {
			failures = append(failures, errors.New("something was orphaned, stuck, done twice or lost"))
			break
		}
	}
	return errors.Join(failures...)
}

// endForgotten ends what is left of containers whose start dockerd did not live to see, and says of how
// many. The first program of runc waits there for that start. Docker 20.10 does not find it again: it
// refuses another start, and forgets the container when it removes it. Whoever has no more than its API
// can do nothing about it, and nothing of a sandbox ever ran there.
func (c *chaos) endForgotten(ctx context.Context) (int, error) {
	all, err := c.strangers(ctx)
	n := 0
	for _, s := range all {
		if s.command == "runc init" && s.state != "running" {
			n++
			err = errors.Join(err, c.daemon.Signal(ctx, "KILL", strconv.Itoa(s.pid)))
		}
	}
	return n, err
}

// account compares a session's log with its work tree, and says how many edits were told as done.
func (c *chaos) account(ctx context.Context, s *chaosSession, wrong map[string]int) (int, error) {
	if err := c.goesOn(ctx, s.id, "log.txt"); err != nil {
		wrong["unusable sessions"]++ // or its log has holes, a message with two ends, a call without one
		return 0, err
	}
	events, err := c.log(ctx, s.id)
	if err != nil {
		wrong["lost events"]++
		return 0, err
	}
	var failures []error
	begun, ended := map[string]int{}, map[string]int{}
	calls, told := map[string]string{}, []string{}
	for _, e := range events {
		var p struct {
			CallID        string `json:"call_id"`
			Tool, Outcome string
		}
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			return 0, err
		}
		key := e.MessageID + " " + p.CallID
		switch e.Type {
		case "message_working":
			begun[e.MessageID]++
		case "message_completed", "message_failed", "message_cancelled":
			ended[e.MessageID]++
		case "agent_tool_call":
			calls[key] = p.Tool
		case "agent_tool_result":
			if p.Tool == "edit" && p.Outcome == "ok" {
				told = append(told, key)
			}
			delete(calls, key)
		}
	}
	for id, n := range begun {
		if n > 1 || ended[id] != 1 {
			wrong["double runs"]++
			failures = append(failures, fmt.Errorf("message %s of session %s began %d times and ended %d times", id, s.id, n, ended[id]))
		}
	}
	if len(calls) > 0 {
		wrong["lost events"]++
		failures = append(failures, fmt.Errorf("session %s: %d calls have no result", s.id, len(calls)))
	}
	ref, err := c.container(ctx, s.id)
	if err != nil {
		return 0, err
	}
	tree, err := c.daemon.Run(ctx, "exec", ref, "cat", "/workspace/repo/log.txt")
	if err != nil {
		return 0, err
	}
	order := c.order(events)
	for _, key := range told {
		m, ok := order[key]
		if !ok || strings.Count(tree, m+"\n") != 1 {
			wrong["lost edits"]++
			failures = append(failures, fmt.Errorf("session %s: the edit %s (%q) is %d times in the work tree", s.id, key, m, strings.Count(tree, m+"\n")))
		}
	}
	for m := range s.messages {
		for e := range chaosEdits {
			if n := strings.Count(tree, marker(m, e)+"\n"); n > 1 {
				wrong["double runs"]++
				failures = append(failures, fmt.Errorf("session %s: %s was inserted %d times", s.id, marker(m, e), n))
			}
		}
	}
	return len(told), errors.Join(failures...)
}

// order gives each edit its marker: a session's messages come one after the other, and so do the edits
// of one.
func (c *chaos) order(events []logEvent) map[string]string {
	markers := map[string]string{}
	message := map[string]int{}
	next := map[string]int{}
	for _, e := range events {
		if e.Type == "message_queued" {
			message[e.MessageID] = len(message) - 1 // the first made the file
		}
		var p struct {
			CallID string `json:"call_id"`
			Tool   string
		}
		if e.Type != "agent_tool_call" || json.Unmarshal(e.Payload, &p) != nil || p.Tool != "edit" {
			continue
		}
		markers[e.MessageID+" "+p.CallID] = marker(message[e.MessageID], next[e.MessageID])
		next[e.MessageID]++
	}
	return markers
}
