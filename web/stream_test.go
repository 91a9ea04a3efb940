package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/web"
)

// sse is one open stream, read message by message.
type sse struct {
	t      *testing.T
	resp   *http.Response
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

// message is one message of a stream; id is "" when it has none.
type message struct{ id, event, data string }

// stream opens path as an event stream. Cutting it is what a closed laptop does.
func (b *browser) stream(path string, headers ...string) *sse {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.rig.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.http.Do(req) //nolint:bodyclose // cut closes it
	if err != nil {
		cancel()
		b.t.Fatal(err)
	}
	s := &sse{t: b.t, resp: resp, lines: bufio.NewScanner(resp.Body), cancel: cancel}
	s.lines.Buffer(nil, 8<<20)
	b.t.Cleanup(s.cut)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("GET %s: %d %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return s
}

func (s *sse) cut() {
	s.cancel()
	_ = s.resp.Body.Close() // it may be read no further
}

// next is the next message that holds something; ok is false at the end of the stream.
func (s *sse) next() (m message, ok bool) {
	var data []string
	for s.lines.Scan() {
		line := s.lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && data != nil:
			m.data = strings.Join(data, "\n")
			return m, true
		case field == "id":
			m.id = value
		case field == "event":
			m.event = value
		case field == "data":
			data = append(data, value)
		}
	}
	return m, false
}

// events reads n unnamed messages as the JSON stream's events.
func (s *sse) events(n int) []int64 {
	s.t.Helper()
	var got []int64
	for len(got) < n {
		m, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended after %v, want %d events", got, n)
		}
		if m.event != "" {
			continue
		}
		var e struct {
			Sequence int64
			Type     string
			Payload  json.RawMessage
		}
		if err := json.Unmarshal([]byte(m.data), &e); err != nil {
			s.t.Fatalf("message %q: %v", m.data, err)
		}
		if m.id != strconv.FormatInt(e.Sequence, 10) || e.Type == "" || len(e.Payload) == 0 {
			s.t.Fatalf("message id %q holds event %d of type %q", m.id, e.Sequence, e.Type)
		}
		got = append(got, e.Sequence)
	}
	return got
}

func upTo(n int64) []int64 {
	var all []int64
	for i := int64(1); i <= n; i++ {
		all = append(all, i)
	}
	return all
}

