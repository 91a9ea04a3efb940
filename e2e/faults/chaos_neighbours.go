package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"agent-sandboxing/agent/modeltest"
)

const (
	neighbourCommands = 180
	abuseBegins       = 3 * time.Second // until all of it is at it
)

// abuse is a fork bomb, a memory hog, a disk that is filled and a flood of output. None is ended by the
// sandbox's limits, so that it lasts until it is cancelled.
const abuse = `import os, time
end = time.time() + 600
def begin(do):
    if os.fork() == 0:
        while time.time() < end: do()
        os._exit(0)
def hog():
    for i in range(40): held.append(bytearray(1 << 20))
    held.clear()
def fill():
    with open('/tmp/fill', 'wb') as f:
        for i in range(500): f.write(b'x' * 65536)
def bomb():
    try: os.fork()
    except OSError: pass
held = []
begin(hog)
begin(fill)
begin(bomb)
while time.time() < end: os.write(1, b'y' * 65536)
`

// neighbours measures commands of one session while another one does its worst, and before and after
// that alone: the machine may have other work.
func (c *chaos) neighbours(ctx context.Context) error {
	victim, abuser := c.session[0].id, c.session[1].id
	if _, err := c.latency(ctx, victim); err != nil { // it may have to be made anew first
		return err
	}
	alone, err := c.latency(ctx, victim)
	if err != nil {
		return err
	}
	text, err := performance{Answer: "Done.", Calls: []modeltest.Call{
		modeltest.CallJSON("write", map[string]any{"path": "abuse.py", "content": abuse}),
		modeltest.CallJSON("bash", map[string]any{"command": "python3 abuse.py", "timeout": 600}),
	}}.message()
	if err != nil {
		return err
	}
	if err := errors.Join(c.post(ctx, abuser, text), c.waiting(ctx, abuser), pause(ctx, abuseBegins)); err != nil {
		return err
	}
	abused, err := c.latency(ctx, victim)
	if err != nil {
		return err
	}
	if err := c.cancel(ctx, abuser); err != nil {
		return fmt.Errorf("the abuse ended before it was measured: %w", err)
	}
	if _, err := c.ended(ctx, abuser); err != nil {
		return err
	}
	after, err := c.latency(ctx, victim)
	if err != nil {
		return err
	}
	alone = slices.Sorted(slices.Values(append(alone, after...)))
	fmt.Printf("chaos: a neighbour's command: p50 %.1f ms and p95 %.1f ms alone, %.1f and %.1f ms beside a fork bomb, a memory hog, a full disk and a flood: %.1f x and %.1f x\n",
		milliseconds(alone, 50), milliseconds(alone, 95), milliseconds(abused, 50), milliseconds(abused, 95),
		milliseconds(abused, 50)/milliseconds(alone, 50), milliseconds(abused, 95)/milliseconds(alone, 95))
	return c.goesOn(ctx, abuser)
}

// milliseconds is a percentile of what is sorted.
func milliseconds(sorted []time.Duration, percent int) float64 {
	return sorted[(len(sorted)-1)*percent/100].Seconds() * 1000
}

// latency is how long commands take that do next to nothing, from the record of each's begin to that of
// its end, sorted.
func (c *chaos) latency(ctx context.Context, id string) ([]time.Duration, error) {
	p := performance{Answer: "Done."}
	for i := range neighbourCommands {
		p.Calls = append(p.Calls, bash(fmt.Sprintf("echo %d", i)))
	}
	text, err := p.message()
	if err != nil {
		return nil, err
	}
	before, err := c.log(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.post(ctx, id, text), c.completed(ctx, id)); err != nil {
		return nil, err
	}
	events, err := c.log(ctx, id)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	began := map[string]time.Time{}
	for _, e := range events[len(before):] {
		var call struct {
			CallID string `json:"call_id"`
		}
		if err := json.Unmarshal(e.Payload, &call); err != nil {
			return nil, err
		}
		switch e.Type {
		case "agent_tool_call":
			began[call.CallID] = e.CreatedAt
		case "agent_tool_result":
			took = append(took, e.CreatedAt.Sub(began[call.CallID]))
		}
	}
	if len(took) != neighbourCommands {
		return nil, fmt.Errorf("%d of %d commands were run", len(took), neighbourCommands)
	}
	slices.Sort(took)
	return took, nil
}
