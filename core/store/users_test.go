package store_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/seal"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

func TestUpsertUser_FollowsTheGitHubID(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	first, err := s.UpsertUser(t.Context(), core.Person{ID: 7, Login: "old-login", Name: "Octo"})
	must(t, err)
	must(t, s.SetRole(t.Context(), first.ID, core.Admin, first.ID, true))
	second, err := s.UpsertUser(t.Context(), core.Person{ID: 7, Login: "new-login", Name: "Octo Dev"})
	must(t, err)
	want := core.User{ID: first.ID, GitHubID: 7, Login: "new-login", Name: "Octo Dev", Role: core.Admin, CreatedAt: first.CreatedAt}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("second sign-in (-want +got):\n%s", diff)
	}
	if got, err := s.User(t.Context(), first.ID); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("User = %+v, %v", got, err)
	}
	third, err := s.UpsertUser(t.Context(), core.Person{ID: 8, Login: "new-login"})
	if err != nil || third.ID == first.ID {
		t.Errorf("another person with the same login: %+v, %v, want another user", third, err)
	}
	if _, err := s.User(t.Context(), core.NewID[core.UserID]()); core.KindOf(err) != core.NotFound {
		t.Errorf("User of no id: %v", err)
	}
}

func TestSetRole_LeavesOneOfTwoWhoTakeItFromEachOther(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	a, b := storetest.User(t, s), storetest.User(t, s)
	for _, u := range []core.User{a, b} {
		must(t, s.SetRole(t.Context(), u.ID, core.Admin, a.ID, true))
	}
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { errs[0] = s.SetRole(t.Context(), b.ID, core.Member, a.ID, false) })
	both.Go(func() { errs[1] = s.SetRole(t.Context(), a.ID, core.Member, b.ID, false) })
	both.Wait()
	if n := count(t, s, `SELECT count(*) FROM users WHERE role = 'admin'`); n != 1 {
		t.Errorf("%d administrators are left, want one: %v", n, errs)
	}
	if (errs[0] == nil) == (errs[1] == nil) || core.KindOf(errors.Join(errs[:]...)) != core.NotFound {
		t.Errorf("errors %v, want NotFound for one of them", errs)
	}
}

func TestUserToken_IsSealedAndVersioned(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	keys := storetest.Keys(t)
	s := storetest.Open(t, url, keys)
	user, other := storetest.User(t, s), storetest.User(t, s)
	if _, err := s.UserToken(t.Context(), user.ID); core.CodeOf(err) != "reauth_required" || core.KindOf(err) != core.Unauthenticated {
		t.Errorf("without a token: %v, want Unauthenticated reauth_required", err)
	}
	in := core.UserToken{Access: "ghu_canary-access", Refresh: "ghr_canary-refresh", ExpiresAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	must(t, s.SaveUserToken(t.Context(), user.ID, in))
	got, err := s.UserToken(t.Context(), user.ID)
	in.Version = got.Version
	if diff := cmp.Diff(in, got); err != nil || diff != "" {
		t.Errorf("token: %v (-want +got):\n%s", err, diff)
	}
	if n := count(t, s, `SELECT count(*) FROM user_tokens WHERE position('canary'::bytea in access) > 0 OR position('canary'::bytea in refresh) > 0`); n != 0 {
		t.Error("the token stands in the database in clear")
	}
	storetest.Exec(t, s, `INSERT INTO user_tokens (user_id, access, refresh, version) SELECT $1, access, refresh, 1 FROM user_tokens`, other.ID)
	if _, err := s.UserToken(t.Context(), other.ID); core.CodeOf(err) != "reauth_required" {
		t.Errorf("a token moved to another person's row: %v, want reauth_required", err)
	}
	wrong := storetest.Open(t, url, storetest.Keys(t))
	if _, err := wrong.UserToken(t.Context(), user.ID); core.CodeOf(err) != "reauth_required" || !errors.Is(err, seal.ErrUnreadable) {
		t.Errorf("with another key: %v, want reauth_required because of it", err)
	}
}

func TestRefreshUserToken_OnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	user := storetest.User(t, s)
	must(t, s.SaveUserToken(t.Context(), user.ID, core.UserToken{Access: "old", Refresh: "r1"}))
	first, err := s.UserToken(t.Context(), user.ID)
	must(t, err)
	var mu sync.Mutex
	calls := 0
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			got, err := s.RefreshUserToken(t.Context(), user.ID, first.Version, func(old core.UserToken) (core.UserToken, error) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				if old.Access != "old" || old.Refresh != "r1" {
					t.Errorf("refresh was given %+v", old.Version)
				}
				return core.UserToken{Access: "new", Refresh: "r2"}, nil
			})
			if err != nil || got.Access != "new" || got.Version != first.Version+1 {
				t.Errorf("RefreshUserToken = version %d, %v", got.Version, err)
			}
		})
	}
	all.Wait()
	if calls != 1 {
		t.Errorf("GitHub was asked %d times, want once: a refresh token works once", calls)
	}
	refused := core.Fail(core.Unauthenticated, "reauth_required", "x")
	_, err = s.RefreshUserToken(t.Context(), user.ID, first.Version+1, func(core.UserToken) (core.UserToken, error) { return core.UserToken{}, refused })
	if !errors.Is(err, refused) {
		t.Errorf("a refused refresh: %v, want its error", err)
	}
	if got, err := s.UserToken(t.Context(), user.ID); err != nil || got.Access != "new" || got.Version != first.Version+1 {
		t.Errorf("after a refused refresh: version %d, %v", got.Version, err)
	}
}

