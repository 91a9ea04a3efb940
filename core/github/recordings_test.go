package github_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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

// replay answers what was recorded, in order for each address, as a GitHub Enterprise Server.
func replay(t *testing.T, list []recording) *github.User {
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
			if name == "location" || name == "link" || name == "content-type" {
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
	return github.NewUser(github.UserConfig{Bases: bases})
}

// What GitHub itself once answered about a renamed repository is understood.
func TestRecordings_RenamedRepository(t *testing.T) {
	t.Parallel()
	token := core.UserToken{Access: "recorded"}
	renamed := recordings(t, "rename-repository")
	got, err := replay(t, renamed).Repository(t.Context(), token, 1000)
	if err != nil || got.ID != 1000 || got.Owner != "octokit-fixture-org" || got.Name != "rename-repository-newname" || got.DefaultBranch != "main" {
		t.Errorf("Repository = %+v, %v", got, err)
	}
}
