package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/agent/openai"
	"agent-sandboxing/agent/tools"
	"agent-sandboxing/core"
	"agent-sandboxing/core/live"
	"agent-sandboxing/core/redact"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/core/turn"
	"agent-sandboxing/sandbox/memory"
)

// killSteps is how many requests the killed turn would take: a call each, and the answer.
const killSteps = 60

// longTurn is a model whose first turn calls a tool in every step but the last, and whose next one
// looks once and answers. It keeps the first request of that turn.
type longTurn struct {
	onStep func(step int)
	next   atomic.Pointer[modeltest.Request]
}

func (*longTurn) Name() string { return "long-turn" }

func (l *longTurn) Reply(req modeltest.Request) modeltest.Reply {
	if len(req.Tools) == 0 {
		return modeltest.Reply{Text: "no outline"}
	}
	step := 1
	for _, m := range req.Messages {
		if m.Role == "tool" {
			step++
		}
	}
	if strings.Contains(req.Messages[1].Content, "\nAnd what now?\n</section") {
		if step == 1 {
			l.next.Store(&req)
			return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallJSON("read", map[string]any{"path": "done.txt"})}}
		}
		return modeltest.Reply{Text: "It goes on."}
	}
	l.onStep(step)
	if step == killSteps {
		return modeltest.Reply{Text: "All done."}
	}
	return modeltest.Reply{Text: fmt.Sprintf("Step %d.", step), Calls: []modeltest.Call{stepCall(step)}}
}

// stepCall changes the work tree, so that what was done before the end can be told from it.
func stepCall(step int) modeltest.Call {
	if step == 1 {
		return modeltest.CallJSON("write", map[string]any{"path": "done.txt", "content": "0\n"})
	}
	return modeltest.CallJSON("edit", map[string]any{"path": "done.txt", "edits": []any{map[string]any{
		"oldText": fmt.Sprintf("%d\n", (step-2)*10), "newText": fmt.Sprintf("%d\n", (step-1)*10),
	}}})
}

// dying is the store of a process that is gone after a number of calls: it writes nothing any more.
type dying struct {
	*store.Store
	calls atomic.Int32
	last  int32
}

func (d *dying) dead() bool { return d.calls.Load() >= d.last }

func (d *dying) Append(ctx context.Context, lease core.Lease, by core.Producer, id core.MessageID, events ...core.Payload) error {
	if d.dead() {
		return core.ErrLeaseLost
	}
	if err := d.Store.Append(ctx, lease, by, id, events...); err != nil {
		return err
	}
	if _, isCall := events[0].(core.AgentToolCall); isCall && d.calls.Add(1) >= d.last {
		return core.ErrLeaseLost
	}
	return nil
}

func (d *dying) FinishMessage(ctx context.Context, lease core.Lease, f core.Finish) error {
	if d.dead() || d.last == killSteps {
		return core.ErrLeaseLost
	}
	return d.Store.FinishMessage(ctx, lease, f)
}

func (d *dying) Release(ctx context.Context, lease core.Lease) error {
	if d.dead() || d.last == killSteps {
		return core.ErrLeaseLost
	}
	return d.Store.Release(ctx, lease)
}

// folder gives a session a workspace in memory, over a folder that outlives the worker.
type folder struct {
	dir      string
	released chan struct{}
}

func (f folder) Acquire(context.Context, core.Claim) (core.PlatformWorkspace, error) {
	ws, err := memory.New(f.dir)
	if err != nil {
		return nil, err
	}
	return plainWorkspace{ws}, nil
}

func (f folder) Release(_ context.Context, _ core.Claim, ws core.PlatformWorkspace) {
	_ = ws.(plainWorkspace).Close()
	close(f.released)
}

// plainWorkspace has no git: the mirror of these tests does not ask for it.
type plainWorkspace struct{ *memory.Workspace }

func (plainWorkspace) Checkpoint(context.Context, io.Writer, int64) (core.CheckpointInfo, error) {
	return core.CheckpointInfo{BaseSHA: storetest.BaseSHA}, nil
}

