package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/agent/modeltest"
)

// The size of a chaos run. Workers take turns at once; a turn has some seconds, so that a kill meets many.
const (
	chaosSessions = 6
	chaosEdits    = 6 // of one message
	orphansGone   = 30 * time.Second
)

var chaosWorkers = []string{"worker", "worker-2"}

// mayFail are the codes with which a turn may end when something under it was killed.
var mayFail = []string{"sandbox_lost", "worker_lost", "runtime_unavailable", "runtime_failed", "preparation_interrupted"}

// chaos kills what turns run on, at random, while people work in several sessions.
type chaos struct {
	*bench
	session []*chaosSession

	mu    sync.Mutex
	kills map[string]int
}

// chaosSession is one session whose messages insert markers into one file, each marker once.
type chaosSession struct {
	id       string
	messages int
	ends     map[string]int // by code, "" for a good one
}

// runChaos kills so often in so long, and then demands that nothing is orphaned, stuck, done twice or lost.
func runChaos(ctx context.Context, limit int, long time.Duration) (err error) {
	b, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = b.end(ctx, err) }()
	b.patience, b.look = 10*time.Minute, time.Second
	b.env["SANDBOX_MAX_RUNNING"] = "8"
	c := &chaos{bench: b, kills: map[string]int{}}
	if err := c.begin(ctx); err != nil {
		return err
	}
	base, err := c.measure(ctx)
	if err != nil {
		return err
	}
	if err := c.pool(ctx, "2"); err != nil {
		return err
	}
	if err := c.storm(ctx, limit, long); err != nil {
		return err
	}
	return errors.Join(c.calm(ctx), c.neighbours(ctx), c.baseline(ctx, base))
}

// begin makes the sessions with their file and starts the second worker.
func (c *chaos) begin(ctx context.Context) error {
	if err := c.pool(ctx, "0"); err != nil {
		return err
	}
	for range chaosSessions {
		id, err := c.perform(ctx, "mdlinks", performance{Answer: "Ready.", Calls: []modeltest.Call{
			modeltest.CallJSON("write", map[string]any{"path": "log.txt", "content": "END\n"}),
		}})
		if err != nil {
			return fmt.Errorf("begin a session: %w", err)
		}
		c.session = append(c.session, &chaosSession{id: id, ends: map[string]int{}})
	}
	return nil
}

// pool starts both workers anew with so many sandboxes ahead.
func (c *chaos) pool(ctx context.Context, warm string) error {
	c.env["SANDBOX_WARM"] = warm
	for _, name := range chaosWorkers {
		if err := errors.Join(c.signal(ctx, name, syscall.SIGTERM), c.startAs(name, "worker", nil)); err != nil {
			return err
		}
	}
	return nil
}

// storm lets people work and things die.
func (c *chaos) storm(ctx context.Context, limit int, long time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	var working sync.WaitGroup
	for _, s := range c.session {
		working.Go(func() {
			if err := c.work(ctx, s, over); err != nil {
				cancel(err)
			}
		})
	}
	err := c.killAll(ctx, limit, long)
	close(over)
	if err != nil {
		cancel(err)
	}
	working.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return nil
}

// work sends one message after the other until the storm is over, and the last one has ended.
func (c *chaos) work(ctx context.Context, s *chaosSession, over <-chan struct{}) error {
	for {
		text, err := markers(s.messages).message()
		if err != nil {
			return err
		}
		if err := c.post(ctx, s.id, text); err != nil {
			return fmt.Errorf("post: %w", err)
		}
		s.messages++
		state, err := c.ended(ctx, s.id)
		if err != nil {
			return err
		}
		code, said, end := state.last()
		if end == "cancelled" || end == "failed" && !slices.Contains(mayFail, code) {
			return fmt.Errorf("session %s: a message is %s with %s: %s", s.id, end, code, said)
		}
		s.ends[code]++
		select {
		case <-over:
			return nil
		default:
		}
	}
}

// markers are the edits of one message, a pause between them.
func markers(message int) performance {
	p := performance{Answer: "Done."}
	for i := range chaosEdits {
		p.Calls = append(p.Calls,
			modeltest.CallJSON("edit", map[string]any{"path": "log.txt", "edits": []any{map[string]any{"oldText": "END", "newText": marker(message, i) + "\nEND"}}}),
			modeltest.CallJSON("bash", map[string]any{"command": fmt.Sprintf("sleep 0.3%d", i)})) // twice the same would look like a loop
	}
	return p
}

