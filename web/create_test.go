package web_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/handlers"
)

// formOf reads a form of a page as a browser would send it.
func formOf(a answer, selector string) (action string, values url.Values) {
	a.t.Helper()
	form := a.html().Find(selector)
	if form.Length() == 0 {
		a.t.Fatalf("no form %q in the page:\n%s", selector, a.body)
	}
	values = url.Values{}
	fields := form.First().Find("input[name], textarea[name]")
	for i := range fields.Nodes {
		f := fields.Eq(i)
		if _, ticked := f.Attr("checked"); f.Is("[type=checkbox]") && !ticked {
			continue
		}
		value, _ := f.Attr("value")
		if f.Is("textarea") {
			value = f.Text()
		}
		values.Add(f.AttrOr("name", ""), value)
	}
	return form.First().AttrOr("action", ""), values
}

func (r *rig) newPath(extra string) string {
	return "/new?installation=" + strconv.FormatInt(r.installation, 10) + extra
}

func (r *rig) chosenPath() string {
	return r.newPath("&repository=" + strconv.FormatInt(r.repository, 10))
}

func TestNewSession_WithoutJavaScript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)

	if a := b.get("/installations"); a.location() != r.newPath("") {
		t.Fatalf("one installation: %d to %q, want straight to the form", a.status, a.location())
	}
	search := b.get(r.newPath("&q=WEB")).html()
	link, ok := search.Find(`a[href*="repository="]`).First().Attr("href")
	if !ok || search.Find(`a[href*="repository="]`).Length() != 1 {
		t.Fatalf("search for WEB found %d repositories, want web-app alone", search.Find(`a[href*="repository="]`).Length())
	}
	form := b.get(link)
	if !strings.Contains(form.body, r.main[:7]) || !strings.Contains(form.html().Text(), "Start the server") {
		t.Errorf("the form does not show the base commit %s and its subject", r.main[:7])
	}
	action, values := formOf(form, `form[action="/chat-sessions"]`)
	values.Set("text", "Add a health check\n\nat /healthz")
	made := b.post(action, values)
	if made.status != http.StatusSeeOther || !strings.HasPrefix(made.location(), "/chat-sessions/") {
		t.Fatalf("create: %d to %q", made.status, made.location())
	}
	page := b.get(made.location())
	if page.status != http.StatusOK || !strings.Contains(page.html().Find("h1").Text()+page.html().Find("#head").Text(), "Add a health check") {
		t.Errorf("session page: %d", page.status)
	}
	if again := b.post(action, values); again.location() != made.location() {
		t.Errorf("double submit went to %q, want %q", again.location(), made.location())
	}
	var state struct {
		BaseSHA  string `json:"base_sha"`
		State    string
		Messages []struct{ Text, State string }
	}
	b.json(http.MethodGet, made.location(), nil).into(&state)
	if state.BaseSHA != r.main || state.State != "queued" || len(state.Messages) != 1 || state.Messages[0].Text != "Add a health check\n\nat /healthz" {
		t.Errorf("state = %+v", state)
	}
}

func TestCreate_DoubleSubmitAtOnceIsOneSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	form := url.Values{
		"installation": {strconv.FormatInt(r.installation, 10)}, "repository": {strconv.FormatInt(r.repository, 10)},
		"branch": {"main"}, "sha": {r.main}, "text": {"Once"}, "client_key": {"key-1"},
	}
	places := make([]string, 6)
	var wg sync.WaitGroup
	for i := range places {
		wg.Go(func() { places[i] = b.post("/chat-sessions", form).location() })
	}
	wg.Wait()
	for _, p := range places {
		if p != places[0] || p == "" {
			t.Fatalf("went to %q, want one place", places)
		}
	}
	if n := b.get("/").html().Find(`a[href="` + places[0] + `"]`).Length(); n == 0 {
		t.Error("the list does not have the session")
	}
}

