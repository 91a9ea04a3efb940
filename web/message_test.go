package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/handlers"
)

// states are the session's messages of people as the JSON answer has them.
func (b *browser) states(id core.SessionID) (texts, states []string) {
	b.t.Helper()
	var s struct {
		Messages []struct{ Role, Text, State string }
	}
	b.json(http.MethodGet, "/chat-sessions/"+string(id), nil).into(&s)
	for _, m := range s.Messages {
		if m.Role == "user" {
			texts, states = append(texts, m.Text), append(states, m.State)
		}
	}
	return texts, states
}

func TestMessage_QueueEditRemove(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id := b.create("First")
	base := "/chat-sessions/" + string(id)
	claim := storetest.Claim(t, r.store)
	if _, err := r.store.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m"); err != nil {
		t.Fatal(err)
	}
	action, values := formOf(b.get(base), "#composer")
	values.Set("text", "Second\r\nline")
	posted := b.post(action, values)
	if posted.status != http.StatusSeeOther || !strings.HasPrefix(posted.location(), base+"#msg-") {
		t.Fatalf("post: %d to %q: %s", posted.status, posted.location(), posted.body)
	}
	if again := b.post(action, values); again.location() != posted.location() {
		t.Errorf("double submit went to %q, want %q", again.location(), posted.location())
	}
	second := strings.TrimPrefix(posted.location(), base+"#msg-")
	edit, form := formOf(b.get(base), `form[action="`+base+"/messages/"+second+`"]`)
	form.Set("text", "Second, changed")
	if a := b.post(edit, form); a.status != http.StatusSeeOther {
		t.Fatalf("edit: %d %s", a.status, a.body)
	}
	texts, states := b.states(id)
	if len(texts) != 2 || texts[1] != "Second, changed" || states[0] != "working" || states[1] != "queued" {
		t.Fatalf("after the edit: %q %q", texts, states)
	}
	if a := b.post(base+"/messages/"+second+"/remove", nil); a.status != http.StatusSeeOther {
		t.Fatalf("remove: %d %s", a.status, a.body)
	}
	if a := b.json(http.MethodPost, base+"/messages/"+second, handlers.MessageForm{Text: "late"}); a.status != http.StatusConflict || a.code() != "not_queued" {
		t.Errorf("editing what was removed: %d %s", a.status, a.body)
	}
	if _, states = b.states(id); states[1] != "cancelled" {
		t.Errorf("after the removal: %q", states)
	}
}

func TestMessage_HTMXGetsTheComposer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id := b.create("First")
	base := "/chat-sessions/" + string(id)
	_, values := formOf(b.get(base), "#composer")
	values.Set("text", " ")
	refused := b.post(base+"/messages", values, "HX-Request", "true")
	if refused.status != http.StatusUnprocessableEntity {
		t.Fatalf("empty: %d, want 422", refused.status)
	}
	if _, kept := formOf(refused, "form#composer"); kept.Get("client_key") != values.Get("client_key") {
		t.Error("the refused form has another key: a retry could become a second message")
	}
	if !strings.Contains(refused.html().Text(), "Write what you want changed.") {
		t.Error("the form does not say what is wrong")
	}
	values.Set("text", "Second")
	done := b.post(base+"/messages", values, "HX-Request", "true")
	_, fresh := formOf(done, "form#composer")
	if done.status != http.StatusOK || fresh.Get("text") != "" || fresh.Get("client_key") == values.Get("client_key") {
		t.Errorf("posted: %d, text %q; want an empty form with a fresh key", done.status, fresh.Get("text"))
	}
	if strings.Contains(done.body, "<html") {
		t.Error("htmx got a whole page")
	}
	values.Set("text", strings.Repeat("a", core.MaxMessageBytes+1))
	if large := b.post(base+"/messages", values, "HX-Request", "true"); large.status != http.StatusRequestEntityTooLarge || !strings.Contains(large.body, "48 KiB") {
		t.Errorf("too large: %d %s", large.status, large.body)
	}
}

