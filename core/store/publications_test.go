package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

func count(t *testing.T, s *store.Store, sql string, args ...any) int {
	t.Helper()
	var n int
	must(t, s.InTx(t.Context(), func(tx *store.Tx) error { return tx.QueryRow(t.Context(), sql, args...).Scan(&n) }))
	return n
}

func TestRequestPublish_OneAtATime(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	in := core.Publication{SessionID: session.ID, RequestedBy: session.OwnerID, ClientKey: "key-1", Title: "T", Body: "B"}
	ids := make([]core.PublicationID, 6)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			p, err := s.RequestPublish(t.Context(), in, nil)
			if err != nil {
				t.Errorf("RequestPublish: %v", err)
			}
			ids[i] = p.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("ids = %v, want one", ids)
		}
	}
	got, err := s.Publication(t.Context(), session.ID, ids[0])
	must(t, err)
	want := in
	want.ID, want.Step, want.LeftOut, want.CreatedAt = ids[0], core.PublishRequested, []string{}, got.CreatedAt
	want.Conflicts = []string{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("publication (-want +got):\n%s", diff)
	}
	wantTypes(t, s, session.ID, "message_queued", "publication_requested")
	in.ClientKey = "key-2"
	if _, err := s.RequestPublish(t.Context(), in, nil); core.CodeOf(err) != "publish_pending" || core.KindOf(err) != core.Conflict {
		t.Errorf("while one is unfinished: %v, want Conflict publish_pending", err)
	}
	other := storetest.Session(t, s, session.OwnerID)
	if _, err := s.Publication(t.Context(), other.ID, ids[0]); core.KindOf(err) != core.NotFound {
		t.Errorf("Publication of another session: %v", err)
	}
}

func TestPublication_TheLedgerThroughItsSteps(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	for name, read := range map[string]func() (bool, error){
		"LastPublished": func() (bool, error) { p, err := s.LastPublished(t.Context(), id); return p == nil, err },
		"PullRequest":   func() (bool, error) { p, err := s.PullRequest(t.Context(), id); return p == nil, err },
		"WithCommit":    func() (bool, error) { p, err := s.WithCommit(t.Context(), id); return len(p) == 0, err },
	} {
		if none, err := read(); !none || err != nil {
			t.Errorf("%s before any: none = %v, %v", name, none, err)
		}
	}
	p := core.Publication{
		ID: core.NewID[core.PublicationID](), SessionID: id, MessageID: claim.Message.ID, RequestedBy: claim.Owner.ID,
		Title: "T", Body: "B", Step: core.PublishRequested, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	step := func(event core.EventType) {
		t.Helper()
		must(t, s.SavePublication(t.Context(), claim.Lease, p, core.PublicationChanged{Type: event, PublicationID: p.ID}))
		got, err := s.Publication(t.Context(), id, p.ID)
		must(t, err)
		want := p
		want.FinishedAt = got.FinishedAt
		if want.LeftOut == nil {
			want.LeftOut = []string{}
		}
		if want.Conflicts == nil {
			want.Conflicts = []string{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", p.Step, diff)
		}
		wantTypes(t, s, id, event)
	}
	step("publication_requested")
	p.Step, p.TreeSHA, p.CommitSHA, p.RemoteBefore, p.LeftOut = core.PublishCommitted, "tree", "commit", "before", []string{"big.bin: larger than 1 MiB"}
	p.WaitingUntil, p.WaitingReason = time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC), "rate limit"
	step("publication_committed")
	if last, err := s.LastPublished(t.Context(), id); last != nil || err != nil {
		t.Errorf("LastPublished before a push = %+v, %v", last, err)
	}
	p.Step, p.WaitingUntil, p.WaitingReason = core.PublishPushed, time.Time{}, ""
	step("publication_pushed")

	p.Step, p.Outcome, p.Number = core.PublishDone, core.PublishOpened, 41
	pr := core.PullRequest{SessionID: id, Number: 41, URL: "https://github.test/41", State: "open", HeadSHA: "commit", Title: "T", Body: "never stored"}
	must(t, s.FinishPublication(t.Context(), claim.Lease, p, pr, core.PullRequestChanged{Opened: true, Number: 41}))
	wantTypes(t, s, id, "publication_pushed", "pull_request_opened")
	got, err := s.PullRequest(t.Context(), id)
	must(t, err)
	pr.Body, pr.UpdatedAt = "", got.UpdatedAt
	if diff := cmp.Diff(&pr, got); diff != "" {
		t.Errorf("pull request (-want +got):\n%s", diff)
	}
	if err := s.SavePublication(t.Context(), claim.Lease, p); core.CodeOf(err) != "publish_finished" {
		t.Errorf("writing a finished one: %v, want publish_finished", err)
	}

	failed := core.Publication{ID: core.NewID[core.PublicationID](), Step: core.PublishPushed, CommitSHA: "commit-2"}
	must(t, s.SavePublication(t.Context(), claim.Lease, failed))
	failed.Step, failed.FailureCode = core.PublishFailed, "github_unavailable"
	must(t, s.SavePublication(t.Context(), claim.Lease, failed))
	if last, err := s.LastPublished(t.Context(), id); err != nil || last.ID != failed.ID || last.FinishedAt.IsZero() {
		t.Errorf("LastPublished = %+v, %v, want the newest that was pushed, though it failed later", last, err)
	}
	unchanged := core.Publication{ID: core.NewID[core.PublicationID](), Step: core.PublishDone, Outcome: core.PublishUnchanged}
	pr.State = "merged"
	must(t, s.FinishPublication(t.Context(), claim.Lease, unchanged, pr))
	if got, err := s.PullRequest(t.Context(), id); err != nil || got.State != "merged" {
		t.Errorf("pull request = %+v, %v", got, err)
	}
	if last, err := s.LastPublished(t.Context(), id); err != nil || last.ID != failed.ID {
		t.Errorf("LastPublished after one that pushed nothing = %+v, %v", last, err)
	}
	open := core.Publication{ID: core.NewID[core.PublicationID](), Step: core.PublishCommitted, CommitSHA: "commit-3"}
	must(t, s.SavePublication(t.Context(), claim.Lease, open))
	made, err := s.WithCommit(t.Context(), id)
	must(t, err)
	var commits []string
	for _, p := range made {
		commits = append(commits, p.CommitSHA)
	}
	if diff := cmp.Diff([]string{"commit-3", "commit-2", "commit"}, commits); diff != "" {
		t.Errorf("WithCommit (-want +got):\n%s", diff)
	}
}

func TestRequestPublish_KeepsTheChosenPaths(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session, other := storetest.Session(t, s, storetest.User(t, s).ID), storetest.Session(t, s, storetest.User(t, s).ID)
	in := core.Publication{SessionID: session.ID, RequestedBy: session.OwnerID, Title: "T", Draft: true, Base: "release", Choice: core.ChooseNew}
	for _, step := range []struct{ paths, want core.PathChoices }{
		{core.PathChoices{"a.bin": true, "odd '\"\\ name": false}, core.PathChoices{"a.bin": true, "odd '\"\\ name": false}},
		{nil, core.PathChoices{"a.bin": true, "odd '\"\\ name": false}},
		{core.PathChoices{"b": true}, core.PathChoices{"b": true}},
		{core.PathChoices{}, core.PathChoices{}},
	} {
		p, err := s.RequestPublish(t.Context(), in, step.paths)
		must(t, err)
		if !p.Draft || p.Base != "release" || p.Choice != core.ChooseNew {
			t.Errorf("publication = %+v", p)
		}
		got, err := s.PathChoices(t.Context(), session.ID)
		must(t, err)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", step.paths, diff)
		}
		must(t, s.CancelPublication(t.Context(), session.ID, p.ID))
	}
	if got, err := s.PathChoices(t.Context(), other.ID); err != nil || len(got) != 0 {
		t.Errorf("of another session: %v, %v", got, err)
	}
}

