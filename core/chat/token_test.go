package chat_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/store/storetest"
)

// forgetful is a store whose write of a rotated pair fails as often as it is told.
type forgetful struct {
	chat.Store
	fail atomic.Int32
}

var errLost = errors.New("the commit was lost")

func (f *forgetful) RefreshUserToken(ctx context.Context, id core.UserID, version int64, refresh func(core.UserToken) (core.UserToken, error)) (core.UserToken, error) {
	return f.Store.RefreshUserToken(ctx, id, version, func(t core.UserToken) (core.UserToken, error) {
		fresh, err := refresh(t)
		if err == nil && f.fail.Add(-1) >= 0 {
			return core.UserToken{}, errLost // after GitHub has rotated
		}
		return fresh, err
	})
}

// refreshes counts how often GitHub was asked for a new pair.
func refreshes(s *githubtest.Server) (n int) {
	for _, line := range s.Requests() {
		if strings.HasPrefix(line, "POST /login/oauth/access_token") {
			n++
		}
	}
	return n
}

func TestToken_ARotatedPairOutlivesAFailedWrite(t *testing.T) {
	t.Parallel()
	lost := &forgetful{}
	b := setup(t, func(o *chat.Options) { lost.Store = o.Store; o.Store = lost })
	before := refreshes(b.github)
	b.github.Advance(9 * time.Hour) // the access token has ended, its refresh token has not
	lost.fail.Store(2)
	for range 2 {
		if err := b.mayPush(t); !errors.Is(err, errLost) {
			t.Fatalf("err = %v, want the lost write", err)
		}
	}
	if err := b.mayPush(t); err != nil {
		t.Errorf("the third time: %v", err)
	}
	if n := refreshes(b.github) - before; n != 1 {
		t.Errorf("GitHub rotated %d times, want once: the second would have ended the pair", n)
	}
	if err := b.mayPush(t); err != nil {
		t.Errorf("after it: %v", err)
	}
	if n := refreshes(b.github) - before; n != 1 {
		t.Errorf("GitHub rotated %d times in all", n)
	}
}

// crowd is a store that holds every renewal until all have read their token, and counts how many of
// them there are at once.
type crowd struct {
	chat.Store
	left      atomic.Int32 // to read
	allRead   chan struct{}
	now, most atomic.Int32
}

func (c *crowd) UserToken(ctx context.Context, id core.UserID) (core.UserToken, error) {
	token, err := c.Store.UserToken(ctx, id)
	if c.left.Add(-1) == 0 {
		close(c.allRead)
	}
	return token, err
}

func (c *crowd) RefreshUserToken(ctx context.Context, id core.UserID, version int64, refresh func(core.UserToken) (core.UserToken, error)) (core.UserToken, error) {
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	<-c.allRead
	return c.Store.RefreshUserToken(ctx, id, version, refresh)
}

func TestToken_RenewalsLeaveTheDatabaseToOthers(t *testing.T) {
	t.Parallel()
	const asking = 30
	for name, c := range map[string]struct {
		people int
		most   int32
	}{"one person with many tabs": {1, 1}, "many people": {asking, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := &crowd{allRead: make(chan struct{})}
			b := setup(t, func(o *chat.Options) { all.Store = o.Store; o.Store = all })
			people := []core.UserID{b.user.ID}
			for len(people) < c.people {
				u := storetest.User(t, b.store)
				if err := b.store.SaveUserToken(t.Context(), u.ID, core.UserToken{Access: "a", Refresh: "r", ExpiresAt: time.Now()}); err != nil {
					t.Fatal(err)
				}
				people = append(people, u.ID)
			}
			b.github.Advance(9 * time.Hour)
			all.left.Store(asking)
			var wg sync.WaitGroup
			for i := range asking {
				wg.Go(func() {
					_, _ = b.chat.MayPush(t.Context(), people[i%len(people)], core.Repository{ID: b.repository, InstallationID: b.installation})
				})
			}
			wg.Wait()
			if n := all.most.Load(); n > c.most || n == 0 {
				t.Errorf("%d renewals held a connection at once, want at most %d", n, c.most)
			}
		})
	}
}

func TestToken_OneThatIsRefusedIsAskedAboutOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := refreshes(b.github)
	if err := b.github.RevokeUser("octo-dev"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := b.mayPush(t); core.CodeOf(err) != "reauth_required" {
			t.Fatalf("err = %v, want reauth_required", err)
		}
	}
	if n := refreshes(b.github) - before; n != 1 {
		t.Errorf("GitHub was asked %d times to renew it, want once", n)
	}
}

func TestOpen_AsksAnAdministratorToSignInAgainToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	session := storetest.Session(t, b.store, storetest.User(t, b.store).ID)
	admin := b.user
	admin.Role = core.Admin
	if _, _, err := b.chat.Open(t.Context(), admin, session.ID, "session_view"); err != nil {
		t.Fatalf("while GitHub knows them: %v", err)
	}
	if err := b.github.RevokeUser("octo-dev"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.chat.Open(t.Context(), admin, session.ID, "session_view"); core.CodeOf(err) != "reauth_required" {
		t.Errorf("after they took it back: %v, want reauth_required", err)
	}
}

func TestConfirm_KeepsWhatWorksAndWhatGitHubCannotSay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.chat.Confirm(t.Context(), b.user.ID); err != nil {
		t.Errorf("a token that works: %v", err)
	}
	b.github.Fail(githubtest.Fault{Pattern: "GET /api/v3/user", Status: 503, Count: 1})
	if err := b.chat.Confirm(t.Context(), b.user.ID); core.CodeOf(err) != "github_unavailable" {
		t.Errorf("GitHub down: %v", err)
	}
	if n, err := b.chat.Browsers(t.Context(), b.user); err != nil || n != 1 {
		t.Errorf("%d browsers, %v, want the one that is signed in", n, err)
	}
	if err := b.github.RevokeUser("octo-dev"); err != nil {
		t.Fatal(err)
	}
	if err := b.chat.Confirm(t.Context(), b.user.ID); err != nil {
		t.Errorf("revoked: %v", err)
	}
	if n, err := b.chat.Browsers(t.Context(), b.user); err != nil || n != 0 {
		t.Errorf("%d browsers, %v, want none", n, err)
	}
}