func TestCreate_RefusesWhatTheFormDidNotShow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	_, values := formOf(b.get(r.chosenPath()), `form[action="/chat-sessions"]`)
	values.Set("text", "Change it")
	moved, err := r.github.Commit(t.Context(), "octo-org/web-app", githubtest.Commit{Message: "Somebody else", Files: map[string]githubtest.File{"a": githubtest.Text("a")}})
	if err != nil {
		t.Fatal(err)
	}
	page := b.post("/chat-sessions", values)
	if page.status != http.StatusConflict {
		t.Fatalf("branch moved: %d, want 409", page.status)
	}
	action, shown := formOf(page, `form[action="/chat-sessions"]`)
	if shown.Get("sha") != moved || shown.Get("text") != "Change it" || !strings.Contains(page.html().Text(), "Nothing was started") {
		t.Errorf("the form shows %s and %q, want the new commit %s and the text kept", shown.Get("sha"), shown.Get("text"), moved)
	}
	if again := b.post(action, shown); again.status != http.StatusSeeOther {
		t.Errorf("with the new commit: %d", again.status)
	}
	api := b.json(http.MethodPost, "/chat-sessions", handlers.CreateForm{Installation: r.installation, Repository: r.repository, SHA: r.main, Text: "x"})
	if api.status != http.StatusConflict || api.code() != "base_moved" {
		t.Errorf("JSON: %d %s", api.status, api.body)
	}
}

func TestCreate_Refusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	people := map[string]*browser{}
	for _, login := range []string{owner, reader, outsider, admin} {
		people[login] = r.signedIn(t, login)
	}
	for name, tt := range map[string]struct {
		who      string
		fullName string
		branch   string
		text     string
		status   int
		code     string
	}{
		"empty text":            {owner, "octo-org/web-app", "main", " \n\t", 422, "message_empty"},
		"too long":              {owner, "octo-org/web-app", "main", strings.Repeat("a", core.MaxMessageBytes+1), 413, "message_too_large"},
		"NUL":                   {owner, "octo-org/web-app", "main", "a\x00b", 422, "message_invalid"},
		"no such branch":        {owner, "octo-org/web-app", "gone", "x", 422, "branch_not_found"},
		"archived":              {owner, "octo-org/old-app", "main", "x", 409, "repository_archived"},
		"empty repository":      {owner, "octo-org/empty-app", "main", "x", 409, "empty_repository"},
		"read only":             {reader, "octo-org/web-app", "main", "x", 403, "push_required"},
		"may not see it":        {outsider, "octo-org/web-app", "main", "x", 404, "not_found"},
		"does not exist":        {owner, "octo-org/nothing", "main", "x", 404, "not_found"},
		"an admin gets no more": {admin, "octo-org/web-app", "main", "x", 404, "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := people[tt.who].json(http.MethodPost, "/chat-sessions", handlers.CreateForm{
				Installation: r.installation, FullName: tt.fullName, Branch: tt.branch, Text: tt.text,
			})
			if a.status != tt.status || a.code() != tt.code {
				t.Errorf("%d %s, want %d %s", a.status, a.body, tt.status, tt.code)
			}
		})
	}
}

func TestCreate_AsksGitHubAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	b.create("While I may")
	if err := r.github.SetPermission("octo-org/web-app", owner, githubtest.Pull); err != nil {
		t.Fatal(err)
	}
	a := b.json(http.MethodPost, "/chat-sessions", handlers.CreateForm{Installation: r.installation, Repository: r.repository, Text: "x"})
	if a.status != http.StatusForbidden || a.code() != "push_required" {
		t.Errorf("right after the right was taken away: %d %s, want push_required", a.status, a.body)
	}
}

func TestNew_LongTextIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	_, values := formOf(b.get(r.chosenPath()), `form[action="/chat-sessions"]`)
	values.Set("text", strings.Repeat("long\n", core.MaxMessageBytes/5+1))
	page := b.post("/chat-sessions", values)
	if page.status != http.StatusRequestEntityTooLarge {
		t.Fatalf("status %d, want 413", page.status)
	}
	_, shown := formOf(page, `form[action="/chat-sessions"]`)
	if diff := cmp.Diff(strings.TrimRight(values.Get("text"), "\n"), strings.TrimRight(shown.Get("text"), "\n")); diff != "" {
		t.Error("the text was not given back whole")
	}
	if huge := b.post("/chat-sessions", url.Values{"text": {strings.Repeat("a", 2<<20)}}); huge.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 2 MiB: %d, want 413", huge.status)
	}
}
