package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agent-sandboxing/core/store/storetest"
)

func TestErrors_AnUnknownAddressKeepsTheFrame(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	page := b.get("/no/such/page")
	text := page.html().Text()
	if page.status != http.StatusNotFound || !strings.Contains(text, owner) || !strings.Contains(text, "Go to sessions") || strings.Contains(text, "Sign in") {
		t.Errorf("signed in: %d %s", page.status, text)
	}
	if a := r.browser(t).get("/no/such/page"); a.status != http.StatusNotFound || !strings.Contains(a.html().Text(), "Sign in") {
		t.Errorf("signed out: %d %s", a.status, a.html().Text())
	}
}

func TestErrors_AWrongMethodSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id := string(b.create("Long work"))
	if a := b.get("/logout"); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") == "" || !strings.Contains(a.html().Text(), "Go to sessions") {
		t.Errorf("a visit of /logout: %d, Allow %q", a.status, a.header.Get("Allow"))
	}
	for path, want := range map[string]string{
		"/chat-sessions":                       "/",
		"/chat-sessions/" + id + "/messages":   "/chat-sessions/" + id,
		"/chat-sessions/" + id + "/messages/x": "/chat-sessions/" + id,
	} {
		if a := b.get(path); a.status != http.StatusSeeOther || a.location() != want {
			t.Errorf("a visit of %s: %d to %q, want the page with the form", path, a.status, a.location())
		}
		if a := b.get(path, "Accept", "application/json"); a.status != http.StatusMethodNotAllowed || a.code() != "method_not_allowed" {
			t.Errorf("GET %s as JSON: %d %s", path, a.status, a.body)
		}
	}
}

func TestSession_WhatDoesNotWorkNowIsSaidOnItsPage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	base := "/chat-sessions/" + string(b.create("Long work"))
	storetest.Claim(t, r.store)
	page := b.get(base)
	if page.html().Find(`form[action="`+base+`/archive"]`).Length() != 0 {
		t.Error("a session at work offers to be archived")
	}
	for path, says := range map[string]string{"/archive": "not archived", "/stop": "nothing to stop"} {
		a := b.post(base+path, url.Values{"archived": {"true"}})
		if a.status != http.StatusSeeOther || !strings.Contains(b.get(a.location()).html().Find(".notice-warning").Text(), says) {
			t.Errorf("%s: %d to %q", path, a.status, a.location())
		}
	}
	long := strings.Repeat("x", 121)
	refused := b.post(base+"/title", url.Values{"title": {long}})
	field := refused.html().Find("#rename-title")
	if refused.status != http.StatusUnprocessableEntity || field.AttrOr("value", "") != long || field.AttrOr("maxlength", "") != "120" ||
		refused.html().Find("details[open] #rename-error").Length() != 1 {
		t.Errorf("a long title: %d, not said beside the field", refused.status)
	}
}
