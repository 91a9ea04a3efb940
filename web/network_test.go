package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/handlers"
)

func (r *rig) networkPath() string {
	return fmt.Sprintf("/installations/%d/repositories/%d/network", r.installation, r.repository)
}

// createIn starts a session with a network mode; "" leaves it to the server.
func (b *browser) createIn(mode string) answer {
	b.t.Helper()
	return b.json(http.MethodPost, "/chat-sessions", handlers.CreateForm{
		Installation: b.rig.installation, Repository: b.rig.repository, Branch: "main", Text: "With a network", Egress: mode,
	})
}

// listed is a working session with the mode allowlist, and its turn.
func (b *browser) listed() (core.SessionID, core.Claim) {
	b.t.Helper()
	var s struct{ ID core.SessionID }
	b.createIn("allowlist").into(&s)
	claim := storetest.Claim(b.t, b.rig.store)
	m, err := b.rig.store.StartMessage(b.t.Context(), claim.Lease, claim.Message.ID, "test-model")
	if err != nil {
		b.t.Fatal(err)
	}
	claim.Message = &m
	return s.ID, claim
}

func (r *rig) reached(t *testing.T, claim core.Claim, host string, port int, allowed bool, rule string) {
	t.Helper()
	row := core.EgressRow{
		MessageID: claim.Message.ID, Host: host, Port: port, Allowed: allowed, Rule: rule, Connections: 1,
		StartedAt: time.Now(), EndedAt: time.Now(),
	}
	if allowed {
		row.Sent, row.Received = 100, 5000
	}
	if err := r.store.RecordEgress(t.Context(), claim.Session.ID, []core.EgressRow{row}); err != nil {
		t.Fatal(err)
	}
}

func TestNetwork_TheModeIsChosenOnceAndNeverLooserThanAllowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b, a := r.signedIn(t, owner), r.signedIn(t, admin)
	mode := func(got answer) string {
		t.Helper()
		var s struct{ Network string }
		got.into(&s)
		return s.Network
	}
	first := b.createIn("")
	var s struct{ ID core.SessionID }
	first.into(&s)
	if mode(first) != "open" || mode(b.createIn("none")) != "none" {
		t.Error("a session has not the mode that was asked for")
	}
	set := func(m string) answer {
		return a.json(http.MethodPost, r.networkPath()+"/mode", map[string]string{"mode": m})
	}
	if got := set("allowlist"); got.status != http.StatusOK || !strings.Contains(got.body, `"chosen":"allowlist","effective":"allowlist"`) {
		t.Errorf("an administrator chooses: %d %s", got.status, got.body)
	}
	if got := set("anything"); got.code() != "egress_unknown" {
		t.Errorf("an unknown mode: %d %s", got.status, got.body)
	}
	if got := b.createIn("open"); got.code() != "egress_above_ceiling" || got.status != http.StatusUnprocessableEntity {
		t.Errorf("a looser mode than the repository may have: %d %s", got.status, got.body)
	}
	if got := b.createIn("anything"); got.code() != "egress_unknown" {
		t.Errorf("an unknown mode: %d %s", got.status, got.body)
	}
	if mode(b.createIn("")) != "allowlist" || mode(b.createIn("none")) != "none" {
		t.Error("a session has not the repository's mode, or the stricter one that was asked for")
	}
	if mode(b.json(http.MethodGet, "/chat-sessions/"+string(s.ID), nil)) != "open" {
		t.Error("a session that was there has lost its mode")
	}
	form := b.get(r.chosenPath()).html()
	if got := form.Find("input[name=egress]").Map(func(_ int, s *goquery.Selection) string {
		v, _ := s.Attr("value")
		return v
	}); !slices.Equal(got, []string{"allowlist", "none"}) || form.Find("input[name=egress][checked]").AttrOr("value", "") != "allowlist" {
		t.Errorf("the form offers %v", got)
	}
	if got := set(""); !strings.Contains(got.body, `"chosen":"","effective":"open"`) {
		t.Errorf("taken back: %s", got.body)
	}
}