func TestPullRequestRead_TellsOfAnotherState(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	claim := storetest.Claim(t, s)
	pr := core.PullRequest{Number: 7, URL: "https://github.com/o/r/pull/7", State: core.PullOpen, Draft: true, HeadSHA: storetest.BaseSHA, Base: "main", Title: "T", Behind: 2}
	must(t, s.SavePullRequest(t.Context(), claim.Lease, pr))
	stale := func() core.PullRequest {
		t.Helper()
		storetest.Exec(t, s, `UPDATE pull_requests SET stale_at = clock_timestamp()`)
		known, err := s.PullRequest(t.Context(), session.ID)
		must(t, err)
		if known.StaleAt.IsZero() {
			t.Fatal("the mark is not read")
		}
		return *known
	}
	before := count(t, s, `SELECT count(*) FROM events`)
	now := stale()
	now.Draft = false
	must(t, s.PullRequestRead(t.Context(), session.ID, now))
	if got, err := s.PullRequest(t.Context(), session.ID); err != nil || got.Draft || !got.StaleAt.IsZero() || got.Behind != 2 || got.Title != "T" {
		t.Errorf("record = %+v, %v", got, err)
	}
	if n := count(t, s, `SELECT count(*) FROM events`); n != before {
		t.Errorf("%d events of no other state", n-before)
	}
	now = stale()
	stale() // GitHub says so again while it is read
	now.State = core.PullMerged
	must(t, s.PullRequestRead(t.Context(), session.ID, now))
	if got, err := s.PullRequest(t.Context(), session.ID); err != nil || got.State != core.PullMerged || got.StaleAt.IsZero() {
		t.Errorf("record = %+v, %v", got, err)
	}
	if n := count(t, s, `SELECT count(*) FROM events WHERE type = 'pull_request_merged'`); n != 1 {
		t.Errorf("%d events", n)
	}
	now.Number, now.State = 8, core.PullClosed
	must(t, s.PullRequestRead(t.Context(), session.ID, now)) // another one
	if got, err := s.PullRequest(t.Context(), session.ID); err != nil || got.State != core.PullMerged {
		t.Errorf("record = %+v, %v", got, err)
	}
}