func TestInvariant4_ACutStreamSeesEachEventOnceInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	path := "/chat-sessions/" + string(s.id) + "/events"
	session, err := r.store.Session(t.Context(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	total := session.LastSequence
	for cutAfter := range int(total) + 1 {
		first := b.stream(path + "?after=0")
		got := first.events(cutAfter)
		first.cut()
		// The reconnect of a page repeats the old address; the header moves it on.
		rest := b.stream(path+"?after=0", "Last-Event-ID", strconv.Itoa(cutAfter))
		got = append(got, rest.events(int(total)-cutAfter)...)
		rest.cut()
		if diff := cmp.Diff(upTo(total), got); diff != "" {
			t.Errorf("cut after %d (-want +got):\n%s", cutAfter, diff)
		}
	}
}

func TestInvariant4_CutWhileEventsCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id := b.create("Count")
	claim := storetest.Claim(t, r.store)
	if _, err := r.store.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m"); err != nil {
		t.Fatal(err)
	}
	const calls = 150
	wrote := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < calls && err == nil; i++ {
			err = r.store.Append(t.Context(), claim.Lease, core.ByAgent, claim.Message.ID,
				core.AgentToolCall{CallID: strconv.Itoa(i), Tool: "read", Object: "main.go"})
		}
		wrote <- err
	}()
	const total = int64(calls + 4) // created, queued, preparing and working came first
	path := "/chat-sessions/" + string(id) + "/events"
	var got []int64
	for length := 1; int64(len(got)) < total; length = length%7 + 1 {
		s := b.stream(path, "Last-Event-ID", strconv.Itoa(len(got)))
		got = append(got, s.events(min(length, int(total)-len(got)))...)
		s.cut()
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(upTo(total), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEvents_AsAList(t *testing.T) {
	t.Parallel()
	b := newRig(t).signedIn(t, owner)
	s := b.finished()
	path := "/chat-sessions/" + string(s.id) + "/events"
	var list struct {
		Events []struct {
			Sequence  int64
			Type      string
			Producer  string
			MessageID string    `json:"message_id"`
			CreatedAt time.Time `json:"created_at"`
		}
		LastSequence int64 `json:"last_sequence"`
	}
	b.get(path+"?after=1&limit=2", "Accept", "application/json").into(&list)
	if len(list.Events) != 2 || list.Events[0].Sequence != 2 || list.LastSequence < 3 {
		t.Fatalf("after 1, two events = %+v", list)
	}
	if e := list.Events[0]; e.Type != "message_queued" || e.Producer != "person" || e.MessageID != string(s.message) || e.CreatedAt.IsZero() {
		t.Errorf("event 2 = %+v", e)
	}
	for _, bad := range []string{"?after=-1", "?after=x", "?limit=0", "?limit=1001", "?limit=x", "?after=1e3"} {
		if a := b.get(path+bad, "Accept", "application/json"); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d, want 400", bad, a.status)
		}
	}
	for _, kind := range []string{"/events", "/stream"} {
		a := b.get("/chat-sessions/"+string(s.id)+kind, "Accept", "text/event-stream", "Last-Event-ID", "1;2")
		if a.status != http.StatusBadRequest {
			t.Errorf("%s with a bad Last-Event-ID: %d, want 400", kind, a.status)
		}
	}
}

func TestEvents_AreAStreamUnlessAListIsAskedFor(t *testing.T) {
	t.Parallel()
	b := newRig(t).signedIn(t, owner)
	// A cursor of another log ends the stream at once.
	path := "/chat-sessions/" + string(b.finished().id) + "/events?after=100000"
	for accept, want := range map[string]string{
		"": "text/event-stream", "*/*": "text/event-stream", "text/event-stream": "text/event-stream",
		"application/json": "application/json", "text/html,application/xhtml+xml,*/*;q=0.8": "application/json",
	} {
		if got := b.get(path, "Accept", accept).header.Get("Content-Type"); got != want {
			t.Errorf("Accept %q: %s, want %s", accept, got, want)
		}
	}
}

func TestStream_AnUnknownCursorIsToldToStartAnew(t *testing.T) {
	t.Parallel()
	b := newRig(t).signedIn(t, owner)
	s := b.finished()
	for _, kind := range []string{"/events", "/stream"} {
		stream := b.stream("/chat-sessions/" + string(s.id) + kind + "?after=100000")
		if m, ok := stream.next(); !ok || m.event != "reset" {
			t.Errorf("%s: %+v, %v; want a reset", kind, m, ok)
		}
		if m, ok := stream.next(); ok {
			t.Errorf("%s goes on after a reset: %+v", kind, m)
		}
	}
}

func TestStream_PingsWithTheLastSequence(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *web.Options, _ *chat.Gate) { o.Streams.Ping = 20 * time.Millisecond })
	b := r.signedIn(t, owner)
	id := b.create("Ping")
	stream := b.stream("/chat-sessions/" + string(id) + "/stream?after=2")
	if m, ok := stream.next(); !ok || m.event != "ping" || m.data != "2" || m.id != "" {
		t.Errorf("first message = %+v, %v; want a ping with 2 and no id", m, ok)
	}
}

func TestStream_EndsAtSignOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *web.Options, _ *chat.Gate) { o.Streams.Recheck = 20 * time.Millisecond })
	b := r.signedIn(t, owner)
	id := b.create("Sign out")
	stream := b.stream("/chat-sessions/" + string(id) + "/stream?after=2")
	b.post("/logout", nil)
	if m, ok := stream.next(); !ok || m.event != "auth" {
		t.Errorf("after sign-out: %+v, %v; want auth", m, ok)
	}
	if _, ok := stream.next(); ok {
		t.Error("the stream goes on after auth")
	}
	again := b.get("/chat-sessions/"+string(id)+"/stream?after=2", "Accept", "text/html, text/event-stream",
		"HX-Request", "true", "HX-Current-URL", r.url+"/chat-sessions/"+string(id))
	if want := "/login?e=ended&return_to=%2Fchat-sessions%2F" + string(id); again.status != http.StatusUnauthorized || again.header.Get("HX-Redirect") != want {
		t.Errorf("reconnect: %d, HX-Redirect %q; want 401 to %q", again.status, again.header.Get("HX-Redirect"), want)
	}
}

func TestStream_SaysRestartAndTheServerStops(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id := b.create("Restart")
	stream := b.stream("/chat-sessions/" + string(id) + "/events?after=2")
	go r.stop() // waits for the stream's end; the test's clean-up waits for it
	if m, ok := stream.next(); !ok || m.event != "restart" {
		t.Errorf("at shutdown: %+v, %v; want restart", m, ok)
	}
	if _, ok := stream.next(); ok {
		t.Error("the stream goes on after restart")
	}
}