// serveOne runs a worker until it has given its one session back.
func serveOne(t *testing.T, s turn.Store, real *store.Store, a *agent.Agent, dir string) {
	t.Helper()
	box := folder{dir: dir, released: make(chan struct{})}
	worker := storetest.Worker(t, real, "host-1")
	p := turn.NewProcessor(turn.Options{
		Store: s, Sandboxes: box, Agent: a, Mirror: mirror{}, Publisher: publisher{}, Signals: live.NewHub(real),
		Redactor: redact.New("planted-secret"), Worker: func() core.Worker { return worker }, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	select {
	case <-box.released:
	case <-ctx.Done():
		t.Error("the turn did not end")
	}
	cancel()
	running.Wait()
}

// A worker that dies, or loses its lease, at any step of a long turn leaves a session in which the
// next message works: its context is valid and knows of every call how it ended.
func TestTurn_KilledAtEveryStepTheNextMessageWorks(t *testing.T) {
	t.Parallel()
	const groups = 4
	for group := range groups {
		t.Run(fmt.Sprint("group ", group), func(t *testing.T) {
			t.Parallel()
			k := newKiller(t)
			for step := 1 + group; step <= killSteps; step += groups {
				k.kill(t, step, "process death")
				k.kill(t, step, "lease lost")
			}
		})
	}
}

type killer struct {
	store *store.Store
	owner core.UserID
	model *longTurn
	agent *agent.Agent
}

func newKiller(t *testing.T) *killer {
	t.Helper()
	s := storetest.New(t)
	k := &killer{store: s, owner: storetest.User(t, s).ID, model: &longTurn{}}
	web := httptest.NewServer(modeltest.NewServer(k.model, 0))
	t.Cleanup(web.Close)
	client := openai.New(openai.Options{BaseURL: web.URL + "/v1", Key: "k", Model: "long-turn", RetryWait: time.Millisecond})
	t.Cleanup(client.Close)
	var err error
	if k.agent, err = agent.New(agent.Options{Model: client, Tools: tools.Options{}.New, Redactor: redact.New("planted-secret")}); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *killer) kill(t *testing.T, step int, how string) {
	t.Helper()
	name := fmt.Sprintf("%s at step %d", how, step)
	session := storetest.Session(t, k.store, k.owner)
	dir := t.TempDir()
	done := step - 1 // calls whose result is known
	first := turn.Store(k.store)
	k.model.onStep = func(int) {}
	if how == "process death" {
		first = &dying{Store: k.store, last: int32(step)}
	} else {
		k.model.onStep = func(now int) {
			if now == step {
				storetest.Expire(t, k.store, session.ID)
				if _, err := k.store.Reap(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	}
	serveOne(t, first, k.store, k.agent, dir)
	if how == "process death" {
		storetest.Expire(t, k.store, session.ID)
		if _, err := k.store.Reap(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.store.PostMessage(t.Context(), core.NewMessage{SessionID: session.ID, OwnerID: k.owner, Text: "And what now?", ClientKey: "next"}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	k.model.next.Store(nil)
	serveOne(t, k.store, k.store, k.agent, dir)

	tl, err := k.store.Timeline(t.Context(), session.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]core.MessageState{}
	for _, m := range tl.Messages {
		states[m.Text] = m.State
		if m.Text == "Add a health check" && m.FailureCode != "worker_lost" {
			t.Errorf("%s: the killed message has %s %q", name, m.State, m.FailureCode)
		}
	}
	if states["And what now?"] != core.Completed || states["It goes on."] != core.Completed {
		t.Errorf("%s: the next message did not work: %v", name, states)
	}
	text, err := os.ReadFile(filepath.Join(dir, "workspace", "repo", "done.txt"))
	if want := fmt.Sprintf("%d\n", max(0, done-1)*10); done > 0 && (err != nil || string(text) != want) {
		t.Errorf("%s: the work tree has %q, want %q", name, text, want)
	}
	k.checkCalls(t, name, tl)
	k.checkContext(t, name, done)
}

// checkCalls wants one result for every call.
func (k *killer) checkCalls(t *testing.T, name string, tl core.Timeline) {
	t.Helper()
	ends := map[string]int{}
	for _, e := range tl.Events {
		var p core.AgentToolResult
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			t.Fatal(err)
		}
		key := string(e.MessageID) + p.CallID
		if e.Type == "agent_tool_call" {
			ends[key]--
		}
		if e.Type == "agent_tool_result" {
			ends[key]++
		}
	}
	for call, n := range ends {
		if n != 0 {
			t.Errorf("%s: call %s has %d results too many", name, call, n)
		}
	}
}

// checkContext looks at what the next turn's model was told first.
func (k *killer) checkContext(t *testing.T, name string, done int) {
	t.Helper()
	req := k.model.next.Load()
	if req == nil {
		t.Errorf("%s: no next request", name)
		return
	}
	roles := make([]string, len(req.Messages))
	for i, m := range req.Messages {
		roles[i] = m.Role
	}
	if !slices.Equal(roles, []string{"system", "user"}) {
		t.Errorf("%s: the next turn began with %v", name, roles)
	}
	text := req.Messages[1].Content
	if !strings.Contains(text, "user:\n> Add a health check") {
		t.Errorf("%s: the killed request is not in the conversation", name)
	}
	if n := strings.Count(text, "- Asked: Add a health check — failed: worker_lost"); n != 1 {
		t.Errorf("%s: the summary tells %d times how the killed turn ended", name, n)
	}
	if got, want := strings.Count(text, "done.txt ok"), min(30, done); got != want && got != want-1 { // -1: the interrupted call takes a line
		t.Errorf("%s: %d of %d known calls are told", name, got, want)
	}
}