func TestMessage_JSON(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id := b.create("First")
	base := "/chat-sessions/" + string(id)
	var first, second struct{ ID, State, Text string }
	for _, into := range []any{&first, &second} {
		a := b.json(http.MethodPost, base+"/messages", handlers.MessageForm{Text: "Follow up"}, "Idempotency-Key", "k-1")
		if a.status != http.StatusCreated {
			t.Fatalf("post: %d %s", a.status, a.body)
		}
		a.into(into)
	}
	if first != second || first.State != "queued" || first.Text != "Follow up" {
		t.Errorf("one key, two answers: %+v and %+v", first, second)
	}
	for name, tt := range map[string]struct {
		body, kind string
		status     int
		code       string
	}{
		"not JSON":        {"{", "application/json", 400, "body_unreadable"},
		"another type":    {"text=x", "text/plain", 400, "body_unreadable"},
		"text is a list":  {`{"text":[1]}`, "application/json", 400, "body_unreadable"},
		"over the limit":  {`{"text":"` + strings.Repeat("a", core.MaxMessageBytes+1) + `"}`, "application/json", 413, "message_too_large"},
		"over all limits": {`{"text":"` + strings.Repeat("a", 2<<20) + `"}`, "application/json", 413, "request_too_large"},
	} {
		a := b.do(http.MethodPost, base+"/messages", strings.NewReader(tt.body), "Content-Type", tt.kind, "Accept", "application/json")
		if a.status != tt.status || a.code() != tt.code {
			t.Errorf("%s: %d %s, want %d %s", name, a.status, a.body, tt.status, tt.code)
		}
	}
	if a := b.json(http.MethodPost, base+"/messages", handlers.MessageForm{Text: "x"}, "Idempotency-Key", strings.Repeat("k", 129)); a.code() != "idempotency_key_invalid" {
		t.Errorf("long key: %d %s", a.status, a.body)
	}
}

func TestCancel_IsStoredAndRepeatable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id := b.create("Long work")
	base := "/chat-sessions/" + string(id)
	claim := storetest.Claim(t, r.store)
	if _, err := r.store.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var m struct {
			State             string
			CancelRequestedAt string `json:"cancel_requested_at"`
		}
		a := b.json(http.MethodPost, base+"/cancel", nil)
		a.into(&m)
		if a.status != http.StatusAccepted || m.State != "working" || m.CancelRequestedAt == "" {
			t.Fatalf("cancel: %d %s", a.status, a.body)
		}
	}
	if a := b.post(base+"/cancel", nil, "HX-Request", "true"); a.status != http.StatusOK || a.html().Find("#status").AttrOr("data-state", "") != "cancelling" {
		t.Errorf("htmx: %d %s", a.status, a.body)
	}
	if err := r.store.FinishMessage(t.Context(), claim.Lease, core.Finish{MessageID: claim.Message.ID, State: core.Cancelled}); err != nil {
		t.Fatal(err)
	}
	if a := b.post(base+"/cancel", nil); a.status != http.StatusSeeOther {
		t.Errorf("a late press in the page: %d, want the session", a.status)
	}
	if a := b.json(http.MethodPost, base+"/cancel", nil); a.status != http.StatusConflict || a.code() != "nothing_to_cancel" {
		t.Errorf("a late API call: %d %s", a.status, a.body)
	}
}

func TestPublish_ByFormAndJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	base := "/chat-sessions/" + string(s.id)
	action, values := formOf(b.get(base+"/publish"), `form[action="`+base+`/publish"]`)
	if values.Get("title") != "Add a comment" || values.Get("body") != "> Add a comment" || values.Get("draft") != "true" || values.Get("base") != "main" {
		t.Errorf("the form proposes %q and %q", values.Get("title"), values.Get("body"))
	}
	empty := url.Values{"title": {" "}, "body": {"kept"}, "client_key": {"k"}}
	refused := b.post(action, empty)
	if _, kept := formOf(refused, `form[action="`+base+`/publish"]`); refused.status != http.StatusUnprocessableEntity || kept.Get("body") != "kept" {
		t.Errorf("without a title: %d, body %q", refused.status, kept.Get("body"))
	}
	if a := b.post(action, values); a.status != http.StatusSeeOther || !strings.HasPrefix(a.location(), base) {
		t.Fatalf("publish: %d to %q: %s", a.status, a.location(), a.body)
	}
	if a := b.post(action, values); a.status != http.StatusSeeOther {
		t.Errorf("double submit: %d %s", a.status, a.body)
	}
	var state struct {
		Blocked     string
		Publication struct{ Step string }
	}
	b.json(http.MethodGet, base+"/publish", nil).into(&state)
	if state.Publication.Step != "requested" || state.Blocked == "" {
		t.Errorf("state = %+v", state)
	}
	if a := b.json(http.MethodPost, base+"/publish", handlers.PublishForm{Title: "Another"}); a.status != http.StatusConflict || a.code() != "publish_pending" {
		t.Errorf("a second publish: %d %s", a.status, a.body)
	}
	if page := b.get(base); !strings.Contains(page.html().Find("#pr").Text(), "Commit") {
		t.Error("the session does not show the steps of the publish")
	}
}

