package github_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

// world is a stand-in with one organization, one repository of two commits, and the App on it.
type world struct {
	server *githubtest.Server
	url    string
	bases  github.Bases
	app    *github.App
	repo   core.Repository
	base   string // head of main
}

func newWorld(t *testing.T, o githubtest.Options) *world {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := githubtest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	bases, err := github.NewBases(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	app, err := github.NewApp(github.AppConfig{Bases: bases, AppID: s.Config().AppID, PrivateKey: s.Config().PrivateKey, Now: s.Now})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{server: s, url: srv.URL, bases: bases, app: app}
	for _, login := range []string{"octo-owner", "octo-reader", "octo-stranger"} {
		if _, err := s.AddUser(login, login); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AddOrganization("octo-org", "Octo Org"); err != nil {
		t.Fatal(err)
	}
	w.repo = w.addRepository(t, "widgets", true)
	w.base, err = s.Commit(t.Context(), "octo-org/widgets",
		githubtest.Commit{Message: "Begin", Files: map[string]githubtest.File{"README.md": githubtest.Text("# Widgets\n")}},
		githubtest.Commit{Message: "Add a script", Files: map[string]githubtest.File{"bin/run.sh": {Data: []byte("#!/bin/sh\n"), Executable: true}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.AddInstallation("octo-org")
	if err != nil {
		t.Fatal(err)
	}
	w.repo.InstallationID = core.InstallationID(id)
	return w
}

func (w *world) addRepository(t *testing.T, name string, private bool) core.Repository {
	t.Helper()
	id, err := w.server.AddRepository(githubtest.Repository{
		Owner: "octo-org", Name: name, Private: private, Language: "Go", Description: "Widgets",
		Access: map[string]githubtest.Permission{"octo-owner": githubtest.Push, "octo-reader": githubtest.Pull},
	})
	if err != nil {
		t.Fatal(err)
	}
	return core.Repository{ID: core.RepositoryID(id), Owner: "octo-org", Name: name, DefaultBranch: "main", Private: private}
}

func (w *world) mint(t *testing.T, purpose core.TokenPurpose) core.RepoToken {
	t.Helper()
	token, err := w.app.Mint(t.Context(), w.repo, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// git runs real git with a token in a credential helper; it returns what git printed.
func git(ctx context.Context, t *testing.T, dir, token string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "git", append([]string{
		"-c", "credential.helper=", "-c", `credential.helper=!f() { echo username=x-access-token; echo "password=$TEST_TOKEN"; }; f`,
		"-c", "user.name=Octo Dev", "-c", "user.email=octo-dev@example.org",
	}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "TEST_TOKEN=" + token}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// pushBranch clones, commits one change on a new branch and pushes it; it returns the commit.
func (w *world) pushBranch(t *testing.T, token core.RepoToken, branch string) string {
	t.Helper()
	dir := t.TempDir()
	clone := filepath.Join(dir, "clone")
	for _, args := range [][]string{
		{"clone", "-q", w.app.GitURL(w.repo), clone},
		{"-C", clone, "checkout", "-q", "-b", branch},
		{"-C", clone, "commit", "-q", "--allow-empty", "-m", "Work on " + branch},
		{"-C", clone, "push", "-q", "origin", branch},
	} {
		if out, err := git(t.Context(), t, dir, token.Value, args...); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	out, err := git(t.Context(), t, clone, "", "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(out)
	}
	return strings.TrimSpace(out)
}

func TestMint_PublishTokenClonesPushesAndKeepsAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	head := w.pushBranch(t, token, "agent/one")

	text := core.PullRequestText{Title: "Do it", Body: "Because", Head: "agent/one", Base: "main"}
	pr, err := w.app.OpenPullRequest(t.Context(), token, w.repo, text)
	if err != nil {
		t.Fatal(err)
	}
	if pr.Number != 1 || pr.State != "open" || pr.HeadSHA != head || pr.URL != w.url+"/octo-org/widgets/pull/1" {
		t.Errorf("opened %+v, want number 1, open, head %s", pr, head)
	}
	found, err := w.app.FindPullRequests(t.Context(), token, w.repo, "agent/one")
	if err != nil || len(found) != 1 || found[0].Number != 1 {
		t.Errorf("found %+v, %v; want pull request 1", found, err)
	}
}
