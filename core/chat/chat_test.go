package chat_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

var _ publish.Access = (*chat.Service)(nil)

type bench struct {
	chat         *chat.Service
	store        *store.Store
	github       *githubtest.Server
	user         core.User
	installation core.InstallationID
	repository   core.RepositoryID
}

// setup signs octo-dev in, who may push to octo-org/web-app.
func setup(t *testing.T, change ...func(*chat.Options)) bench {
	t.Helper()
	gh, err := githubtest.New(githubtest.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	standIn := httptest.NewServer(gh.Handler())
	t.Cleanup(standIn.Close)
	bases, err := github.NewBases(standIn.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, add := range []func() error{
		func() error { _, err := gh.AddUser("octo-dev", "Octo Dev"); return err },
		func() error { _, err := gh.AddOrganization("octo-org", "Octo Org"); return err },
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	repo, err := gh.AddRepository(githubtest.Repository{
		Owner: "octo-org", Name: "web-app", Private: true, Access: map[string]githubtest.Permission{"octo-dev": githubtest.Push},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gh.Commit(t.Context(), "octo-org/web-app", githubtest.Commit{Message: "Start", Files: map[string]githubtest.File{"a": githubtest.Text("a")}}); err != nil {
		t.Fatal(err)
	}
	installation, err := gh.AddInstallation("octo-org")
	if err != nil {
		t.Fatal(err)
	}
	config := gh.Config()
	b := bench{
		store: storetest.New(t), github: gh,
		installation: core.InstallationID(installation), repository: core.RepositoryID(repo),
	}
	o := chat.Options{
		Store: b.store, Gate: chat.Gate{AllowedLogins: []string{"octo-dev"}}, MaxActive: 3,
		GitHub: github.NewUser(github.UserConfig{
			Bases: bases, ClientID: config.ClientID, ClientSecret: config.ClientSecret, RedirectURL: "http://127.0.0.1/auth/github/callback",
		}),
	}
	for _, c := range change {
		c(&o)
	}
	b.chat = chat.New(o)
	b.user = b.signIn(t, standIn)
	return b
}

func (b bench) signIn(t *testing.T, standIn *httptest.Server) core.User {
	t.Helper()
	u, err := url.Parse(b.chat.SignInURL("state", strings.Repeat("v", 50)))
	if err != nil {
		t.Fatal(err)
	}
	form := u.Query()
	form.Set("login", "octo-dev")
	client := standIn.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.PostForm(standIn.URL+u.Path, form)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	back, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	login, err := b.chat.SignIn(t.Context(), back.Query().Get("code"), strings.Repeat("v", 50))
	if err != nil {
		t.Fatal(err)
	}
	_, user, err := b.chat.Login(t.Context(), login.ID)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func (b bench) mayPush(t *testing.T) error {
	t.Helper()
	_, err := b.chat.MayPush(t.Context(), b.user.ID, core.Repository{ID: b.repository, InstallationID: b.installation})
	return err
}

func TestToken_IsRenewedWhenGitHubSaysItEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before, err := b.store.UserToken(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.github.Advance(9 * time.Hour)
	if err := b.mayPush(t); err != nil {
		t.Fatalf("with an ended access token: %v", err)
	}
	after, err := b.store.UserToken(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	if after.Access == before.Access || after.Refresh == before.Refresh || after.Version <= before.Version {
		t.Error("the pair was not rotated and kept")
	}
}

func TestToken_ManyRequestsAtItsEndRenewItOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before, err := b.store.UserToken(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.github.Advance(9 * time.Hour)
	errs := make([]error, 12)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = b.mayPush(t) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatalf("one of many: %v", err)
		}
	}
	after, err := b.store.UserToken(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	if after.Version != before.Version+1 {
		t.Errorf("the pair was rotated %d times, want once", after.Version-before.Version)
	}
}

func TestToken_RevokedAsksToSignInAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.github.RevokeUser("octo-dev"); err != nil {
		t.Fatal(err)
	}
	if err := b.mayPush(t); core.KindOf(err) != core.Unauthenticated || core.CodeOf(err) != "reauth_required" {
		t.Errorf("err = %v, want reauth_required", err)
	}
}

func TestMayPush_SeesAChangeAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct {
		change func() error
		code   string
	}{
		{func() error { return nil }, ""},
		{func() error { return b.github.SetPermission("octo-org/web-app", "octo-dev", githubtest.Pull) }, "push_required"},
		{func() error { return b.github.SetPermission("octo-org/web-app", "octo-dev", githubtest.Push) }, ""},
		{func() error { return b.github.SetArchived("octo-org/web-app", true) }, "repository_archived"},
		{func() error { return b.github.SetArchived("octo-org/web-app", false) }, ""},
		{func() error {
			_, err := b.github.AddRepository(githubtest.Repository{Owner: "octo-org", Name: "other"})
			return err
		}, ""},
		{func() error { _, err := b.github.AddInstallation("octo-org", "octo-org/other"); return err }, "repository_access_lost"},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		err := b.mayPush(t)
		if tt.code == "" && err != nil || tt.code != "" && core.CodeOf(err) != tt.code {
			t.Errorf("err = %v, want %q", err, tt.code)
		}
	}
}

func TestOpen_ReadsAreRememberedAMinuteAndNoLonger(t *testing.T) {
	t.Parallel()
	b := setup(t)
	session, err := b.chat.Create(t.Context(), b.user, chat.CreateRequest{Installation: b.installation, Repository: b.repository, Text: "x"})
	if err != nil {
		t.Fatal(err)
	}
	lists := func() (n int) {
		for _, r := range b.github.Requests() {
			if strings.Contains(r, "/user/installations/") {
				n++
			}
		}
		return n
	}
	before := lists()
	for range 5 {
		if _, _, err := b.chat.Open(t.Context(), b.user, session.ID, "session_view"); err != nil {
			t.Fatal(err)
		}
	}
	if got := lists() - before; got != 0 {
		t.Errorf("five looks right after a create asked GitHub %d times", got)
	}
	b.chat.Refresh(b.user)
	if _, _, err := b.chat.Open(t.Context(), b.user, session.ID, "session_view"); err != nil {
		t.Fatal(err)
	}
	if got := lists() - before; got == 0 {
		t.Error("a forgotten answer was used")
	}
}

func TestPost_StopsAtTheCap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	session, err := b.chat.Create(t.Context(), b.user, chat.CreateRequest{Installation: b.installation, Repository: b.repository, Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.chat.Post(t.Context(), b.user, session.ID, "more", ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.chat.Post(t.Context(), b.user, session.ID, "one too many", ""); core.CodeOf(err) != "too_many_active" {
		t.Errorf("err = %v, want too_many_active", err)
	}
}

func TestCreate_ARepeatedKeyFindsTheFirstSessionWhateverGitHubSaysNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	request := chat.CreateRequest{Installation: b.installation, Repository: b.repository, Text: "x", ClientKey: "k"}
	first, err := b.chat.Create(t.Context(), b.user, request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.github.Commit(t.Context(), "octo-org/web-app", githubtest.Commit{Message: "Move", Files: map[string]githubtest.File{"a": githubtest.Text("b")}}); err != nil {
		t.Fatal(err)
	}
	request.ShownSHA = first.BaseSHA
	for _, state := range []string{"moved", "down"} {
		if state == "down" {
			b.github.Fail(githubtest.Fault{Pattern: "/", Status: http.StatusBadGateway})
		}
		if again, err := b.chat.Create(t.Context(), b.user, request); err != nil || again.ID != first.ID {
			t.Errorf("GitHub %s: %s, %v, want %s", state, again.ID, err, first.ID)
		}
	}
}

func TestCreate_TitleIsTheFirstLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for text, want := range map[string]string{
		"\n\n  Fix   the login \n\nIt fails.": "Fix the login",
		strings.Repeat("é", 90):               strings.Repeat("é", 79) + "…",
	} {
		s, err := b.chat.Create(t.Context(), b.user, chat.CreateRequest{Installation: b.installation, Repository: b.repository, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if s.Title != want || s.Branch != core.BranchFor(s.ID) || s.DefaultBranchSHA != s.BaseSHA {
			t.Errorf("session of %q = %+v", text, s)
		}
	}
}
