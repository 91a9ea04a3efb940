package publish_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/store/storetest"
)

// limited lets GitHub refuse requests of one route for rate, as a secondary limit without headers or a
// primary one with them.
func (w *world) limited(pattern string, reset time.Time) {
	f := githubtest.Fault{Pattern: pattern, Status: http.StatusForbidden, Body: `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`}
	if !reset.IsZero() {
		f.Body = `{"message":"API rate limit exceeded","documentation_url":"https://docs.github.com/rest"}`
		f.Header = http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Reset": {strconv.FormatInt(reset.Unix(), 10)}}
	}
	w.github.Fail(f)
}

func TestPublish_WaitsForARateLimitAndGoesOn(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]string{
		"before the commit":         "GET /api/v3/repos/{owner}/{repo}/pulls",
		"after the push was done":   "POST /api/v3/repos/{owner}/{repo}/pulls",
		"already for the new token": "POST /api/v3/app/installations/{id}/access_tokens",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s, ws := w.session(t, map[string]string{"a.txt": "ours\n"})
			reset := time.Now().Add(20 * time.Minute).Truncate(time.Second)
			w.limited(pattern, reset)
			_, err := w.publish(t, s, ws, "Hello", "")
			wantCode(t, err, "github_rate_limited")
			if limit, ok := errors.AsType[*core.Error](err); !ok || !limit.RetryAt.Equal(reset) || !strings.Contains(limit.Message, "by itself") {
				t.Errorf("err = %+v", err)
			}
			if events := w.events(t, s); events[len(events)-1] != "publication_waiting" {
				t.Errorf("events = %v", events)
			}
			claim, err := w.store.Claim(t.Context(), w.worker, storetest.Lease, core.Budgets{}) // the session's message
			if err != nil || claim.Publication != nil {
				t.Fatalf("claimed before its time: %+v, %v", claim.Publication, err)
			}
			if err := w.store.Release(t.Context(), claim.Lease); err != nil {
				t.Fatal(err)
			}
			w.github.ClearFaults()
			storetest.Exec(t, w.store, `UPDATE publications SET waiting_until = clock_timestamp()`)
			if result, err := w.serve(t, w.options, s, ws); err != nil || result.Outcome != core.PublishOpened {
				t.Errorf("result = %+v, %v", result, err)
			}
			if pulls := w.pulls(t, s); len(pulls) != 1 {
				t.Errorf("%d pull requests", len(pulls))
			}
		})
	}
}

func TestPublish_WaitsLongerEachTimeAndThenEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"a.txt": "ours\n"})
	w.limited("GET /api/v3/repos/{owner}/{repo}/pulls", time.Time{})
	w.ask(t, s, "Hello", "")
	last := time.Duration(0)
	for range 5 {
		before := time.Now()
		_, err := w.serve(t, w.options, s, ws)
		limit, ok := errors.AsType[*core.Error](err)
		if !ok || limit.RetryAt.Sub(before) <= last {
			t.Fatalf("waits until %v after %v: %v", limit, last, err)
		}
		last = limit.RetryAt.Sub(before)
		storetest.Exec(t, w.store, `UPDATE publications SET waiting_until = clock_timestamp()`)
	}
	_, err := w.serve(t, w.options, s, ws)
	wantCode(t, err, "github_rate_limited")
	if events := w.events(t, s); events[len(events)-1] != "publication_failed" {
		t.Errorf("events = %v", events)
	}
}

func TestPublish_ThatWaitsCanBeCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"a.txt": "ours\n"})
	w.limited("GET /api/v3/repos/{owner}/{repo}/pulls", time.Now().Add(time.Hour))
	w.ask(t, s, "Hello", "")
	claim, err := w.store.Claim(t.Context(), w.worker, storetest.Lease, core.Budgets{})
	if err != nil {
		t.Fatal(err)
	}
	id := claim.Publication.ID
	_, err = publish.New(w.options).Publish(t.Context(), claim, *claim.Publication, ws)
	wantCode(t, err, "github_rate_limited")
	if err := w.store.CancelPublication(t.Context(), s.ID, id); err != nil { // a worker still has it
		t.Fatal(err)
	}
	if err := w.store.Release(t.Context(), claim.Lease); err != nil {
		t.Fatal(err)
	}
	before := len(w.github.Requests())
	_, err = w.serve(t, w.options, s, ws) // at once, not when the limit ends
	wantCode(t, err, "publish_cancelled")
	if after := len(w.github.Requests()); after != before {
		t.Errorf("GitHub was asked %d times to cancel", after-before)
	}
	wantCode(t, w.store.CancelPublication(t.Context(), s.ID, id), "publish_not_waiting")
	w.github.ClearFaults()
	w.must(t, s, ws, "Hello", "")
}