func TestNetwork_WhoMayChangeTheList(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.signedIn(t, owner).create("Now it is known")
	list := r.networkPath()
	for _, test := range []struct {
		login              string
		see, add, mode     int
		mayList, mayChoose bool
	}{
		{owner, 200, 200, 404, true, false},
		{colleague, 200, 200, 404, true, false},
		{reader, 200, 403, 404, false, false},
		{admin, 200, 200, 200, true, true},
		{outsider, 404, 404, 404, false, false},
	} {
		b := r.signedIn(t, test.login)
		page := b.get(list)
		if page.status != test.see {
			t.Errorf("%s sees the page: %d, want %d", test.login, page.status, test.see)
		}
		if got := page.html().Find("input#host").Length() == 1; got != test.mayList {
			t.Errorf("%s is offered to add a host: %v", test.login, got)
		}
		if got := page.html().Find("select#mode").Length() == 1; got != test.mayChoose {
			t.Errorf("%s is offered to choose the mode: %v", test.login, got)
		}
		host := map[string]string{"host": test.login + ".example.com"}
		if got := b.json(http.MethodPost, list+"/hosts", host); got.status != test.add {
			t.Errorf("%s adds: %d %s, want %d", test.login, got.status, got.body, test.add)
		}
		if got := b.json(http.MethodPost, list+"/hosts/remove", map[string]string{"host": "nothing.example.com"}); got.status != test.add {
			t.Errorf("%s removes: %d %s, want %d", test.login, got.status, got.body, test.add)
		}
		if got := b.json(http.MethodPost, list+"/mode", map[string]string{"mode": ""}); got.status != test.mode {
			t.Errorf("%s chooses the mode: %d, want %d", test.login, got.status, test.mode)
		}
	}
	hosts, err := r.store.RepositoryHosts(t.Context(), core.RepositoryID(r.repository))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range hosts {
		got = append(got, h.Host+" by "+h.AddedBy)
	}
	want := []string{"octo-admin.example.com by octo-admin", "octo-colleague.example.com by octo-colleague", "octo-owner.example.com by octo-owner"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := r.signedIn(t, owner).get(fmt.Sprintf("/installations/%d/repositories/%d/network", r.installation+1, r.repository)); got.status != http.StatusNotFound {
		t.Errorf("under another installation: %d, want 404", got.status)
	}
}

// Access that GitHub has taken away is gone at once, not after the minute that a page may be old.
func TestNetwork_TheListAsksGitHubNow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id, _ := b.listed()
	b.get("/chat-sessions/" + string(id))
	if err := r.github.SetPermission("octo-org/web-app", owner, githubtest.Pull); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/chat-sessions/" + string(id) + "/network/hosts", r.networkPath() + "/hosts"} {
		if got := b.json(http.MethodPost, path, map[string]string{"host": "evil.example.com"}); got.code() != "push_required" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestNetwork_TheListsPageWorksWithoutJavaScript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	b.create("Now it is known")
	list := r.networkPath()
	if got := b.post(list+"/hosts", url.Values{"host": {" Registry.EXAMPLE.net. "}}); got.status != http.StatusSeeOther || got.location() != list+"?did=host_added" {
		t.Fatalf("add: %d to %s", got.status, got.location())
	}
	if got := b.post(list+"/hosts", url.Values{"host": {"*.bücher.example"}}); got.status != http.StatusSeeOther {
		t.Fatalf("add a name in letters: %d %s", got.status, got.body)
	}
	page := b.get(list + "?did=host_added").html()
	if text := page.Find("[data-testid=hosts]").Text(); !strings.Contains(text, "registry.example.net") || !strings.Contains(text, "*.xn--bcher-kva.example") || !strings.Contains(text, "added by @"+owner) {
		t.Errorf("the list: %s", text)
	}
	if !strings.Contains(page.Text(), "mirror.operator.example") || !strings.Contains(page.Text(), "The host is on the list.") {
		t.Error("the page lacks the operator's hosts, or does not say what was done")
	}
	bad := b.post(list+"/hosts", url.Values{"host": {`https://"><script>alert(1)</script>/`}})
	field := bad.html().Find("input#host")
	if bad.status != http.StatusUnprocessableEntity || field.AttrOr("value", "") != `https://"><script>alert(1)</script>/` ||
		field.AttrOr("aria-invalid", "") != "true" || !strings.Contains(bad.html().Find("#host-error").Text(), "without https://") || strings.Contains(bad.body, "<script>alert") {
		t.Errorf("a bad pattern: %d %s", bad.status, bad.html().Find("form").Text())
	}
	if got := b.post(list+"/hosts/remove", url.Values{"host": {"registry.example.net"}}); got.location() != list+"?did=host_removed" {
		t.Errorf("remove: %d to %s", got.status, got.location())
	}
	if hosts, err := r.store.RepositoryHosts(t.Context(), core.RepositoryID(r.repository)); err != nil || len(hosts) != 1 {
		t.Errorf("after the removal: %+v, %v", hosts, err)
	}
}

