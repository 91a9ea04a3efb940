package handlers

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/components"
)

// story builds a timeline event by event.
type story struct {
	t    *testing.T
	line core.Timeline
}

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func newStory(t *testing.T) *story {
	s := &story{t: t}
	s.line.Session = core.ChatSession{
		ID: "01a2278e-0000-7000-8000-00000000000a", OwnerID: "u", Title: "A change", BaseBranch: "main",
		Repository: core.Repository{ID: 2, InstallationID: 1, Owner: "octo-org", Name: "web-app"},
	}
	s.line.Owner = core.User{ID: "u", Login: "octo-owner", GitHubID: 7}
	return s
}

// say adds a person's message in a state.
func (s *story) say(id core.MessageID, state core.MessageState) *core.Message {
	m := core.Message{ID: id, Role: core.RoleUser, Text: "Do " + string(id), State: state, CreatedAt: start}
	if state == core.Working || state == core.Completed {
		m.StartedAt = start
	}
	if state.Terminal() {
		m.FinishedAt = start.Add(72 * time.Second)
	}
	s.line.Messages = append(s.line.Messages, m)
	return &s.line.Messages[len(s.line.Messages)-1]
}

func (s *story) event(message core.MessageID, payloads ...core.Payload) *story {
	s.t.Helper()
	for _, p := range payloads {
		data, err := json.Marshal(p)
		if err != nil {
			s.t.Fatal(err)
		}
		n := int64(len(s.line.Events) + 1)
		s.line.Events = append(s.line.Events, core.Event{
			Sequence: n, Type: p.EventType(), MessageID: message, Payload: data, CreatedAt: start.Add(time.Duration(n) * time.Second),
		})
		s.line.Session.LastSequence = n
	}
	return s
}

func (s *story) view() sessionView {
	v := chat.View{Timeline: s.line, Rights: chat.Rights{Owner: true, Push: true}}
	return newSessionView(v, chat.Platform{Workers: 1, Model: "m", MaxSteps: 240}, Site{GitHubURL: "https://github.com"}, start.Add(time.Hour))
}

// rows says what a turn's items are, in a line each.
func rows(p components.TurnProps) (out []string) {
	for _, it := range p.Items {
		switch {
		case it.Tool != nil:
			out = append(out, strings.TrimSpace(it.Tool.Tool+" "+it.Tool.Object+" "+it.Tool.State+" "+it.Tool.Detail))
		case it.Note != nil:
			out = append(out, it.Note.Tone+": "+it.Note.Text)
		}
	}
	return out
}

func call(id, tool, object string) core.AgentToolCall {
	return core.AgentToolCall{CallID: id, Tool: tool, Object: object}
}

func result(id, outcome, detail string) core.AgentToolResult {
	return core.AgentToolResult{CallID: id, Tool: "read", Outcome: outcome, Detail: detail, Ms: 1500}
}

func TestTimeline_MergesCallAndResult(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.say("m1", core.Working)
	s.event("m1", core.MessageQueued{}, core.MessageWorking{},
		call("a", "read", "main.go"), result("a", "ok", "40 lines"),
		call("b", "bash", "go test ./..."), result("b", "ok", "exit 1"),
		call("c", "edit", "main.go"))
	v := s.view()
	turn := v.turn(v.line.turns[0])
	want := []string{"read main.go ok 40 lines", "bash go test ./... ok exit 1", "edit main.go running"}
	if diff := cmp.Diff(want, rows(turn)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if got := turn.Items[0].Tool.Duration; got != 1500*time.Millisecond {
		t.Errorf("duration %v", got)
	}
	if st := v.status(); st.State != "working" || st.Detail != "3 actions · edit main.go" || !st.CanCancel {
		t.Errorf("status = %+v", st)
	}
}

func TestTimeline_ARowLeftRunningIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, state := range []core.MessageState{core.Completed, core.Failed, core.Cancelled} {
		s := newStory(t)
		s.say("m1", state)
		s.event("m1", core.MessageQueued{}, core.MessageWorking{}, call("a", "bash", "sleep 9"))
		v := s.view()
		if got := rows(v.turn(v.line.turns[0])); got[0] != "bash sleep 9 interrupted" {
			t.Errorf("%s: %q", state, got)
		}
	}
}

