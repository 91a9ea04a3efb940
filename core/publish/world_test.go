package publish_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/mirror/mirrortest"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/seal"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

const fullName = "octo-org/widgets"

// asked is when people of these tests ask; their commits have that date however late they are made.
var asked = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// world is a stand-in GitHub with one repository, a real ledger, a real mirror, and the service.
type world struct {
	github  *githubtest.Server
	app     *github.App
	tokens  *github.Tokens
	url     string // of the stand-in
	dir     string // of the mirror
	dsn     string
	keys    string
	repo    core.Repository
	base    string // head of main
	store   *store.Store
	mirror  *mirror.Mirror
	worker  core.Worker
	owner   core.User
	options publish.Options
	log     *strings.Builder
}

// access is the person's own right to push, as GitHub would say it; now is the repository under another
// name.
type access struct {
	err error
	now core.Repository
}

func (a access) MayPush(_ context.Context, _ core.UserID, repo core.Repository) (core.Repository, error) {
	if a.now.ID != 0 {
		repo = a.now
	}
	return repo, a.err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, githubtest.Options{Dir: t.TempDir()}, "", nil)
}

// newWorldOn has a GitHub of that kind, runs that git ("" is the usual one), and tells seen of every
// request before it is answered.
func newWorldOn(t *testing.T, o githubtest.Options, git string, seen func(*http.Request)) *world {
	t.Helper()
	w := &world{log: &strings.Builder{}}
	var err error
	if w.github, err = githubtest.New(o); err != nil {
		t.Fatal(err)
	}
	handler := w.github.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if seen != nil {
			seen(r)
		}
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	w.url, w.dir, w.dsn, w.keys = srv.URL, t.TempDir(), storetest.NewURL(t), seal.NewKey("test")
	config := w.github.Config()
	if w.app, err = appOf(w.url, config.AppID, config.PrivateKey, w.github.Now); err != nil {
		t.Fatal(err)
	}
	w.tokens = github.NewTokens(w.app, func(core.RepoToken) {})
	if _, err := w.github.AddOrganization("octo-org", "Octo Org"); err != nil {
		t.Fatal(err)
	}
	id, err := w.github.AddRepository(githubtest.Repository{Owner: "octo-org", Name: "widgets", Private: true})
	if err != nil {
		t.Fatal(err)
	}
	w.base, err = w.github.Commit(t.Context(), fullName, githubtest.Commit{Message: "Begin", Files: map[string]githubtest.File{
		"README.md": githubtest.Text("# Widgets\n"), "main.go": githubtest.Text("package main\n"), ".env": githubtest.Text("A=1\n"),
		".github/workflows/ci.yml": githubtest.Text("on: push\n"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	installation, err := w.github.AddInstallation("octo-org")
	if err != nil {
		t.Fatal(err)
	}
	w.repo = core.Repository{ID: core.RepositoryID(id), InstallationID: core.InstallationID(installation), Owner: "octo-org", Name: "widgets", DefaultBranch: "main", Private: true}

	keys, err := seal.Parse(w.keys)
	if err != nil {
		t.Fatal(err)
	}
	w.store = storetest.Open(t, w.dsn, keys)
	if w.owner, err = w.store.UpsertUser(t.Context(), core.Person{ID: 4242, Login: "octo-dev", Name: "Octo <Dev>"}); err != nil {
		t.Fatal(err)
	}
	w.worker = storetest.Worker(t, w.store, "host-1")
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if w.mirror, err = mirrorOf(w.dir, git, w.app, w.tokens, log); err != nil {
		t.Fatal(err)
	}
	w.options = optionsOf(w.store, w.mirror, w.app, w.tokens, log)
	return w
}

func appOf(url string, id int64, key []byte, now func() time.Time) (*github.App, error) {
	bases, err := github.NewBases(url)
	if err != nil {
		return nil, err
	}
	return github.NewApp(github.AppConfig{Bases: bases, AppID: id, PrivateKey: key, Now: now})
}

func mirrorOf(dir, git string, app *github.App, tokens *github.Tokens, log *slog.Logger) (*mirror.Mirror, error) {
	return mirror.New(mirror.Options{Dir: dir, GitPath: git, GitURL: app.GitURL, Tokens: tokens, CloneDepth: 50, Log: log})
}

func optionsOf(s *store.Store, m *mirror.Mirror, app *github.App, tokens *github.Tokens, log *slog.Logger) publish.Options {
	return publish.Options{
		Store: s, Mirror: m, Tokens: tokens, PullRequests: app, Access: access{},
		Bot: func() publish.Identity {
			return publish.Identity{Name: "agent[bot]", Email: "99+agent[bot]@users.noreply.github.com"}
		},
		PublicURL:  "https://agent.example.com",
		TokenPause: time.Millisecond, Log: log,
	}
}

// session is a checked-out session with these files written on top of its base.
func (w *world) session(t *testing.T, files map[string]string) (core.ChatSession, *mirrortest.Workspace) {
	t.Helper()
	return w.sessionOn(t, "main", files)
}

// sessionOn is session with its base on a branch that points to w.base.
func (w *world) sessionOn(t *testing.T, branch string, files map[string]string) (core.ChatSession, *mirrortest.Workspace) {
	t.Helper()
	s, err := w.store.CreateSession(t.Context(), core.NewSession{
		Session: core.ChatSession{OwnerID: w.owner.ID, Repository: w.repo, BaseBranch: branch, BaseSHA: w.base, Title: "Say hello", BashPolicy: core.PolicySeed},
		Text:    "Say hello",
	})
	if err != nil {
		t.Fatal(err)
	}
	ws := mirrortest.NewWorkspace(t)
	spec, pack, err := w.mirror.Checkout(t.Context(), s, false)
	if err != nil {
		t.Fatal(err)
	}
	defer pack.Close()
	if err := ws.Checkout(t.Context(), spec, pack); err != nil {
		t.Fatal(err)
	}
	write(t, ws, files)
	return s, ws
}

func write(t *testing.T, ws *mirrortest.Workspace, files map[string]string) {
	t.Helper()
	for name := range files {
		_ = os.Remove(filepath.Join(ws.Dir, strings.TrimSuffix(name, "*")))
	}
	mirrortest.WriteFiles(t, ws.Dir, files)
}

// ask stores a person's wish to publish.
func (w *world) ask(t *testing.T, s core.ChatSession, title, body string) {
	t.Helper()
	w.askFor(t, s, core.Publication{Title: title, Body: body}, nil)
}

// askFor is ask with choices.
func (w *world) askFor(t *testing.T, s core.ChatSession, p core.Publication, paths core.PathChoices) core.PublicationID {
	t.Helper()
	p.SessionID, p.RequestedBy, p.ClientKey, p.CreatedAt = s.ID, w.owner.ID, string(core.NewID[core.PublicationID]()), asked
	stored, err := w.store.RequestPublish(t.Context(), p, paths)
	if err != nil {
		t.Fatal(err)
	}
	return stored.ID
}

// serve claims the session's publication and performs it once with the given options.
func (w *world) serve(t *testing.T, o publish.Options, s core.ChatSession, ws core.PlatformWorkspace) (core.PublishResult, error) {
	t.Helper()
	claim, err := w.store.Claim(t.Context(), w.worker, storetest.Lease, core.Budgets{})
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	if claim.Session.ID != s.ID || claim.Publication == nil {
		t.Fatalf("claimed %s with publication %v", claim.Session.ID, claim.Publication)
	}
	defer func() {
		if err := w.store.Release(t.Context(), claim.Lease); err != nil {
			t.Fatal(err)
		}
	}()
	return publish.New(o).Publish(t.Context(), claim, *claim.Publication, ws)
}

// publish asks and serves.
func (w *world) publish(t *testing.T, s core.ChatSession, ws *mirrortest.Workspace, title, body string) (core.PublishResult, error) {
	t.Helper()
	w.ask(t, s, title, body)
	return w.serve(t, w.options, s, ws)
}

func (w *world) must(t *testing.T, s core.ChatSession, ws *mirrortest.Workspace, title, body string) core.PublishResult {
	t.Helper()
	result, err := w.publish(t, s, ws, title, body)
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	return result
}

// git reads the stand-in's repository.
func (w *world) git(t *testing.T, args ...string) string {
	t.Helper()
	dir, err := w.github.GitDir(w.repo.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return mirrortest.Git(t, "", append([]string{"--git-dir=" + dir}, args...)...)
}

// pulls are the pull requests of one session.
func (w *world) pulls(t *testing.T, s core.ChatSession) []githubtest.PullRequest {
	t.Helper()
	all, err := w.github.PullRequests(t.Context(), fullName)
	if err != nil {
		t.Fatal(err)
	}
	var found []githubtest.PullRequest
	for _, p := range all {
		if p.Head == s.Branch {
			found = append(found, p)
		}
	}
	return found
}

// events are the types of a session's events about publishing.
func (w *world) events(t *testing.T, s core.ChatSession) []string {
	t.Helper()
	all, err := w.store.EventsSince(t.Context(), s.ID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range all {
		if strings.HasPrefix(string(e.Type), "publication_") || strings.HasPrefix(string(e.Type), "pull_request_") {
			types = append(types, string(e.Type))
		}
	}
	return types
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if core.CodeOf(err) != code {
		t.Errorf("err = %v, want code %s", err, code)
	}
}

// unrevoked counts tokens that were minted and not given back, when those that are shared are.
func (w *world) unrevoked(t *testing.T) (n int) {
	t.Helper()
	w.tokens.Close(t.Context())
	for _, r := range w.github.Requests() {
		switch {
		case strings.HasPrefix(r, "POST /api/v3/app/installations/"):
			n++
		case strings.HasPrefix(r, "DELETE /api/v3/installation/token"):
			n--
		}
	}
	return n
}

func number(n int) string { return fmt.Sprintf("#%d", n) }
