package github

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gh "github.com/google/go-github/v62/github"

	"agent-sandboxing/core"
)

// Whatever a repository's JSON holds, what is believed can stand in an address and a file name.
func FuzzRepository(f *testing.F) {
	f.Add(`{"id":1,"name":"a","owner":{"login":"b"},"permissions":{"push":true},"pushed_at":"2025-01-01T00:00:00Z"}`)
	f.Add(`{"id":1,"name":"..","owner":{"login":"b"}}`)
	f.Add(`{"id":1,"name":"a/b","owner":{"login":"b"},"pushed_at":1700000000}`)
	f.Add(`{"id":-1,"name":null,"owner":null}`)
	f.Fuzz(func(t *testing.T, data string) {
		var r gh.Repository
		if json.Unmarshal([]byte(data), &r) != nil {
			return
		}
		repo, err := repository(&r)
		if err != nil {
			return
		}
		for _, name := range []string{repo.Owner, repo.Name} {
			if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\ \x00\n?#%@:") {
				t.Errorf("believed the name %q", name)
			}
		}
		if repo.ID <= 0 {
			t.Errorf("believed the id %d", repo.ID)
		}
	})
}

// Whatever GitHub's Link header says, paging ends, goes forward and asks our own path only.
func FuzzEachPage(f *testing.F) {
	f.Add(`<https://api.github.com/x?page=2>; rel="next", <https://api.github.com/x?page=9>; rel="last"`, 3)
	f.Add(`<https://evil.example/?page=1>; rel="next"`, 5)
	f.Add(`<?page=-1>; rel=next`, 1)
	f.Add(`<x?page=99999999999999999999>; rel="next"`, 1)
	f.Fuzz(func(t *testing.T, link string, rows int) {
		rows = max(0, min(rows, 100))
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Link"] = []string{strings.Map(printable, link)}
			_, _ = w.Write([]byte("[]"))
		}))
		defer srv.Close()
		client, err := newClient(newHTTPClient(0, nil), Bases{API: srv.URL}, "t")
		if err != nil {
			t.Fatal(err)
		}
		last, calls := 0, 0
		err = eachPage(300, func(o gh.ListOptions) (int, *gh.Response, error) {
			calls++
			if o.Page <= last || calls > 301 {
				t.Fatalf("page %d after %d, call %d", o.Page, last, calls)
			}
			last = o.Page
			_, resp, err := client.Repositories.ListBranches(t.Context(), "o", "r", &gh.BranchListOptions{ListOptions: o})
			return rows, resp, err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// Whatever GitHub refuses with, a person reads plain text and a limit lies within the next hour.
func FuzzClassify(f *testing.F) {
	f.Add(403, "required; url=https://github.com/orgs/octo/sso", "0", "1700000000", "x")
	f.Add(429, "", "", "-5", "secondary rate limit")
	f.Add(422, "", "", "", "Validation Failed")
	f.Fuzz(func(t *testing.T, status int, sso, remaining, at, text string) {
		status = 400 + max(0, min(status, 999))%200
		now := time.Unix(1_700_000_000, 0)
		h := http.Header{"X-Github-Sso": {sso}, "X-Ratelimit-Remaining": {remaining}, "X-Ratelimit-Reset": {at}, "Retry-After": {at}}
		err := classify(context.Background(), &gh.ErrorResponse{Response: &http.Response{StatusCode: status, Header: h}, Message: text}, byPerson, now)
		message := core.MessageOf(err)
		if core.CodeOf(err) == "internal" || strings.ContainsAny(message, "<>&\n\x00") {
			t.Errorf("status %d: %s %q", status, core.CodeOf(err), message)
		}
		if e, ok := errors.AsType[*core.Error](err); !ok || !e.RetryAt.IsZero() && (e.RetryAt.Before(now) || e.RetryAt.After(now.Add(time.Hour))) {
			t.Errorf("retry at %v, from %v", err, now)
		}
	})
}