func TestRefreshUserToken_DoesNotWaitAlongForASilentGitHub(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	user := storetest.User(t, s)
	must(t, s.SaveUserToken(t.Context(), user.ID, core.UserToken{Access: "old", Refresh: "r1"}))
	first, err := s.UserToken(t.Context(), user.ID)
	must(t, err)
	_, err = s.RefreshUserToken(t.Context(), user.ID, first.Version, func(core.UserToken) (core.UserToken, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := s.RefreshUserToken(ctx, user.ID, first.Version, func(core.UserToken) (core.UserToken, error) {
			t.Error("two refreshed at once")
			return core.UserToken{}, nil
		})
		if core.CodeOf(err) != "github_unavailable" {
			t.Errorf("who waited: %v, want github_unavailable", err)
		}
		return core.UserToken{Access: "new", Refresh: "r2"}, nil
	})
	must(t, err)
}

func TestUserToken_ANewSignInIsSafeFromWhatWasAskedOfTheLast(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	user := storetest.User(t, s)
	must(t, s.SaveUserToken(t.Context(), user.ID, core.UserToken{Access: "a1", Refresh: "r1"}))
	old, err := s.UserToken(t.Context(), user.ID)
	must(t, err)
	must(t, s.Disconnected(t.Context(), user.ID, ""))
	must(t, s.SaveUserToken(t.Context(), user.ID, core.UserToken{Access: "a2", Refresh: "r2"}))

	got, err := s.RefreshUserToken(t.Context(), user.ID, old.Version, func(core.UserToken) (core.UserToken, error) {
		return core.UserToken{Access: "dead", Refresh: "dead"}, nil
	})
	if err != nil || got.Access != "a2" {
		t.Errorf("a late refresh: %q, %v, want the new sign-in's", got.Access, err)
	}
	must(t, s.DropUserToken(t.Context(), user.ID, old.Version))
	if got, err := s.UserToken(t.Context(), user.ID); err != nil || got.Access != "a2" {
		t.Errorf("after a late drop: %q, %v", got.Access, err)
	}
}

