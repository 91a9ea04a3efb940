package turn_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"agent-sandboxing/core"
	"agent-sandboxing/core/live"
	"agent-sandboxing/core/redact"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/core/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a processor on a real database whose agent and workspace are the test's own functions.
type stage struct {
	store *store.Store
	hub   *live.Hub
	stop  func()
}

// run starts a processor; its agent is a function, everything else answers at once.
func run(t *testing.T, s *store.Store, agent agentFunc, boxes *boxes, change ...func(*turn.Options)) stage {
	t.Helper()
	hub := live.NewHub(s)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	worker := storetest.Worker(t, s, "host-1")
	o := turn.Options{
		Store: s, Sandboxes: boxes, Agent: agent, Mirror: mirror{}, Publisher: publisher{}, Signals: hub,
		Redactor: redact.New("planted-secret"), Worker: func() core.Worker { return worker }, Log: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	p := turn.NewProcessor(o)
	var running sync.WaitGroup
	running.Go(func() {
		_ = s.Listen(ctx, store.Handler{
			Session: hub.Wake, Partial: hub.WakePartial, Work: hub.WakeWork, Access: func(core.InstallationID) {},
		})
	})
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	var once sync.Once
	stop := func() { once.Do(func() { cancel(); running.Wait() }) }
	t.Cleanup(stop)
	return stage{store: s, hub: hub, stop: stop}
}

// events follows the session's log until it holds an event of the wanted type, and returns it all.
func (s stage) events(t *testing.T, id core.SessionID, until core.EventType) []core.Event {
	t.Helper()
	return s.eventsUntil(t, id, until, func(e core.Event) bool { return e.Type == until })
}

// eventsUntil is events until one is as wanted.
func (s stage) eventsUntil(t *testing.T, id core.SessionID, what core.EventType, wanted func(core.Event) bool) []core.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found := errors.New("found")
	var all []core.Event
	err := s.hub.Follow(ctx, id, 0, func(b live.Batch) error {
		all = append(all, b.Events...)
		for _, e := range b.Events {
			if wanted(e) {
				return found
			}
		}
		return nil
	})
	if !errors.Is(err, found) {
		t.Fatalf("no %s in the log: %v; it holds %v", what, err, types(all))
	}
	return all
}

