package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/e2e/person"
)

// logEvent is one entry of a session's log.
type logEvent struct {
	Sequence  int64
	Type      string
	MessageID string `json:"message_id"`
	Payload   json.RawMessage
}

// log is a session's whole log, which must have no holes.
func (b *bench) log(ctx context.Context, id string) ([]logEvent, error) {
	var all []logEvent
	for {
		var page struct{ Events []logEvent }
		if err := b.owner.Ask(ctx, http.MethodGet, fmt.Sprintf("/chat-sessions/%s/events?limit=1000&after=%d", id, len(all)), "", nil, &page); err != nil {
			return nil, err
		}
		if len(page.Events) == 0 {
			return all, nil
		}
		for _, e := range page.Events {
			if e.Sequence != int64(len(all)+1) {
				return nil, fmt.Errorf("session %s: after event %d comes %d", id, len(all), e.Sequence)
			}
			all = append(all, e)
		}
	}
}

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
	ctx, cancel := context.WithTimeout(ctx, max(0, orphansGone-time.Since(began))+10*time.Second)
	defer cancel()
	for {
		err := errors.Join(c.compare(ctx), c.unknownProcesses(ctx))
		if err == nil {
			break
		}
		if time.Since(began) > orphansGone {
			wrong["orphans"]++
			failures = append(failures, err)
			break
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	total := 0
	for _, n := range c.kills {
		total += n
	}
	fmt.Printf("chaos: %d kills: %s\n", total, counted(c.kills))
	fmt.Printf("chaos: messages: %s; %d edits were told as done\n", counted(ends), edits)
	fmt.Printf("chaos: %s\n", counted(wrong))
	for _, n := range wrong {
		if n > 0 {
			failures = append(failures, errors.New("something was orphaned, stuck, done twice or lost"))
			break
		}
	}
	return errors.Join(failures...)
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

// neighbours measures commands of one session alone, and while another one does its worst.
func (c *chaos) neighbours(ctx context.Context) error {
	alone, err := c.latency(ctx, c.session[0].id)
	if err != nil {
		return err
	}
	const abuse = `import os, time
end = time.time() + 25
if os.fork() == 0:
    while time.time() < end:
        try: os.fork()
        except OSError: pass
if os.fork() == 0:
    hog = []
    while time.time() < end: hog.append(bytearray(1 << 20))
if os.fork() == 0:
    f = open('/tmp/fill', 'wb')
    while time.time() < end: f.write(b'x' * 65536)
while time.time() < end: os.write(1, b'y' * 65536)
`
	text, err := performance{Answer: "Done.", Calls: []modeltest.Call{
		modeltest.CallJSON("write", map[string]any{"path": "abuse.py", "content": abuse}),
		modeltest.CallJSON("bash", map[string]any{"command": "python3 abuse.py", "timeout": 30}),
	}}.message()
	if err != nil {
		return err
	}
	if err := errors.Join(c.post(ctx, c.session[1].id, text), c.waiting(ctx, c.session[1].id)); err != nil {
		return err
	}
	abused, err := c.latency(ctx, c.session[0].id)
	if err != nil {
		return err
	}
	if _, err := c.ended(ctx, c.session[1].id); err != nil {
		return err
	}
	fmt.Printf("chaos: a neighbour's command: p95 alone %.0f ms, beside a fork bomb, a memory hog, a full disk and a flood %.0f ms: %.1f x\n",
		alone, abused, abused/math.Max(alone, 1))
	return c.goesOn(ctx, c.session[1].id)
}

// latency is the 95th percentile of 36 commands that do next to nothing. Milliseconds.
func (c *chaos) latency(ctx context.Context, id string) (float64, error) {
	p := performance{Answer: "Done."}
	for i := range 36 {
		p.Calls = append(p.Calls, bash(fmt.Sprintf("echo %d", i)))
	}
	text, err := p.message()
	if err != nil {
		return 0, err
	}
	before, err := c.log(ctx, id)
	if err != nil {
		return 0, err
	}
	if err := c.post(ctx, id, text); err != nil {
		return 0, err
	}
	if _, err := c.ended(ctx, id); err != nil {
		return 0, err
	}
	events, err := c.log(ctx, id)
	if err != nil {
		return 0, err
	}
	var took []float64
	for _, e := range events[len(before):] {
		var r toolResult
		if e.Type == "agent_tool_result" && json.Unmarshal(e.Payload, &r) == nil && r.Tool == "bash" {
			took = append(took, float64(r.Ms))
		}
	}
	if len(took) == 0 {
		return 0, errors.New("no command was run")
	}
	slices.Sort(took)
	return took[(len(took)-1)*95/100], nil
}

// held is what a run may hold on to. The first and the last are the workers' own.
type held struct {
	files, goroutines, containers, volumes, mounts int
}

// measure stops every sandbox and then counts. The workers that were looked at are new afterwards:
// that a Go program tells its goroutines ends it.
func (c *chaos) measure(ctx context.Context) (held, error) {
	for _, s := range c.session {
		var answer any
		err := c.owner.Ask(ctx, http.MethodPost, "/chat-sessions/"+s.id+"/stop", "", nil, &answer)
		if r, ok := errors.AsType[*person.Refusal](err); err != nil && (!ok || r.Code != "nothing_to_stop") {
			return held{}, err
		}
	}
	var h held
	err := c.eventually(ctx, "every sandbox is stopped", func() bool { return len(c.daemon.Processes()) == 0 })
	if err != nil {
		return h, err
	}
	for _, kind := range []struct {
		count *int
		args  []string
	}{{&h.containers, []string{"ps", "-aq"}}, {&h.volumes, []string{"volume", "ls", "-q"}}} {
		words, err := c.host(ctx, kind.args...)
		if err != nil {
			return h, err
		}
		*kind.count = len(words)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return h, err
	}
	h.mounts = strings.Count(string(mounts), filepath.Dir(c.daemon.Socket())+"/")
	for _, name := range chaosWorkers {
		pid := c.running[name].cmd.Process.Pid
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			return h, err
		}
		h.files += len(files)
		told, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
		if err != nil {
			return h, err
		}
		if err := errors.Join(c.signal(ctx, name, syscall.SIGQUIT), c.startAs(name, "worker", nil)); err != nil {
			return h, err
		}
		after, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
		if err != nil {
			return h, err
		}
		h.goroutines += strings.Count(string(after[len(told):]), "\ngoroutine ")
	}
	return h, nil
}

// baseline compares what is held after everything with what was held before it.
func (c *chaos) baseline(ctx context.Context, before held) error {
	if err := c.pool(ctx, "0"); err != nil {
		return err
	}
	var working sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	for _, s := range c.session { // workers that have done as much as those before
		working.Go(func() {
			err := c.post(ctx, s.id, "file last.txt")
			if err == nil {
				_, err = c.ended(ctx, s.id)
			}
			mu.Lock()
			failures = append(failures, err)
			mu.Unlock()
		})
	}
	working.Wait()
	// What a crash left of a helper belongs to nobody for two minutes before it is removed.
	tidied := c.eventually(ctx, "the host was tidied up", func() bool {
		left, err := c.host(ctx, "ps", "-aq")
		return err == nil && len(left) <= before.containers
	})
	if tidied != nil {
		list, err := c.daemon.Run(ctx, "ps", "-a", "--no-trunc", "--format", `{{.Names}} {{.Status}} {{.Label "agent-sandboxing.purpose"}} {{.Label "agent-sandboxing.generation"}}`)
		fmt.Println(list)
		failures = append(failures, tidied, err)
	}
	after, err := c.measure(ctx)
	if err := errors.Join(append(failures, err)...); err != nil {
		return err
	}
	fmt.Printf("chaos: before %+v, after %+v\n", before, after)
	if after.containers > before.containers || after.volumes > before.volumes || after.mounts > before.mounts {
		return errors.New("containers, volumes or mounts have leaked")
	}
	if slack := 10; after.files > before.files+slack || after.goroutines > before.goroutines+slack { // idle connections come and go
		return errors.New("files or goroutines of the workers have leaked")
	}
	return nil
}