func marker(message, edit int) string { return fmt.Sprintf("m%d.e%d;", message, edit) }

// killAll kills so many things, spread over the time, or faster than that allows when a busy host lags
// behind. Dockerd has a killer of its own: while it comes back, workers go on dying.
func (c *chaos) killAll(ctx context.Context, limit int, long time.Duration) error {
	end := time.Now().Add(long)
	daemons := limit * 2 / 9
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.killSome(ctx, daemons, end, "dockerd") })
	group.Go(func() error {
		return c.killSome(ctx, limit-daemons, end, "worker", "worker", "container", "container", "container removed", "shim", "shim")
	})
	return group.Wait()
}

// killSome kills so many of some things, each as often as it is named. What is not there is waited for.
func (c *chaos) killSome(ctx context.Context, limit int, end time.Time, things ...string) error {
	targets := map[string]func(context.Context) error{
		"worker": c.killWorker, "container": c.killContainer, "container removed": c.removeVictim,
		"shim": c.killShim, "dockerd": c.killDaemon,
	}
	for n := range limit {
		space := max(0, time.Until(end)) / time.Duration(limit-n)
		if err := pause(ctx, rand.N(2*space+1)); err != nil {
			return err
		}
		what := things[rand.IntN(len(things))]
		err := targets[what](ctx)
		for errors.Is(err, errNothing) {
			if err = pause(ctx, 100*time.Millisecond); err == nil {
				err = targets[what](ctx)
			}
		}
		if err != nil {
			return fmt.Errorf("kill a %s: %w", what, err)
		}
		c.count(what)
	}
	return nil
}

// count notes a kill and tells of each twentieth.
func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kills[what]++
	total := 0
	for _, n := range c.kills {
		total += n
	}
	if total%20 == 0 {
		fmt.Printf("chaos: %d kills: %s\n", total, counted(c.kills))
	}
}

// errNothing says that there was nothing to kill.
var errNothing = errors.New("nothing there")

func (c *chaos) killWorker(ctx context.Context) error {
	name := chaosWorkers[rand.IntN(len(chaosWorkers))]
	return errors.Join(c.signal(ctx, name, syscall.SIGKILL), c.startAs(name, "worker", nil))
}

// victim is a running container.
func (c *chaos) victim(ctx context.Context) (string, error) {
	refs, err := c.host(ctx, "ps", "-q", "--no-trunc", "--filter", "label=agent-sandboxing.sandbox")
	if err != nil || len(refs) == 0 {
		return "", errNothing // dockerd may be away
	}
	return refs[rand.IntN(len(refs))], nil
}

// killContainer kills PID 1 behind the daemon's back.
func (c *chaos) killContainer(ctx context.Context) error {
	ref, err := c.victim(ctx)
	if err != nil {
		return err
	}
	pid, err := c.host(ctx, "inspect", "--format", "{{.State.Pid}}", ref)
	if err != nil || len(pid) != 1 || pid[0] == "0" {
		return errNothing // it has ended meanwhile
	}
	if c.daemon.Signal(ctx, "KILL", pid[0]) != nil {
		return errNothing
	}
	return nil
}

func (c *chaos) removeVictim(ctx context.Context) error {
	ref, err := c.victim(ctx)
	if err != nil {
		return err
	}
	if _, err := c.host(ctx, "rm", "-f", ref); err != nil {
		return errNothing // the product removes it at the same moment
	}
	return nil
}

func (c *chaos) killShim(ctx context.Context) error {
	ref, err := c.victim(ctx)
	if err != nil {
		return err
	}
	pid, err := c.daemon.Shim(ref)
	if err != nil || c.daemon.Signal(ctx, "KILL", fmt.Sprint(pid)) != nil {
		return errNothing
	}
	return nil
}

// killDaemon kills dockerd and starts it again after up to two seconds.
func (c *chaos) killDaemon(ctx context.Context) error {
	if err := errors.Join(c.daemon.Kill(ctx), pause(ctx, rand.N(2*time.Second))); err != nil {
		return err
	}
	return c.daemon.Start(ctx)
}

// counted is a map of counts as one line.
func counted(m map[string]int) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		name := k
		if name == "" {
			name = "completed"
		}
		words = append(words, fmt.Sprintf("%s %d", name, m[k]))
	}
	return strings.Join(words, ", ")
}