func TestStream_HeadersReachTheClientAtOnce(t *testing.T) {
	t.Parallel()
	b := newRig(t).signedIn(t, owner)
	id := b.create("Headers")
	stream := b.stream("/chat-sessions/"+string(id)+"/stream?after=2", "Accept-Encoding", "gzip")
	if !stream.lines.Scan() || stream.lines.Text() != ": ok" {
		t.Errorf("first line %q, want a comment", stream.lines.Text())
	}
	for name, want := range map[string]string{"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no", "Content-Encoding": ""} {
		if got := stream.resp.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

// page is the client's half of the HTML stream: what ends up in the page, by target.
type page struct {
	parts  map[string]string
	cursor string
}

// take applies the next message with fragments.
func (p *page) take(t *testing.T, s *sse) {
	t.Helper()
	m, ok := s.next()
	if !ok {
		t.Fatal("the stream ended")
	}
	if m.event != "" {
		return
	}
	if m.id != "" {
		p.cursor = m.id
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(m.data))
	if err != nil {
		t.Fatal(err)
	}
	parts := doc.Find("hx-partial")
	for i := range parts.Nodes {
		html, err := parts.Eq(i).Html()
		if err != nil {
			t.Fatal(err)
		}
		target := parts.Eq(i).AttrOr("hx-target", "")
		if target == "#timeline" { // an append: its own id decides, as in the page
			target = "#" + parts.Eq(i).Children().First().AttrOr("id", "")
		}
		p.parts[target] = html
	}
}

// inner is the inside of the element that was drawn for a target.
func (p *page) inner(t *testing.T, target string) string {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(p.parts[target]))
	if err != nil {
		t.Fatal(err)
	}
	html, err := doc.Find(target).Html()
	if err != nil {
		t.Fatal(err)
	}
	return html
}

// settled takes out what depends on the moment of rendering.
func settled(html string) string {
	return strings.Join(strings.Fields(moments.ReplaceAllString(html, "")), " ")
}

var moments = regexp.MustCompile(`data-now="[^"]*"`)

func TestStream_DrawsWhatAReloadShows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id := b.create("Watch this")
	path := "/chat-sessions/" + string(id)
	after := b.get(path).html().Find("#stream").AttrOr("hx-sse:connect", "")
	if after != path+"/stream?after=2" {
		t.Fatalf("the page's stream is %q", after)
	}
	stream := b.stream(after)
	claim := storetest.Claim(t, r.store)
	m, err := r.store.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m")
	if err != nil {
		t.Fatal(err)
	}
	evil := "<img src=x onerror=alert(1)>\rid: 999\r\r"
	exit := 1
	for _, e := range []core.Payload{
		core.AgentToolCall{CallID: "c1", Tool: "bash", Object: "go vet ./...", Snippet: evil},
		core.AgentToolResult{CallID: "c1", Tool: "bash", Object: "go vet ./...", Outcome: "ok", Exit: &exit, Detail: "exit 1", Snippet: evil, Ms: 1200},
	} {
		if err := r.store.Append(t.Context(), claim.Lease, core.ByAgent, m.ID, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.store.SetPartial(t.Context(), claim.Lease, m.ID, "I am **wri"); err != nil {
		t.Fatal(err)
	}
	seen := page{parts: map[string]string{}}
	for !strings.Contains(seen.parts["#answer-"+string(m.ID)], "I am") {
		seen.take(t, stream)
	}
	if seen.cursor == "" || seen.cursor == "999" {
		t.Errorf("cursor %q", seen.cursor)
	}
	finish := core.Finish{MessageID: m.ID, State: core.Completed, Answer: "All **done**."}
	if err := r.store.FinishMessage(t.Context(), claim.Lease, finish); err != nil {
		t.Fatal(err)
	}
	turn := "#msg-" + string(m.ID)
	for !strings.Contains(seen.parts[turn], "<strong>done</strong>") {
		seen.take(t, stream)
	}
	if strings.Contains(seen.parts[turn], "<img src=x") {
		t.Error("tool output reached the page as HTML")
	}
	reload := b.get(path).html().Find(turn)
	want, err := reload.Html()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(settled(want), settled(seen.inner(t, turn))); diff != "" {
		t.Errorf("the stream's turn differs from a reload (-reload +stream):\n%s", diff)
	}
}

func TestStream_ReplayDrawsTheSameAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	var drawn []string
	for _, after := range []string{"0", "2", "3"} {
		seen := page{parts: map[string]string{}}
		stream := b.stream("/chat-sessions/" + string(s.id) + "/stream?after=" + after)
		seen.take(t, stream)
		stream.cut()
		drawn = append(drawn, settled(seen.inner(t, "#msg-"+string(s.message))))
	}
	if drawn[0] != drawn[1] || drawn[1] != drawn[2] {
		t.Errorf("replays from 0, 2 and 3 differ:\n%s", cmp.Diff(drawn[0], drawn[2]))
	}
}
