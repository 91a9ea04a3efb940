package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

func inTxExec(t *testing.T, s *store.Store, sql string, args ...any) error {
	t.Helper()
	return s.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	})
}

func newSession(owner core.UserID, title, key string) core.NewSession {
	return core.NewSession{
		Session: core.ChatSession{
			OwnerID: owner, Repository: storetest.Repository(), BaseBranch: "main", BaseSHA: storetest.BaseSHA,
			Title: title, BashPolicy: core.PolicyBuild,
		},
		Text: "Do it", ClientKey: key,
	}
}

func TestCreateSession_KeepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s)
	in := newSession(owner.ID, "Title", "")
	in.Session.ID = core.NewID[core.SessionID]()
	in.Session.DefaultBranchSHA = storetest.BaseSHA
	in.Session.Repository.PushedAt = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	got, err := s.CreateSession(t.Context(), in)
	must(t, err)
	want := in.Session
	want.Branch = core.BranchFor(want.ID)
	want.LastSequence = 2
	want.EgressMode = core.EgressNone                               // nothing is open that nobody opened
	want.Repository.CanPull, want.Repository.CanPush = false, false // a person's permissions are not stored
	want.CreatedAt, want.UpdatedAt = got.CreatedAt, got.UpdatedAt
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
	if got.CreatedAt.Location() != time.UTC || time.Since(got.CreatedAt).Abs() > time.Minute {
		t.Errorf("created at %s, want now, in UTC", got.CreatedAt)
	}
	read, err := s.Session(t.Context(), got.ID)
	if diff := cmp.Diff(got, read); err != nil || diff != "" {
		t.Errorf("Session: %v (-created +read):\n%s", err, diff)
	}
	wantTypes(t, s, got.ID, "session_created", "message_queued")
	if _, err := s.Session(t.Context(), core.NewID[core.SessionID]()); core.KindOf(err) != core.NotFound {
		t.Errorf("Session of no id: %v", err)
	}
}

func TestCreateSession_DoubleSubmitIsOneSession(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s)
	ids := make([]core.SessionID, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			session, err := s.CreateSession(t.Context(), newSession(owner.ID, "Once", "key-1"))
			if err != nil {
				t.Errorf("CreateSession: %v", err)
			}
			ids[i] = session.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("ids = %v, want one", ids)
		}
	}
	other, err := s.CreateSession(t.Context(), newSession(storetest.User(t, s).ID, "Other", "key-1"))
	if err != nil || other.ID == ids[0] {
		t.Errorf("another person's same key: %s, %v, want a session of their own", other.ID, err)
	}
}

func TestCreateSession_RefusesWhatTheTableForbids(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s)
	for name, change := range map[string]func(*core.ChatSession){
		"a short SHA":       func(c *core.ChatSession) { c.BaseSHA = "abc123" },
		"a foreign branch":  func(c *core.ChatSession) { c.Branch = "main" },
		"no base branch":    func(c *core.ChatSession) { c.BaseBranch = "" },
		"an unknown policy": func(c *core.ChatSession) { c.BashPolicy = "yolo" },
		"no such owner":     func(c *core.ChatSession) { c.OwnerID = core.NewID[core.UserID]() },
	} {
		in := newSession(owner.ID, "T", "")
		change(&in.Session)
		if _, err := s.CreateSession(t.Context(), in); err == nil {
			t.Errorf("CreateSession with %s succeeded", name)
		}
	}
	rows, err := s.Sessions(t.Context(), core.SessionFilter{})
	if err != nil || len(rows) != 0 {
		t.Errorf("after refusals: %d sessions, %v", len(rows), err)
	}
}

func TestRenameArchiveSummary(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	must(t, s.RenameSession(t.Context(), id, "New name"))
	must(t, s.SaveSummary(t.Context(), claim.Lease, claim.Message.ID, core.Compaction{Summary: "They added a check.", ByModel: true}))
	wantTypes(t, s, id, "session_renamed", "summary_updated")
	if err := s.ArchiveSession(t.Context(), id, true); core.CodeOf(err) != "session_busy" {
		t.Errorf("archiving a working session: %v, want session_busy", err)
	}
	storetest.Finish(t, s, claim, "ok")
	for range 2 { // repeating it changes nothing
		must(t, s.ArchiveSession(t.Context(), id, true))
	}
	wantTypes(t, s, id, "message_completed", "session_archived")
	must(t, s.ArchiveSession(t.Context(), id, false))
	wantTypes(t, s, id, "session_archived", "session_unarchived")
	got, err := s.Session(t.Context(), id)
	if err != nil || got.Title != "New name" || got.Summary != "They added a check." || got.Archived {
		t.Errorf("session = %+v, %v", got, err)
	}
	unknown := core.NewID[core.SessionID]()
	for name, err := range map[string]error{
		"rename": s.RenameSession(t.Context(), unknown, "x"), "archive": s.ArchiveSession(t.Context(), unknown, true),
	} {
		if core.KindOf(err) != core.NotFound {
			t.Errorf("%s of no session: %v", name, err)
		}
	}
}

