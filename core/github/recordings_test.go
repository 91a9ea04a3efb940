package github_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
)

// recording is one exchange with GitHub as npm's @octokit/fixtures keeps it.
type recording struct {
	Method   string
	Path     string
	Status   int
	Response json.RawMessage
	Headers  map[string]any
}

// recordings reads one scenario.
func recordings(t *testing.T, scenario string) []recording {
	t.Helper()
	folder := os.Getenv("TEST_OCTOKIT")
	if folder == "" {
		t.Fatal("set TEST_OCTOKIT to what scripts/npm-folder core/github/testdata/octokit prints")
	}
	text, err := os.ReadFile(filepath.Join(folder, "node_modules/@octokit/fixtures/scenarios/api.github.com", scenario, "normalized-fixture.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []recording
	if err := json.Unmarshal(text, &list); err != nil || len(list) == 0 {
		t.Fatalf("%d recordings, %v", len(list), err)
	}
	return list
}

// as is a recording that answers another request: what differs between routes is not its shape.
func (r recording) as(method, path string) recording {
	r.Method, r.Path = method, path
	return r
}

// replay answers what was recorded, in order for each address, as a GitHub Enterprise Server.
func replay(t *testing.T, list ...recording) github.Bases {
	t.Helper()
	left := map[string][]recording{}
	for _, r := range list {
		key := strings.ToUpper(r.Method) + " " + r.Path
		left[key] = append(left[key], r)
	}
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + strings.TrimPrefix(r.URL.RequestURI(), "/api/v3")
		if len(left[key]) == 0 {
			t.Errorf("not recorded: %s", key)
			w.WriteHeader(http.StatusTeapot)
			return
		}
		was := left[key][0]
		left[key] = left[key][1:]
		here := []byte(server.URL + "/api/v3")
		for name, value := range was.Headers {
			if name == "location" || name == "link" || name == "content-type" || name == "x-github-request-id" {
				w.Header().Set(name, strings.ReplaceAll(fmt.Sprint(value), "https://api.github.com", string(here)))
			}
		}
		w.WriteHeader(was.Status)
		_, _ = w.Write(bytes.ReplaceAll(was.Response, []byte("https://api.github.com"), here))
	}))
	t.Cleanup(server.Close)
	bases, err := github.NewBases(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for key, rest := range left {
			if len(rest) > 0 {
				t.Errorf("%d recordings of %s were not asked for", len(rest), key)
			}
		}
	})
	return bases
}

func replayUser(t *testing.T, list ...recording) *github.User {
	t.Helper()
	return github.NewUser(github.UserConfig{Bases: replay(t, list...)})
}

func replayApp(t *testing.T, list ...recording) *github.App {
	t.Helper()
	app, err := github.NewApp(github.AppConfig{Bases: replay(t, list...), AppID: 1, PrivateKey: newKey(t)})
	if err != nil {
		t.Fatal(err)
	}
	return app
}

var (
	recordedUser = core.UserToken{Access: "recorded"}
	recordedRepo = core.Repository{ID: 1000, InstallationID: 1, Owner: "octokit-fixture-org", Name: "hello-world"}
	recordedText = core.PullRequestText{Title: "t", Body: "b", Head: "agent/x", Base: "main"}
)

const recordedPulls = "/repos/octokit-fixture-org/hello-world/pulls"

// What GitHub itself once answered about a repository, and about a renamed one, is understood.
func TestRecordings_Repository(t *testing.T) {
	t.Parallel()
	plain := recordings(t, "get-repository")[0].as("get", "/repositories/1000")
	got, err := replayUser(t, plain).Repository(t.Context(), recordedUser, 1000)
	if err != nil || got.FullName() != "octokit-fixture-org/hello-world" || got.DefaultBranch != "master" || got.Private || got.Archived || !got.CanPull || !got.CanPush || got.PushedAt.Year() != 2017 {
		t.Errorf("Repository = %+v, %v", got, err)
	}
	renamed := recordings(t, "rename-repository")
	got, err = replayUser(t, renamed[2]).Repository(t.Context(), recordedUser, 1000)
	if err != nil || got.FullName() != "octokit-fixture-org/rename-repository-newname" || got.DefaultBranch != "main" {
		t.Errorf("Repository = %+v, %v", got, err)
	}
}

