package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"agent-sandboxing/core/github/githubtest"
)

// asked counts what a step asks GitHub, by the last part of the route.
func (r *rig) asked(step func()) map[string]int {
	before := len(r.github.Requests())
	step()
	count := map[string]int{}
	for _, line := range r.github.Requests()[before:] {
		_, path, _ := strings.Cut(line, " ")
		path, _, _ = strings.Cut(path, "?")
		switch {
		case strings.HasSuffix(path, "/user/installations"):
			count["installations"]++
		case strings.HasSuffix(path, "/repositories"):
			count["list"]++
		case strings.HasSuffix(path, "/branches"):
			count["branches"]++
		case strings.Contains(path, "/git/matching-refs/"):
			count["prefix"]++
		case strings.Contains(path, "/git/"):
			count["commit"]++
		case strings.Contains(path, "/api/v3/repositories/"):
			count["repository"]++
		default:
			count[path]++
		}
	}
	return count
}

// In an account of 2,000 repositories and a repository of 5,000 branches each view costs a few requests,
// everything is found, and nothing needs JavaScript.
func TestLargeAccount_StaysQuickAndSearchable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	access := map[string]githubtest.Permission{owner: githubtest.Push}
	if err := r.github.AddRepositories(githubtest.Repository{Owner: "octo-org", Name: "service", Private: true, Access: access}, 1990); err != nil {
		t.Fatal(err)
	}
	last, err := r.github.AddRepository(githubtest.Repository{Owner: "octo-org", Name: "zz-monolith", Private: true, Access: access})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.github.Commit(t.Context(), "octo-org/zz-monolith", githubtest.Commit{Message: "Start", Files: map[string]githubtest.File{"a": githubtest.Text("a")}}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprintf("feature/ticket-%05d", i))
	}
	if err := r.github.AddBranches(t.Context(), "octo-org/zz-monolith", "main", append(names, "release/2026.1", "a-fix-of-april")...); err != nil {
		t.Fatal(err)
	}
	b := r.signedIn(t, owner)
	in := "/new?installation=" + strconv.FormatInt(r.installation, 10)
	chosen := in + "&repository=" + strconv.FormatInt(last, 10)
	var page answer
	var session string
	for _, step := range []struct {
		name string
		do   func()
		want map[string]int
		// list and says are what the page then holds
		list int
		says string
	}{
		{"first view", func() { page = b.get(in) }, map[string]int{"installations": 1, "list": 1}, 30, "search, or"},
		{"the newest of all", func() { page = b.get(in + "&all=1") }, map[string]int{"list": 20}, 30, "service-1989"},
		{"search", func() { page = b.get(in + "&q=Monolith") }, nil, 1, "zz-monolith"},
		{"search again", func() { page = b.get(in + "&q=service-17") }, nil, 30, "70 more"},
		{"exact name", func() { page = b.get(in + "&q=octo-org/service-0042") }, nil, 1, "service-0042"},
		{"choose", func() { page = b.get(chosen) }, map[string]int{"branches": 1, "commit": 2}, 30, "There are more branches"},
		{"a branch by its beginning", func() { page = b.get(chosen + "&branch_q=feature/ticket-0499") }, map[string]int{"prefix": 1, "branches": 10, "commit": 2}, 10, "feature/ticket-04990"},
		{"a part of a name", func() { page = b.get(chosen + "&branch_q=of-april") }, map[string]int{"prefix": 1, "commit": 2}, 1, "a-fix-of-april"},
		{"behind all that was scanned", func() { page = b.get(chosen + "&branch_q=release/") }, map[string]int{"prefix": 1, "commit": 2}, 1, "release/2026.1"},
		{"the default branch", func() { page = b.get(chosen + "&branch_q=MAIN") }, map[string]int{"prefix": 1, "commit": 2}, 1, "main"},
		{"create", func() {
			page = b.post("/chat-sessions", url.Values{"installation": {strconv.FormatInt(r.installation, 10)}, "repository": {strconv.FormatInt(last, 10)}, "branch": {"release/2026.1"}, "text": {"x"}})
			session = page.location()
		}, map[string]int{"list": 1, "repository": 1, "commit": 4}, 0, ""},
		{"the session", func() { page = b.get(session) }, nil, 0, "zz-monolith"},
		{"the session a minute later", func() { r.chat.AccessChanged(0); page = b.get(session) }, map[string]int{"list": 1}, 0, "zz-monolith"},
	} {
		got := r.asked(step.do)
		if fmt.Sprint(got) != fmt.Sprint(step.want) && len(got)+len(step.want) > 0 {
			t.Errorf("%s asks GitHub %v, want %v", step.name, got, step.want)
		}
		if page.status >= 400 || step.says != "" && !strings.Contains(page.body, step.says) {
			t.Errorf("%s: %d, does not say %q", step.name, page.status, step.says)
		}
		rows := page.html().Find("#repositories li, #branches li").Length()
		if step.list > 0 && rows != step.list {
			t.Errorf("%s shows %d rows, want %d", step.name, rows, step.list)
		}
	}
	if page.status != http.StatusOK {
		t.Fatalf("session: %d", page.status)
	}
}
