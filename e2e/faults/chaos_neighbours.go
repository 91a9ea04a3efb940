package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"agent-sandboxing/agent/modeltest"
)

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
	before, err := c.results(ctx, id)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(c.post(ctx, id, text), c.completed(ctx, id)); err != nil {
		return 0, err
	}
	all, err := c.results(ctx, id)
	if err != nil {
		return 0, err
	}
	var took []float64
	for _, r := range all[len(before):] {
		if r.Tool == "bash" {
			took = append(took, float64(r.Ms))
		}
	}
	if len(took) == 0 {
		return 0, errors.New("no command was run")
	}
	slices.Sort(took)
	return took[(len(took)-1)*95/100], nil
}