// A change that meets a renamed repository goes to its new place, as it was sent.
func TestRecordings_AChangeFollowsARename(t *testing.T) {
	t.Parallel()
	moved := recordings(t, "rename-repository")[3].as("patch", recordedPulls+"/1")
	if moved.Status != http.StatusTemporaryRedirect {
		t.Fatalf("recorded status %d", moved.Status)
	}
	moved.Headers["location"] = fmt.Sprint(moved.Headers["location"]) + "/pulls/1"
	app := replayApp(t, moved, recordings(t, "errors")[0].as("patch", "/repositories/1000/pulls/1"))
	_, err := app.UpdatePullRequest(t.Context(), core.RepoToken{Value: "ghs_recorded"}, recordedRepo, 1, recordedText)
	wantCode(t, err, core.Invalid, github.CodeRejected)
}

func TestRecordings_Branch(t *testing.T) {
	t.Parallel()
	var list []json.RawMessage
	refs := recordings(t, "git-refs")[0]
	var made struct {
		Commit json.RawMessage
	}
	var commit struct {
		SHA, Message string
	}
	create := recordings(t, "create-file")[0]
	if err := errors.Join(json.Unmarshal(refs.Response, &list), json.Unmarshal(create.Response, &made), json.Unmarshal(made.Commit, &commit)); err != nil || len(list) == 0 {
		t.Fatalf("%d refs, %v", len(list), err)
	}
	ref := refs.as("get", recordedPath("/git/ref/heads/main"))
	ref.Response = bytes.ReplaceAll(list[0], []byte("0000000000000000000000000000000000000001"), []byte(commit.SHA))
	of := create.as("get", recordedPath("/git/commits/"+commit.SHA))
	of.Response, of.Status = made.Commit, http.StatusOK
	got, err := replayUser(t, ref, of).Branch(t.Context(), recordedUser, recordedRepo, "main")
	if err != nil || got.Name != "main" || got.SHA != commit.SHA || got.Subject != commit.Message || got.CommittedAt.Year() != 2017 {
		t.Errorf("Branch = %+v, %v", got, err)
	}
}

func recordedPath(rest string) string { return "/repos/octokit-fixture-org/hello-world" + rest }

// GitHub's refusals, as it once wrote them, have codes; that a release's file exists already is not taken
// for a pull request that does.
func TestRecordings_Refusals(t *testing.T) {
	t.Parallel()
	for scenario, c := range map[string]struct {
		recording int
		kind      core.Kind
		code      string
	}{
		"errors":                  {0, core.Invalid, github.CodeRejected},
		"release-assets-conflict": {1, core.Invalid, github.CodeRejected},
		"branch-protection":       {0, core.NotFound, "not_found"},
	} {
		app := replayApp(t, recordings(t, scenario)[c.recording].as("post", recordedPulls))
		_, err := app.OpenPullRequest(t.Context(), core.RepoToken{Value: "ghs_recorded"}, recordedRepo, recordedText)
		wantCode(t, err, c.kind, c.code)
		if cause, ok := errors.AsType[*github.RequestError](err); !ok || cause.RequestID != "0000:00000:0000000:0000000:00000000" || cause.Text == "" {
			t.Errorf("%s: cause %+v", scenario, cause)
		}
	}
}

// A redirect to another host, such as that of an archive, is not followed with a credential.
func TestRecordings_ARedirectElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	archive := recordings(t, "get-archive")[0].as("get", "/repositories/1000")
	archive.Headers["location"] = strings.Replace(fmt.Sprint(archive.Headers["location"]), "https://codeload.github.com", elsewhere.URL, 1)
	_, err := replayUser(t, archive).Repository(t.Context(), recordedUser, 1000)
	wantCode(t, err, core.Unavailable, github.CodeUnavailable)
	if asked.Load() != 0 {
		t.Errorf("the other host got %d requests", asked.Load())
	}
}