func TestNetwork_ARefusedHostIsAllowedByOneClick(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id, claim := b.listed()
	path := "/chat-sessions/" + string(id)
	r.reached(t, claim, "mirror.operator.example", 443, true, "host_listed")
	r.reached(t, claim, "registry.example.net", 443, false, "host_not_allowed")
	r.reached(t, claim, "registry.example.net", 80, false, "host_not_allowed")
	r.reached(t, claim, "internal.example.com", 443, false, "address_not_public")

	page := b.get(path).html()
	panel := page.Find("#network")
	if rows := panel.Find("[data-testid=connection]"); rows.Length() != 4 || rows.Filter("[data-outcome=refused]").Length() != 3 {
		t.Errorf("the panel: %s", panel.Text())
	}
	form := panel.Find("form")
	if form.Length() != 1 || form.AttrOr("action", "") != path+"/network/hosts" || form.Find("input[name=host]").AttrOr("value", "") != "registry.example.net" {
		t.Fatalf("the buttons: %d, %s", form.Length(), form.Text())
	}
	// Where nothing would redraw the panel, the button is a form that comes back.
	for path, live := range map[string]bool{path: true, path + "/network": false, path + "?before=99": false} {
		if _, got := b.get(path).html().Find("#network form").Attr("hx-post"); got != live {
			t.Errorf("%s: by htmx %v, want %v", path, got, live)
		}
	}
	if notes := page.Find("#timeline [data-testid=note]").Text(); !strings.Contains(notes, "The network refused registry.example.net") {
		t.Errorf("the timeline: %s", notes)
	}
	for _, login := range []string{reader, colleague} {
		if got := r.signedIn(t, login).get(path).html().Find("#network form").Length() == 1; got != (login == colleague) {
			t.Errorf("%s sees a button: %v", login, got)
		}
	}
	if got := r.signedIn(t, reader).post(path+"/network/hosts", url.Values{"host": {"registry.example.net"}}); got.status != http.StatusForbidden {
		t.Errorf("a reader presses it: %d", got.status)
	}

	live := b.stream(path + "/stream?after=" + page.Find("#stream").AttrOr("data-seq", ""))
	got := b.post(path+"/network/hosts", url.Values{"host": {"registry.example.net"}}, "HX-Request", "true")
	if got.status != http.StatusNoContent {
		t.Fatalf("the button with htmx: %d %s", got.status, got.body)
	}
	fragment := nextWith(t, live, `id="network"`)
	if !strings.Contains(fragment, "On the list now") || strings.Contains(fragment, "Allow this host") || !strings.Contains(fragment, "@"+owner+" allowed registry.example.net") {
		t.Errorf("the stream: %s", fragment)
	}
	if policy, err := r.store.SessionEgress(t.Context(), id); err != nil || !policy.Listed("registry.example.net") {
		t.Errorf("the policy: %+v, %v", policy, err)
	}
	// Without JavaScript the same form comes back to the panel.
	if got := b.post(path+"/network/hosts", url.Values{"host": {"internal.example.com"}}); got.status != http.StatusSeeOther || got.location() != path+"?tab=details&did=host_allowed#network" {
		t.Errorf("without htmx: %d to %s", got.status, got.location())
	}
	if page := b.get(path).html(); page.Find("#network form").Length() != 0 {
		t.Error("a button is still there")
	}
}

// nextWith is the next message of a stream that holds text.
func nextWith(t *testing.T, s *sse, text string) string {
	t.Helper()
	for {
		m, ok := s.next()
		if !ok {
			t.Fatalf("the stream ended without %q", text)
		}
		if strings.Contains(m.data, text) {
			return m.data
		}
	}
}

func TestNetwork_IsBoundedOnThePageAndWholeOnItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id, claim := b.listed()
	for i := range 35 {
		r.reached(t, claim, fmt.Sprintf("h%d.example.com", i), 443, i%2 == 0, "host_not_allowed")
	}
	path := "/chat-sessions/" + string(id)
	panel := b.get(path).html().Find("#network")
	if n := panel.Find("[data-testid=connection]").Length(); n != 30 || panel.Find("a[href='"+path+"/network']").Length() != 1 {
		t.Errorf("%d rows in the panel: %s", n, panel.Text())
	}
	if n := b.get(path + "/network").html().Find("[data-testid=connection]").Length(); n != 35 {
		t.Errorf("%d rows on the page", n)
	}
	var all struct {
		Mode               string
		Contacted, Refused int
		Connections        []struct{ Host, Rule string }
	}
	b.json(http.MethodGet, path+"/network", nil).into(&all)
	if len(all.Connections) != 35 || all.Contacted != 18 || all.Refused != 17 || all.Mode != "allowlist" || all.Connections[0].Host != "h34.example.com" {
		t.Errorf("in JSON: %+v", all)
	}
}

// What a program calls a host reaches the pages as text, whatever it is.
func TestNetwork_HostileHostsAreText(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	id, claim := b.listed()
	hostile := []string{
		`<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, `'><svg onload=alert(1)>.example`, `</hx-partial><hx-partial hx-target="#head">`,
		`{{constructor.constructor('alert(1)')()}}`, "a\r\nid: 999\r\n\r\n.example", "moc.elpmaxe\u202egnp.\u202dx", "javascript:alert(1)//", "x\x1b[2J.example", `" onfocus=alert(1) autofocus x="`,
	}
	path := "/chat-sessions/" + string(id)
	live := b.stream(path + "/stream?after=" + b.get(path).html().Find("#stream").AttrOr("data-seq", ""))
	for _, host := range hostile {
		r.reached(t, claim, host, 443, false, "host_not_allowed")
	}
	for name, body := range map[string]string{
		"page": b.get(path).body, "log": b.get(path + "/network").body, "stream": nextWith(t, live, `id="network"`),
	} {
		doc := answer{t: t, body: body}.html()
		if doc.Find("script:not([src^='/static/']), svg[onload], img[onerror], [onfocus], #network hx-partial").Length() > 0 || strings.Contains(body, "\u202e") || strings.Contains(body, "\x1b") {
			t.Errorf("the %s lets a host in as markup:\n%s", name, body)
		}
		if doc.Find("#network form").Length() > 0 {
			t.Errorf("the %s offers to allow what is no host", name)
		}
	}
}