// list makes one session per state that the list tells apart and returns their ids by title.
func list(t *testing.T, s *store.Store, owner core.UserID) map[string]core.SessionID {
	t.Helper()
	ids := map[string]core.SessionID{}
	add := func(title string, act func(core.Claim)) {
		session, err := s.CreateSession(t.Context(), newSession(owner, title, ""))
		must(t, err)
		ids[title] = session.ID
		claim := storetest.Claim(t, s)
		act(claim)
		// The one at work keeps its lease.
		if err := s.Release(t.Context(), claim.Lease); err != nil && !errors.Is(err, core.ErrLeaseLost) {
			t.Fatal(err)
		}
	}
	start := func(c core.Claim) {
		_, err := s.StartMessage(t.Context(), c.Lease, c.Message.ID, "m")
		must(t, err)
	}
	done := func(c core.Claim, files []core.ChangedFile) {
		start(c)
		must(t, s.SaveDiff(t.Context(), c.Lease, core.Artifact{ID: core.NewID[core.ArtifactID](), MessageID: c.Message.ID}, files))
		must(t, s.FinishMessage(t.Context(), c.Lease, core.Finish{MessageID: c.Message.ID, State: core.Completed, Answer: "ok"}))
	}
	files := []core.ChangedFile{{Path: "a", Status: "modified", Additions: 5, Deletions: 2}}
	add("failed one", func(c core.Claim) {
		must(t, s.FailQueued(t.Context(), c.Lease, c.Message.ID, "image_missing", "x"))
	})
	add("nothing changed", func(c core.Claim) { done(c, nil) })
	add("to review", func(c core.Claim) { done(c, files) })
	add("published 100%_done", func(c core.Claim) {
		done(c, files)
		p := core.Publication{ID: core.NewID[core.PublicationID](), Step: core.PublishDone, Outcome: core.PublishOpened, Number: 7}
		must(t, s.FinishPublication(t.Context(), c.Lease, p, core.PullRequest{Number: 7, URL: "https://github.test/7", State: "open", HeadSHA: storetest.BaseSHA, Title: "T"}))
	})
	add("archived", func(c core.Claim) { done(c, files) })
	must(t, s.ArchiveSession(t.Context(), ids["archived"], true))
	add("at work", func(c core.Claim) {
		must(t, s.SaveSandbox(t.Context(), c.Lease, core.Sandbox{ID: core.NewID[core.SandboxID](), SessionID: c.Session.ID, State: core.SandboxReady, Host: "host-1", Generation: 1}))
		start(c)
		post(t, s, c.Session, "And then")
		post(t, s, c.Session, "And then")
	})
	return ids
}

func TestSessions_FiltersAndPages(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s)
	list(t, s, owner.ID)
	stranger := storetest.User(t, s)
	_, err := s.CreateSession(t.Context(), newSession(stranger.ID, "stranger's", ""))
	must(t, err)

	for name, c := range map[string]struct {
		filter core.SessionFilter
		want   []string
	}{
		"own":                 {core.SessionFilter{Owner: owner.ID}, []string{"at work", "published 100%_done", "to review", "nothing changed", "failed one"}},
		"everybody's":         {core.SessionFilter{}, []string{"stranger's", "at work", "published 100%_done", "to review", "nothing changed", "failed one"}},
		"active":              {core.SessionFilter{Owner: owner.ID, State: "active"}, []string{"at work"}},
		"review":              {core.SessionFilter{Owner: owner.ID, State: "review"}, []string{"to review"}},
		"failed":              {core.SessionFilter{Owner: owner.ID, State: "failed"}, []string{"failed one"}},
		"archived by state":   {core.SessionFilter{Owner: owner.ID, State: "archived"}, []string{"archived"}},
		"archived by flag":    {core.SessionFilter{Owner: owner.ID, Archived: true}, []string{"archived"}},
		"title":               {core.SessionFilter{Owner: owner.ID, Query: " TO REV "}, []string{"to review"}},
		"wildcards literally": {core.SessionFilter{Owner: owner.ID, Query: "100%_d"}, []string{"published 100%_done"}},
		"no wildcard":         {core.SessionFilter{Owner: owner.ID, Query: "n%d"}, nil},
		"repository":          {core.SessionFilter{Owner: owner.ID, Query: "org/web", Limit: 1}, []string{"at work"}},
	} {
		rows, err := s.Sessions(t.Context(), c.filter)
		must(t, err)
		var got []string
		for _, r := range rows {
			got = append(got, r.Session.Title)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	var got []string
	f := core.SessionFilter{Owner: owner.ID, Limit: 2}
	for {
		rows, err := s.Sessions(t.Context(), f)
		must(t, err)
		if len(rows) == 0 {
			break
		}
		for _, r := range rows {
			got = append(got, r.Session.Title)
		}
		f.Before = rows[len(rows)-1].Session.UpdatedAt
	}
	if diff := cmp.Diff([]string{"at work", "published 100%_done", "to review", "nothing changed", "failed one"}, got); diff != "" {
		t.Errorf("pages of two (-want +got):\n%s", diff)
	}
}

func TestSessions_ARowTellsTheSessionsState(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s)
	list(t, s, owner.ID)
	rows, err := s.Sessions(t.Context(), core.SessionFilter{Owner: owner.ID})
	must(t, err)
	atWork, published := rows[0], rows[1]
	if atWork.LastState != core.Working || atWork.QueuedCount != 2 || atWork.StartedAt.IsZero() || atWork.Sandbox != core.SandboxReady ||
		atWork.OwnerLogin != owner.Login || atWork.PullRequest != nil {
		t.Errorf("at work: %+v", atWork)
	}
	want := &core.PullRequest{SessionID: published.Session.ID, Number: 7, URL: "https://github.test/7", State: "open", HeadSHA: storetest.BaseSHA, Title: "T"}
	if published.PullRequest != nil {
		want.UpdatedAt = published.PullRequest.UpdatedAt
	}
	if diff := cmp.Diff(want, published.PullRequest); diff != "" {
		t.Errorf("pull request (-want +got):\n%s", diff)
	}
	if published.LastState != core.Completed || published.Files != 1 || published.Additions != 5 || published.Deletions != 2 || published.QueuedCount != 0 {
		t.Errorf("published: %+v", published)
	}
}