func types(events []core.Event) []core.EventType {
	var out []core.EventType
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

func (s stage) message(t *testing.T, session core.SessionID) core.Message {
	t.Helper()
	tl, err := s.store.Timeline(t.Context(), session, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tl.Messages[0]
}

type agentFunc func(ctx context.Context, rec core.TurnRecorder) (core.TurnResult, error)

func (agentFunc) Model() string { return "test-model" }
func (f agentFunc) Run(ctx context.Context, _ core.TurnRequest, _ core.Workspace, _ core.Publisher, rec core.TurnRecorder) (core.TurnResult, error) {
	return f(ctx, rec)
}

func (agentFunc) Compact(ctx context.Context, req core.CompactionRequest, _ core.Workspace, rec core.TurnRecorder) core.Compaction {
	_ = rec.Spent(ctx, core.Usage{PromptTokens: 7})
	return core.Compaction{Summary: req.Previous + string(req.Finish.State) + ";", ByModel: true, Usage: core.Usage{PromptTokens: 7}}
}

// boxes gives every session the same empty workspace, or the error that a test wants.
type boxes struct {
	fail     error
	base     string        // what its sandboxes say that their base is; "" is the session's
	waiting  chan struct{} // when set: closed once Acquire waits for its context
	killed   atomic.Int32
	released atomic.Int32
}

func (b *boxes) Acquire(ctx context.Context, _ core.Claim) (core.PlatformWorkspace, error) {
	if b.waiting != nil {
		close(b.waiting)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if b.fail != nil {
		return nil, b.fail
	}
	return &workspace{boxes: b}, nil
}

func (b *boxes) Release(context.Context, core.Claim, core.PlatformWorkspace) { b.released.Add(1) }

type workspace struct {
	core.PlatformWorkspace
	boxes *boxes
}

func (w *workspace) KillAll(context.Context) (int, error) {
	w.boxes.killed.Add(1)
	return 0, nil
}

func (w *workspace) Checkpoint(_ context.Context, out io.Writer, _ int64) (core.CheckpointInfo, error) {
	n, err := out.Write([]byte("archive"))
	return core.CheckpointInfo{BaseSHA: cmp.Or(w.boxes.base, storetest.BaseSHA), Files: 1, Bytes: int64(n)}, err
}

type mirror struct{}

func (mirror) Capture(context.Context, core.ChatSession, core.PlatformWorkspace) (core.Diff, error) {
	return core.Diff{Files: []core.ChangedFile{{Path: "a.go", Status: "modified", Additions: 2, Deletions: 1}}, Patch: []byte("+planted-secret\n")}, nil
}

func (mirror) ReadBase(context.Context, core.ChatSession, string, int64) ([]byte, error) {
	return nil, nil
}

type publisher struct{}

func (publisher) Publish(context.Context, core.Claim, core.Publication, core.PlatformWorkspace) (core.PublishResult, error) {
	return core.PublishResult{}, nil
}
func (publisher) Fail(context.Context, core.Claim, core.Publication, error) error { return nil }

func TestTurn_CompletesWithDiffCheckpointAnswerAndSummary(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	st := run(t, s, func(ctx context.Context, rec core.TurnRecorder) (core.TurnResult, error) {
		if err := rec.ToolCall(ctx, core.AgentToolCall{CallID: "c1", Tool: "read", Object: "a.go"}); err != nil {
			return core.TurnResult{}, err
		}
		if err := rec.ToolResult(ctx, core.AgentToolResult{CallID: "c1", Tool: "read", Object: "a.go", Outcome: "ok"}, []byte("long planted-secret output")); err != nil {
			return core.TurnResult{}, err
		}
		return core.TurnResult{Answer: "Done.", Model: "test-model", Steps: 2}, nil
	}, &boxes{})
	log := st.events(t, session.ID, "summary_updated")
	want := map[core.EventType]bool{
		"message_preparing": true, "message_working": true, "agent_tool_call": true, "agent_tool_result": true,
		"artifact_created": true, "diff_updated": true, "checkpoint_saved": true, "message_completed": true,
	}
	for i, e := range log {
		delete(want, e.Type)
		if e.Sequence != int64(i+1) {
			t.Errorf("event %d has sequence %d", i+1, e.Sequence)
		}
	}
	if len(want) > 0 {
		t.Errorf("the log lacks %v; it holds %v", want, types(log))
	}
	tl, err := s.Timeline(t.Context(), session.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(tl.Messages) != 2 || tl.Messages[0].State != core.Completed || tl.Messages[1].Text != "Done." {
		t.Errorf("messages: %+v", tl.Messages)
	}
	if tl.Session.Summary != "completed;" || tl.Messages[0].Usage.PromptTokens != 7 {
		t.Errorf("summary = %q, usage %+v", tl.Session.Summary, tl.Messages[0].Usage)
	}
	diff, err := s.Artifact(t.Context(), session.ID, tl.Diff.ID)
	if err != nil || string(diff.Data) != "+[redacted]\n" || diff.Redactions != 1 {
		t.Errorf("diff = %q, %d redactions, %v", diff.Data, diff.Redactions, err)
	}
}

// What the sandbox calls its base is the agent's to change. Such a checkpoint would be of no use.
func TestTurn_SaysThatACheckpointOfAnotherBaseIsNotKept(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	st := run(t, s, func(context.Context, core.TurnRecorder) (core.TurnResult, error) {
		return core.TurnResult{Answer: "Done."}, nil
	}, &boxes{base: strings.Repeat("b", 40)})
	for _, e := range st.events(t, session.ID, "message_completed") {
		if e.Type == "checkpoint_saved" {
			t.Error("the checkpoint was saved")
		}
		var failed core.CaptureFailed
		if e.Type != "capture_failed" {
			continue
		}
		if err := json.Unmarshal(e.Payload, &failed); err != nil || failed.What != "checkpoint" || failed.Code != "checkpoint_failed" {
			t.Errorf("capture_failed %+v, %v", failed, err)
		}
		return
	}
	t.Error("the log has no capture_failed")
}

func TestTurn_ACutOutputIsStillText(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	st := run(t, s, func(ctx context.Context, rec core.TurnRecorder) (core.TurnResult, error) {
		long := "x" + strings.Repeat("é", 1<<20)
		err := rec.ToolResult(ctx, core.AgentToolResult{CallID: "c1", Tool: "bash", Outcome: "ok"}, []byte(long))
		return core.TurnResult{Answer: "Done."}, err
	}, &boxes{})
	for _, e := range st.events(t, session.ID, "agent_tool_result") {
		var result core.AgentToolResult
		if err := json.Unmarshal(e.Payload, &result); err != nil || result.ArtifactID == "" {
			continue
		}
		a, err := s.Artifact(t.Context(), session.ID, result.ArtifactID)
		if err != nil || !a.Truncated || len(a.Data) != 1<<20-1 || !utf8.Valid(a.Data) {
			t.Errorf("artifact of %d bytes, truncated %v, valid %v, %v", len(a.Data), a.Truncated, utf8.Valid(a.Data), err)
		}
		return
	}
	t.Fatal("no result names an artifact")
}

// forgetful is a store whose database is away for the first end of a turn.
type forgetful struct {
	*store.Store
	asked atomic.Int32
}

func (f *forgetful) FinishMessage(ctx context.Context, lease core.Lease, end core.Finish) error {
	if f.asked.Add(1) == 1 {
		return core.Fail(core.Unavailable, "database_unavailable", "Gone for a moment.")
	}
	return f.Store.FinishMessage(ctx, lease, end)
}

func TestTurn_ItsEndOutlivesARestartOfTheDatabase(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	st := run(t, s, func(context.Context, core.TurnRecorder) (core.TurnResult, error) {
		return core.TurnResult{Answer: "Done."}, nil
	}, &boxes{}, func(o *turn.Options) { o.Store = &forgetful{Store: s} })
	st.events(t, session.ID, "message_completed")
}

func TestTurn_CancelKeepsWhatWasDoneAndFreesTheSession(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	working := make(chan struct{})
	var once sync.Once
	b := &boxes{}
	st := run(t, s, func(ctx context.Context, rec core.TurnRecorder) (core.TurnResult, error) {
		rec.Partial("half an answer")
		once.Do(func() { close(working) })
		<-ctx.Done()
		return core.TurnResult{Steps: 1}, context.Cause(ctx)
	}, b)
	<-working
	if _, err := s.RequestCancel(t.Context(), session.ID, "octo-dev"); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	st.events(t, session.ID, "message_cancelled")
	t.Logf("cancelled after %s", time.Since(asked))
	tl, err := s.Timeline(t.Context(), session.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m := tl.Messages[0]; m.State != core.Cancelled || len(tl.Messages) != 2 || tl.Messages[1].Text != "half an answer" || tl.Diff == nil {
		t.Errorf("after cancel: %+v, diff %v", tl.Messages, tl.Diff)
	}
	if b.killed.Load() == 0 {
		t.Error("the turn's processes were not killed")
	}
}

func TestTurn_CancelWhilePreparingEndsTheMessageUnstarted(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	b := &boxes{waiting: make(chan struct{})}
	st := run(t, s, nil, b)
	<-b.waiting
	if _, err := s.RequestCancel(t.Context(), session.ID, "octo-dev"); err != nil {
		t.Fatal(err)
	}
	st.events(t, session.ID, "message_cancelled")
	if m := st.message(t, session.ID); m.State != core.Cancelled || !m.StartedAt.IsZero() {
		t.Errorf("message: %+v", m)
	}
}

func TestTurn_FailureHasItsCodeAndTheNextMessageRuns(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s).ID
	session := storetest.Session(t, s, owner)
	var calls atomic.Int32
	st := run(t, s, func(context.Context, core.TurnRecorder) (core.TurnResult, error) {
		if calls.Add(1) == 1 {
			return core.TurnResult{}, core.Fail(core.Unavailable, core.CodeModelRateLimited, "The model is busy.")
		}
		return core.TurnResult{Answer: "Now it worked."}, nil
	}, &boxes{})
	st.events(t, session.ID, "message_failed")
	if m := st.message(t, session.ID); m.FailureCode != core.CodeModelRateLimited || m.FailureText != "The model is busy." {
		t.Errorf("failure: %q %q", m.FailureCode, m.FailureText)
	}
	if _, err := s.PostMessage(t.Context(), core.NewMessage{SessionID: session.ID, OwnerID: owner, Text: "again", ClientKey: "k2"}); err != nil {
		t.Fatal(err)
	}
	st.events(t, session.ID, "message_completed")
}

func TestTurn_SandboxFailureEndsTheQueuedMessage(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	st := run(t, s, nil, &boxes{fail: core.Fail(core.Unavailable, "runtime_unavailable", "Docker does not answer.")})
	st.events(t, session.ID, "message_failed")
	if m := st.message(t, session.ID); m.FailureCode != "runtime_unavailable" || !m.StartedAt.IsZero() {
		t.Errorf("message: %+v", m)
	}
}

func TestTurn_WaitsWhileNoSandboxCanRun(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	var answers atomic.Bool
	var looks atomic.Int32
	asked := make(chan struct{}, 100)
	st := run(t, s, func(context.Context, core.TurnRecorder) (core.TurnResult, error) {
		return core.TurnResult{Answer: "Done."}, nil
	}, &boxes{}, func(o *turn.Options) {
		o.Ready = func() bool {
			select {
			case asked <- struct{}{}:
			default:
			}
			return looks.Add(1) == 1 || answers.Load() // it goes away between the first look and the claim
		}
	})
	for range 4 {
		<-asked
	}
	if m := st.message(t, session.ID); m.State != core.Queued {
		t.Errorf("while nothing can run the message is %s", m.State)
	}
	answers.Store(true)
	st.events(t, session.ID, "message_completed")
}

func TestTurn_ShutdownEndsTheWorkingTurnAndKeepsItsWork(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	working := make(chan struct{})
	st := run(t, s, func(ctx context.Context, _ core.TurnRecorder) (core.TurnResult, error) {
		close(working)
		<-ctx.Done()
		return core.TurnResult{}, context.Cause(ctx)
	}, &boxes{})
	<-working
	st.stop()
	if m := st.message(t, session.ID); m.State != core.Failed || m.FailureCode != "worker_stopped" {
		t.Errorf("message after shutdown: %s %s", m.State, m.FailureCode)
	}
}

func TestTurn_ShutdownWhilePreparingLeavesTheMessageQueued(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	b := &boxes{waiting: make(chan struct{})}
	st := run(t, s, nil, b)
	<-b.waiting
	st.stop()
	if m := st.message(t, session.ID); m.State != core.Queued {
		t.Errorf("message after shutdown: %s", m.State)
	}
}

// merging is a publisher that brings what others pushed into the workspace, and fails after that.
type merging struct {
	publisher
	store *store.Store
	fail  error
}

func (m merging) Publish(ctx context.Context, claim core.Claim, p core.Publication, _ core.PlatformWorkspace) (core.PublishResult, error) {
	p.Step = core.PublishFailed
	return core.PublishResult{Merged: 1}, errors.Join(m.fail, m.store.SavePublication(ctx, claim.Lease, p))
}

func TestPublish_TheDiffShowsWhatOthersPushed(t *testing.T) {
	t.Parallel()
	for _, fail := range []error{nil, core.Fail(core.Unavailable, "github_unavailable", "GitHub does not answer.")} {
		s := storetest.New(t)
		owner := storetest.User(t, s).ID
		session := storetest.Session(t, s, owner)
		if _, err := s.RequestPublish(t.Context(), core.Publication{SessionID: session.ID, RequestedBy: owner, ClientKey: "k1", Title: "T"}, nil); err != nil {
			t.Fatal(err)
		}
		st := run(t, s, func(ctx context.Context, _ core.TurnRecorder) (core.TurnResult, error) {
			return core.TurnResult{}, errors.New("no turn is wanted")
		}, &boxes{}, func(o *turn.Options) { o.Publisher = merging{store: s, fail: fail} })
		diff := slices.IndexFunc(st.events(t, session.ID, "diff_updated"), func(e core.Event) bool { return e.Type == "diff_updated" && e.MessageID == "" })
		if diff < 0 {
			t.Error("the diff is not the publish's")
		}
	}
}
