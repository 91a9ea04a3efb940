package store_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
)

func TestRecordDelivery_ActsOnceHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	h := listen(t, s)
	owner := storetest.User(t, s)
	session := storetest.Session(t, s, owner.ID)
	d := core.Delivery{GUID: "g-1", Event: "installation", Action: "suspend", Installation: session.Repository.InstallationID, Stale: core.StaleInstallation}
	var fresh atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if ok, err := s.RecordDelivery(t.Context(), d); err != nil {
				t.Error(err)
			} else if ok {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if fresh.Load() != 1 {
		t.Errorf("%d of 20 were the first", fresh.Load())
	}
	hear(t, h.access, "the installation", func(id core.InstallationID) bool { return id == d.Installation })
	stale, err := s.Stale(t.Context())
	must(t, err)
	at, ok := stale.Installations[d.Installation]
	if !ok || len(stale.Repositories) != 0 || len(stale.People) != 0 {
		t.Errorf("Stale = %+v", stale)
	}
	known, err := s.Deliveries(t.Context(), []string{"g-1", "g-2"})
	if err != nil || !known["g-1"] || known["g-2"] {
		t.Errorf("Deliveries = %v, %v", known, err)
	}
	// A hint that comes while the last one is being followed is not lost.
	_, err = s.RecordDelivery(t.Context(), core.Delivery{GUID: "g-3", Event: "installation", Installation: d.Installation, Stale: core.StaleInstallation})
	must(t, err)
	now := core.Installation{ID: d.Installation, Account: "octo-org", AccountType: "Organization", Suspended: true, Missing: []string{"contents:write"}}
	must(t, s.SaveInstallation(t.Context(), now, at))
	if stale, err = s.Stale(t.Context()); err != nil || len(stale.Installations) != 1 {
		t.Errorf("the newer hint is gone: %+v, %v", stale, err)
	}
	must(t, s.SaveInstallation(t.Context(), now, stale.Installations[d.Installation]))
	if stale, err = s.Stale(t.Context()); err != nil || len(stale.Installations) != 0 {
		t.Errorf("still stale: %+v, %v", stale, err)
	}
	got, err := s.Installation(t.Context(), d.Installation)
	if err != nil || !got.Suspended || got.Removed || len(got.Missing) != 1 || got.Account != "octo-org" {
		t.Errorf("Installation = %+v, %v", got, err)
	}
	must(t, s.InstallationRemoved(t.Context(), d.Installation, time.Now()))
	if got, err = s.Installation(t.Context(), d.Installation); err != nil || !got.Removed {
		t.Errorf("after its end: %+v, %v", got, err)
	}
}

func TestRecordDelivery_MarksWhatItIsAbout(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner := storetest.User(t, s)
	session := storetest.Session(t, s, owner.ID)
	repo := session.Repository
	must(t, s.SaveUserToken(t.Context(), owner.ID, core.UserToken{Access: "a", Refresh: "r"}))
	for i, d := range []core.Delivery{
		{Stale: core.StalePerson, Person: owner.GitHubID},
		{Stale: core.StalePerson, Person: owner.GitHubID + 1},
		{Stale: core.StaleRepository, Repository: repo.ID},
		{Stale: core.StaleRepository, Repository: repo.ID + 1},
		{Stale: core.StaleInstallation, Installation: 999},
		{Stale: core.StalePullRequest, Session: session.ID, Repository: repo.ID + 1},
		{Stale: core.StalePullRequest, Session: core.NewID[core.SessionID](), Repository: repo.ID},
	} {
		d.GUID, d.Event = string(rune('a'+i)), "x"
		_, err := s.RecordDelivery(t.Context(), d)
		must(t, err)
	}
	stale, err := s.Stale(t.Context())
	must(t, err)
	if len(stale.Installations) != 0 || len(stale.Repositories) != 1 || len(stale.People) != 1 {
		t.Fatalf("Stale = %+v", stale)
	}
	must(t, s.TokenConfirmed(t.Context(), owner.ID, stale.People[owner.ID]))
	repo.Name = "renamed"
	must(t, s.SaveRepository(t.Context(), repo, stale.Repositories[repo.ID]))
	if stale, err = s.Stale(t.Context()); err != nil || len(stale.Repositories)+len(stale.People) != 0 {
		t.Errorf("Stale = %+v, %v", stale, err)
	}
	if got, err := s.Session(t.Context(), session.ID); err != nil || got.Repository.Name != "renamed" {
		t.Errorf("the session's repository is %s, %v", got.Repository.FullName(), err)
	}
	_, err = s.RecordDelivery(t.Context(), core.Delivery{GUID: "z", Event: "installation_target", Installation: repo.InstallationID, Stale: core.StaleAccount})
	must(t, err)
	if stale, err = s.Stale(t.Context()); err != nil || len(stale.Installations) != 1 || len(stale.Repositories) != 1 {
		t.Errorf("a renamed account: %+v, %v", stale, err)
	}
}

func TestRecordDelivery_SignsOutWhoseTokenAPageHasForgotten(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for i, inOrder := range []bool{true, false} {
		user := storetest.User(t, s)
		login, err := s.CreateLogin(t.Context(), user.ID)
		must(t, err)
		must(t, s.SaveUserToken(t.Context(), user.ID, core.UserToken{Access: "a", Refresh: "r"}))
		token, err := s.UserToken(t.Context(), user.ID)
		must(t, err)
		deliver := func() {
			_, err := s.RecordDelivery(t.Context(), core.Delivery{
				GUID: string(rune('a' + i)), Event: "github_app_authorization", Stale: core.StalePerson, Person: user.GitHubID,
			})
			must(t, err)
		}
		if inOrder {
			deliver()
		}
		must(t, s.DropUserToken(t.Context(), user.ID, token.Version))
		if !inOrder {
			if _, _, err := s.Login(t.Context(), login.ID); err != nil {
				t.Errorf("a token that has only run out ended the login: %v", err)
			}
			deliver()
		}
		if _, _, err := s.Login(t.Context(), login.ID); core.CodeOf(err) != "signed_out" {
			t.Errorf("told before the page met it: %v: the login lives on: %v", inOrder, err)
		}
	}
}

func TestDue_IsTrueForOneOfManyAndOnceInAWhile(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var due atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if ok, err := s.Due(t.Context(), "sweep", time.Hour); err != nil {
				t.Error(err)
			} else if ok {
				due.Add(1)
			}
		})
	}
	wg.Wait()
	if due.Load() != 1 {
		t.Errorf("due for %d of 20", due.Load())
	}
	if ok, err := s.Due(t.Context(), "sweep", time.Nanosecond); err != nil || !ok {
		t.Errorf("after its time: %v, %v", ok, err)
	}
	if ok, err := s.Due(t.Context(), "another", time.Hour); err != nil || !ok {
		t.Errorf("another chore: %v, %v", ok, err)
	}
}