func TestLogin_EndsByAgeIdlenessAndSignOut(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	user := storetest.User(t, s)
	login := func() core.Login {
		t.Helper()
		l, err := s.CreateLogin(t.Context(), user.ID)
		must(t, err)
		return l
	}
	age := func(l core.Login, column, by string) {
		storetest.Exec(t, s, `UPDATE login_sessions SET `+column+` = clock_timestamp() - $2::interval WHERE id = $1`, l.ID, by)
	}
	fresh := login()
	got, who, err := s.Login(t.Context(), fresh.ID)
	if err != nil || cmp.Diff(fresh, got) != "" || cmp.Diff(user, who) != "" {
		t.Errorf("Login = %+v, %+v, %v", got, who, err)
	}
	seen := login()
	age(seen, "last_seen_at", "6 days 23 hours")
	if got, _, err := s.Login(t.Context(), seen.ID); err != nil || time.Since(got.LastSeenAt) > time.Minute {
		t.Errorf("after nearly 7 idle days: seen %s, %v, want now", got.LastSeenAt, err)
	}
	idle, old, ended := login(), login(), login()
	age(idle, "last_seen_at", "7 days 1 minute")
	age(old, "created_at", "30 days 1 minute")
	must(t, s.EndLogin(t.Context(), ended.ID))
	must(t, s.EndLogin(t.Context(), ended.ID)) // ending it twice is fine
	for name, id := range map[string]core.LoginID{"idle": idle.ID, "old": old.ID, "ended": ended.ID, "unknown": core.NewID[core.LoginID](), "no id": "x"} {
		if _, _, err := s.Login(t.Context(), id); core.CodeOf(err) != "signed_out" || core.KindOf(err) != core.Unauthenticated {
			t.Errorf("%s login: %v, want Unauthenticated signed_out", name, err)
		}
	}
}

func TestWorkersAndAudit(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	w := core.Worker{
		ID: core.NewID[core.WorkerID](), Host: "host-1", Version: "1", Capacity: 4,
		Status: core.WorkerStatus{Docker: "ok", Runtime: "runc", AppSlug: "app", RunningBoxes: 2, DiskFreeMiB: 100},
	}
	must(t, s.SaveWorker(t.Context(), w))
	w.Status.Docker = "the daemon does not answer"
	must(t, s.SaveWorker(t.Context(), w))
	got, err := s.Workers(t.Context())
	must(t, err)
	if len(got) != 1 || got[0].SilentFor < 0 || got[0].SilentFor > time.Minute {
		t.Fatalf("workers = %+v", got)
	}
	w.SilentFor = got[0].SilentFor
	if diff := cmp.Diff(w, got[0]); diff != "" {
		t.Errorf("worker (-want +got):\n%s", diff)
	}
	storetest.Worker(t, s, "host-2")
	storetest.Exec(t, s, `UPDATE workers SET heartbeat_at = clock_timestamp() - interval '8 days' WHERE host = 'host-2'`)
	if n, err := s.PruneWorkers(t.Context()); n != 1 || err != nil {
		t.Errorf("pruned %d workers, %v, want the one that is long gone", n, err)
	}
	if got, err := s.Workers(t.Context()); err != nil || len(got) != 1 || got[0].ID != w.ID {
		t.Errorf("workers left: %+v, %v", got, err)
	}
	user := storetest.User(t, s)
	must(t, s.Audit(t.Context(), core.AuditEntry{UserID: user.ID, Action: "view_session", Session: core.NewID[core.SessionID](), Detail: "d"}))
	must(t, s.Audit(t.Context(), core.AuditEntry{UserID: user.ID, Action: "sign_in"}))
	if n := count(t, s, `SELECT count(*) FROM audit_log WHERE user_id = $1 AND created_at > now() - interval '1 minute'`, user.ID); n != 2 {
		t.Errorf("%d audit rows, want 2", n)
	}
}

func TestCookies_ArePrunedWhenTheyExpire(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	cookies := s.Cookies()
	must(t, cookies.Commit("live", []byte("a"), time.Now().Add(time.Hour)))
	must(t, cookies.Commit("dead", []byte("b"), time.Now().Add(-time.Hour)))
	if n, err := s.PruneCookies(t.Context()); n != 1 || err != nil {
		t.Errorf("PruneCookies = %d, %v, want 1", n, err)
	}
	if data, there, err := cookies.Find("live"); string(data) != "a" || !there || err != nil {
		t.Errorf("Find = %q, %v, %v", data, there, err)
	}
}

func TestOpen_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for url, code := range map[string]string{
		"postgres://user:s3cret@host:notaport/db":   "database_url_invalid",
		"host=/nonexistent user=postgres dbname=db": "database_unavailable",
	} {
		_, err := store.Open(t.Context(), url, storetest.Keys(t), slog.New(slog.DiscardHandler))
		if core.CodeOf(err) != code {
			t.Errorf("Open(%q): %v, want %s", url, err, code)
		}
	}
	s := storetest.New(t)
	must(t, s.Ping(t.Context()))
}