func TestDiff_AsPageAndJSON(t *testing.T) {
	t.Parallel()
	b := newRig(t).signedIn(t, owner)
	s := b.finished()
	base := "/chat-sessions/" + string(s.id) + "/diffs/"
	if a := b.get(base + "latest"); a.location() != base+string(s.diff) {
		t.Errorf("latest: %d to %q", a.status, a.location())
	}
	if page := b.get(base + string(s.diff)); page.status != http.StatusOK || !strings.Contains(page.html().Text(), "main.go") || strings.Contains(page.body, "<b>secret") {
		t.Errorf("page: %d", page.status)
	}
	var d struct {
		ID           string
		Latest       bool
		Additions    int
		ChangedFiles []core.ChangedFile `json:"changed_files"`
		Patch        string
	}
	b.json(http.MethodGet, base+"latest", nil).into(&d)
	if d.ID != string(s.diff) || !d.Latest || d.Additions != 1 || len(d.ChangedFiles) != 1 || d.Patch != patch {
		t.Errorf("JSON = %+v", d)
	}
	if a := b.json(http.MethodGet, "/chat-sessions/"+string(b.create("Nothing yet"))+"/diffs/latest", nil); a.status != http.StatusNotFound || a.code() != "no_diff" {
		t.Errorf("without a diff: %d %s", a.status, a.body)
	}
}

func TestSession_RenameAndArchive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	base := "/chat-sessions/" + string(s.id)
	if a := b.post(base+"/title", url.Values{"title": {"  A better\nname  "}}); a.status != http.StatusSeeOther {
		t.Fatalf("rename: %d %s", a.status, a.body)
	}
	if a := b.post(base+"/title", url.Values{"title": {strings.Repeat("x", 121)}}, "Accept", "application/json"); a.status != http.StatusUnprocessableEntity || a.code() != "title_invalid" {
		t.Errorf("a long title: %d %s", a.status, a.body)
	}
	if list := b.get("/"); !strings.Contains(list.html().Text(), "A better name") {
		t.Error("the list does not show the new title")
	}
	if a := b.post(base+"/archive", url.Values{"archived": {"true"}}); a.status != http.StatusSeeOther {
		t.Fatalf("archive: %d %s", a.status, a.body)
	}
	if strings.Contains(b.get("/").body, base) || !strings.Contains(b.get("/?state=archived").body, base) {
		t.Error("an archived session stands in the wrong list")
	}
	if page := b.get(base).html(); page.Find("#stream").AttrOr("hx-sse:connect", "") != "" {
		t.Error("an archived session's page opens a stream")
	}
	if a := b.json(http.MethodPost, base+"/messages", handlers.MessageForm{Text: "x"}); a.code() != "session_archived" {
		t.Errorf("posting to it: %d %s", a.status, a.body)
	}
	if a := b.post(base+"/archive", url.Values{"archived": {"false"}}); a.status != http.StatusSeeOther || !strings.HasPrefix(a.location(), base) {
		t.Errorf("take back: %d to %q", a.status, a.location())
	}
}

func TestList_PollsCostNothingWhenNothingChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	b.create("First")
	poll, ok := b.get("/").html().Find("[hx-get]").Attr("hx-get")
	if !ok {
		t.Fatal("the list does not poll")
	}
	if a := b.get(poll, "HX-Request", "true"); a.status != http.StatusNoContent {
		t.Errorf("nothing changed: %d, want 204", a.status)
	}
	storetest.Claim(t, r.store)
	if a := b.get(poll, "HX-Request", "true"); a.status != http.StatusOK {
		t.Errorf("a turn began: %d, want the list", a.status)
	}
}