func TestTimeline_RefusalsInAnyOrder(t *testing.T) {
	t.Parallel()
	refusal := core.PolicyRefused{CallID: "a", Rule: "git_push", Message: "git push is not allowed.", Snippet: "git push"}
	for name, events := range map[string][]core.Payload{
		"call first":         {call("a", "bash", "git push"), refusal, result("a", "refused", "")},
		"refusal first":      {refusal, call("a", "bash", "git push"), result("a", "refused", "")},
		"refusal alone":      {refusal},
		"result before word": {call("a", "bash", "git push"), result("a", "refused", ""), refusal},
	} {
		s := newStory(t)
		s.say("m1", core.Working)
		s.event("m1", events...)
		v := s.view()
		turn := v.turn(v.line.turns[0])
		if diff := cmp.Diff([]string{"bash git push refused"}, rows(turn)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if row := turn.Items[0].Tool; row.Code != "git_push" || row.Message != "git push is not allowed." {
			t.Errorf("%s: row = %+v", name, row)
		}
	}
}

func TestTimeline_EventsStayWithTheirTurn(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.say("m1", core.Completed)
	s.say("m2", core.Queued)
	s.event("m1", core.MessageQueued{}, core.MessagePreparing{}, core.MessageWorking{}, call("a", "read", "x"))
	s.event("m2", core.MessageQueued{})
	s.event("m1", result("a", "ok", ""), core.MessageCompleted{})
	v := s.view()
	first, second := v.turn(v.line.turns[0]), v.turn(v.line.turns[1])
	if len(first.Items) != 1 || first.Items[0].Tool.State != "ok" || len(second.Items) != 0 {
		t.Errorf("items: %q and %q", rows(first), rows(second))
	}
	if first.Sequence != 1 || second.Sequence != 5 || second.State != "queued" || !second.CanEdit {
		t.Errorf("second = %+v", second)
	}
}

func TestTimeline_QueueNotes(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.say("m1", core.Working)
	s.say("m2", core.Queued)
	s.say("m3", core.Queued)
	v := s.view()
	notes := []string{}
	for _, p := range v.turns(false) {
		notes = append(notes, p.QueueNote)
	}
	if diff := cmp.Diff([]string{"", "runs next", "2 messages ahead in this session"}, notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if q := v.queue(); len(q.Messages) != 2 || q.Messages[0].MessageID != "m2" {
		t.Errorf("queue = %+v", q)
	}
	v.platform = chat.Platform{Problem: "No worker is running."}
	s.line.Messages = s.line.Messages[:0]
	s.say("m4", core.Queued)
	alone := s.view()
	alone.platform = v.platform
	if got := alone.turn(alone.line.turns[0]).QueueNote; got != "No worker is running." {
		t.Errorf("note without a worker: %q", got)
	}
}

func TestTimeline_Preparation(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.say("m1", core.Queued)
	s.event("m1", core.MessageQueued{}, core.MessagePreparing{Worker: "w"})
	s.event("", core.SandboxChanged{State: core.SandboxCreating, Generation: 1, Runtime: "runc"},
		core.SandboxChanged{State: core.SandboxReady, Ms: 900},
		core.CheckoutStarted{Branch: "main", SHA: strings.Repeat("a", 40)})
	v := s.view()
	if st := v.status(); st.State != "preparing" || st.Detail != "Check out main @ aaaaaaa" {
		t.Errorf("status = %+v", st)
	}
	p := v.provision()
	var got []string
	for _, st := range p.Steps {
		got = append(got, st.Name+" "+st.State)
	}
	if diff := cmp.Diff([]string{"Create sandbox done", "Check out running"}, got); diff != "" || p.Done || !p.Shown {
		t.Errorf("strip (-want +got):\n%s\n%+v", diff, p)
	}
	s.event("", core.CheckoutCompleted{Branch: "agent/x", SHA: strings.Repeat("a", 40), Ms: 1100})
	s.event("m1", core.MessageWorking{})
	if p := s.view().provision(); !p.Done || p.Summary != "Sandbox ready in 2.0 s" || len(p.Steps) != 3 {
		t.Errorf("strip at the end = %+v", p)
	}
}

func TestTimeline_AFailedPreparation(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	m := s.say("m1", core.Failed)
	m.FailureCode, m.FailureText = "base_moved", "The branch main moved."
	s.event("m1", core.MessageQueued{}, core.MessagePreparing{})
	s.event("", core.SandboxChanged{State: core.SandboxCreating}, core.SandboxChanged{State: core.SandboxFailed, Code: "base_moved", Message: "The branch main moved."})
	s.event("m1", core.MessageFailed{Code: "base_moved"})
	v := s.view()
	p := v.provision()
	if p.Failure == nil || p.Failure.Code != "base_moved" || p.Steps[0].State != "failed" {
		t.Errorf("strip = %+v", p)
	}
	turn := v.turn(v.line.turns[0])
	if f := turn.Failure; f == nil || f.ActionURL != "/new?branch=main&installation=1&repository=2" || f.Safe != "Nothing ran." {
		t.Errorf("failure = %+v", turn.Failure)
	}
	if turn.Records != nil {
		t.Error("a turn that never started has records")
	}
}

func TestTimeline_RecordsComeFromRecords(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	m := s.say("m1", core.Completed)
	m.Usage, m.Model = core.Usage{PromptTokens: 41200, CompletionTokens: 3100}, "some-model"
	s.line.Messages = append(s.line.Messages, core.Message{ID: "a1", Role: core.RoleAssistant, ReplyTo: "m1", Text: "I rewrote everything.", State: core.Completed})
	s.event("m1", core.MessageQueued{}, core.MessageWorking{}, core.MessageCompleted{Context: core.ContextUse{Tokens: 43_100, Window: 128_000}})
	v := s.view()
	turn := v.turn(v.line.turns[0])
	if !turn.Records.NoChange || turn.Records.Usage != "41.2k in · 3.1k out · some-model · context 34% full" {
		t.Errorf("records of a turn without a diff = %+v", turn.Records)
	}
	if !strings.Contains(turn.Answer.HTML, "I rewrote everything.") || turn.Answer.Growing {
		t.Errorf("answer = %+v", turn.Answer)
	}

	s.event("m1", core.DiffUpdated{ArtifactID: "d1", Files: 1, Additions: 2})
	s.line.Diff = &core.Artifact{ID: "d1", CreatedAt: start}
	s.line.Changed = []core.ChangedFile{{Path: "a.go", Status: "modified", Additions: 2}}
	v = s.view()
	if r := v.turn(v.line.turns[0]).Records; r.NoChange || len(r.Files) != 1 || r.Additions != 2 || !strings.HasSuffix(r.DiffURL, "/diffs/d1") {
		t.Errorf("records with a diff = %+v", r)
	}
	s.line.Diff = &core.Artifact{ID: "d2"}
	v = s.view()
	if r := v.turn(v.line.turns[0]).Records; r.MoreFiles != 1 || len(r.Files) != 0 || !strings.HasSuffix(r.DiffURL, "/diffs/d1") {
		t.Errorf("records of an older diff = %+v", r)
	}
}

func TestTimeline_NotesAndWarnings(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.say("m1", core.Completed)
	s.event("m1", core.MessageQueued{}, core.MessagePreparing{}, core.MessageRequeued{Losses: 1}, core.MessagePreparing{})
	s.event("", core.SandboxRestored{CheckpointID: "c1", Files: 1, Missing: []string{"big.bin"}})
	s.event("", core.SandboxRestored{CheckpointID: "c1", Files: 2, PassedOver: 1})
	s.event("", core.SandboxRestored{PassedOver: 2})
	s.event("m1", core.MessageWorking{}, core.ModelRequestRetry{Attempt: 2, Reason: "model_rate_limited", WaitMs: 2000},
		core.CaptureFailed{What: "diff", Code: "snapshot_failed"}, core.MessageCompleted{})
	s.event("", core.PullRequestChanged{Opened: true, Number: 41, URL: "https://github.com/octo-org/web-app/pull/41"})
	v := s.view()
	turn := v.turn(v.line.turns[0])
	want := []string{
		"warning: The worker that prepared this message was lost. It is prepared again.",
		"info: The sandbox was lost and rebuilt from the last checkpoint: 1 file.",
		"warning: The sandbox was lost and rebuilt from an older checkpoint: 2 files. 1 newer checkpoint could not be applied; the diffs of those turns stay readable.",
		"warning: The sandbox was lost, and no checkpoint could be applied: the workspace is at the base commit again. The diffs of earlier turns stay readable.",
		"warning: The model did not answer and is asked again.",
	}
	if diff := cmp.Diff(want, rows(turn)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if w := turn.Records.Warning; !strings.Contains(w, "big.bin") || !strings.Contains(w, "snapshot_failed") {
		t.Errorf("warning = %q", w)
	}
	if pr := turn.Records.PullRequest; pr == nil || pr.Number != 41 || pr.Outcome != "Pull request #41 is open." {
		t.Errorf("pull request = %+v", pr)
	}
}

func TestTimeline_UnknownEventsAndBrokenPayloadsChangeNothing(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.say("m1", core.Working)
	s.event("m1", core.MessageQueued{}, core.MessageWorking{}, call("a", "read", "x"))
	for i, e := range []core.Event{
		{Type: "invented_later", Payload: json.RawMessage(`{}`)},
		{Type: "agent_tool_result", Payload: json.RawMessage(`{"call_id":5}`), MessageID: "m1"},
		{Type: "diff_updated", Payload: json.RawMessage(`null`), MessageID: "of-another-page"},
		{Type: "message_working", Payload: nil, MessageID: "of-another-page"},
		{Type: "agent_tool_call", Payload: json.RawMessage(`{"call_id":"z","tool":"ls"}`), MessageID: "of-another-page"},
	} {
		e.Sequence = int64(10 + i)
		s.line.Events = append(s.line.Events, e)
	}
	v := s.view()
	turn := v.turn(v.line.turns[0])
	if diff := cmp.Diff([]string{"read x running"}, rows(turn)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	v.provision()
	v.pull()
	v.details()
}

func TestTimeline_AWindowShowsWholeTurnsOnly(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.say("m1", core.Completed)
	s.say("m2", core.Completed)
	s.say("m3", core.Working)
	s.event("m1", core.MessageQueued{}, core.MessageWorking{}, call("a", "read", "x"))
	s.event("m2", core.MessageQueued{})
	s.event("m1", result("a", "ok", ""), core.MessageCompleted{})
	s.event("m2", core.MessageWorking{}, core.MessageCompleted{})
	s.event("m3", core.MessageQueued{}, core.MessageWorking{})
	all := s.line.Events

	s.line.Events, s.line.Earlier = all[3:], true // from m2's first event on
	v := s.view()
	if ids := shownIDs(v.turns(false)); ids != "m2 m3" {
		t.Errorf("the newest page shows %s", ids)
	}
	before := v.earlier()
	if before != 7 {
		t.Errorf("the earlier page ends before %d, want 7: after m1's last event", before)
	}
	s.line.Events, s.line.Earlier = all[:before-1], false
	if ids := shownIDs(s.view().turns(true)); ids != "m1" {
		t.Errorf("the earlier page shows %s", ids)
	}
}

func shownIDs(turns []components.TurnProps) string {
	var ids []string
	for _, t := range turns {
		ids = append(ids, t.MessageID)
	}
	return strings.Join(ids, " ")
}

func TestComposer_SaysWhyNobodyMayPost(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	for name, tt := range map[string]struct {
		rights   chat.Rights
		archived bool
		want     string
	}{
		"owner":         {chat.Rights{Owner: true, Push: true}, false, ""},
		"archived":      {chat.Rights{Owner: true, Push: true}, true, "archived"},
		"lost push":     {chat.Rights{Owner: true}, false, "may not push"},
		"reviewer":      {chat.Rights{Push: true}, false, "@octo-owner"},
		"administrator": {chat.Rights{Admin: true}, false, "@octo-owner"},
	} {
		s.line.Session.Archived = tt.archived
		v := s.view()
		v.Rights = tt.rights
		if got := v.composer("k", "", "").Disabled; (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q in it", name, got, tt.want)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]string{
		400 * time.Millisecond: "0.4 s", 14 * time.Second: "14 s", 192 * time.Second: "3m 12s", 62 * time.Minute: "1h 02m",
	} {
		if got := duration(in); got != want {
			t.Errorf("duration(%v) = %q, want %q", in, got, want)
		}
	}
}

func TestTimeline_ALimitOffersToGoOnUntilSomethingDoes(t *testing.T) {
	t.Parallel()
	stopped := func(t *testing.T, change func(*story, *core.Message)) (components.FailureProps, sessionView) {
		s := newStory(t)
		m := s.say("m1", core.Failed)
		m.FailureCode, m.FailureText, m.Steps, m.Limits = core.CodeLimitReached, "It stopped.", 60, core.TurnLimits{Steps: 60, Minutes: 30}
		s.event("m1", core.MessageQueued{}, core.MessageWorking{}, core.MessageFailed{Code: core.CodeLimitReached})
		change(s, m)
		v := s.view()
		return *v.turn(v.line.turns[0]).Failure, v
	}
	for name, test := range map[string]struct {
		change func(*story, *core.Message)
		offer  string
	}{
		"the last turn":        {func(*story, *core.Message) {}, "Up to 120 steps and 60 minutes."},
		"near the ceiling":     {func(_ *story, m *core.Message) { m.Limits.Steps, m.Limits.Minutes = 200, 200 }, "Up to 240 steps and 240 minutes."},
		"at the ceiling":       {func(_ *story, m *core.Message) { m.Limits.Steps, m.Limits.Minutes = 240, 240 }, ""},
		"from before":          {func(_ *story, m *core.Message) { m.Limits = core.TurnLimits{} }, "Up to 120 steps."},
		"another failure":      {func(_ *story, m *core.Message) { m.FailureCode = "model_timeout" }, ""},
		"an archived session":  {func(s *story, _ *core.Message) { s.line.Session.Archived = true }, ""},
		"something came after": {func(s *story, _ *core.Message) { s.say("m2", core.Queued); s.event("m2", core.MessageQueued{}) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := stopped(t, test.change)
			if f.ContinueFor != test.offer || (f.ContinueURL != "") != (test.offer != "") {
				t.Errorf("offers %q at %q, want %q", f.ContinueFor, f.ContinueURL, test.offer)
			}
		})
	}
	t.Run("the stream takes the offer back", func(t *testing.T) {
		t.Parallel()
		_, v := stopped(t, func(s *story, _ *core.Message) { s.say("m2", core.Queued); s.event("m2", core.MessageQueued{}) })
		var html strings.Builder
		for _, part := range v.changedSince(3) {
			if err := part.Render(t.Context(), &html); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(html.String(), `id="msg-m1"`) || strings.Contains(html.String(), "Continue with a higher limit") {
			t.Errorf("after another message the stream sends\n%s", html.String())
		}
	})
	t.Run("not to who only looks", func(t *testing.T) {
		t.Parallel()
		_, v := stopped(t, func(*story, *core.Message) {})
		v.Rights = chat.Rights{Push: true}
		if f := v.turn(v.line.turns[0]).Failure; f.ContinueURL != "" {
			t.Errorf("offers %q to somebody else than the owner", f.ContinueURL)
		}
	})
}

func TestUsageText_SaysWhatIsOnlyAnEstimate(t *testing.T) {
	t.Parallel()
	cost := 1.2
	for source, want := range map[core.CostSource]string{
		core.CostByProvider: "1.0k in · 50 out · $1.20 · m", core.CostByPrice: "1.0k in · 50 out · $1.20 · m", core.CostUnknown: "1.0k in · 50 out · about $1.20 · m",
	} {
		if got := usageText(core.Usage{PromptTokens: 1000, CompletionTokens: 50, CostUSD: &cost, CostSource: source}, "m"); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}
