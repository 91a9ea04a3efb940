package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core/github/githubtest"
)

func TestRun_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), options{}, io.Discard)
	for _, name := range []string{"GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY_FILE", "SMOKE_REPOSITORY", "OPERATIONS.md"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("err = %v, and not %s", err, name)
		}
	}
}

// beyond answers what the stand-in has not, as GitHub might, and says whether it did.
func beyond(w http.ResponseWriter, r *http.Request) bool {
	body, _ := io.ReadAll(r.Body) // the stand-in would notice a broken one
	r.Body = io.NopCloser(bytes.NewReader(body))
	key := r.Method + " " + r.URL.Path
	status, answer := http.StatusCreated, map[string]any{"sha": strings.Repeat("12", 20)}
	switch {
	case strings.Contains(key, "/rules/branches/"):
		status, answer = http.StatusOK, map[string]any{}
	case strings.HasPrefix(key, "PATCH ") && bytes.Contains(body, []byte(`"draft"`)):
		status, answer = http.StatusOK, map[string]any{"draft": true}
	case strings.HasSuffix(key, "/git/trees"):
	case strings.HasSuffix(key, "/git/commits"):
		answer["verification"] = map[string]any{"verified": true, "reason": "valid"}
	case strings.HasPrefix(key, "DELETE ") && strings.Contains(key, "/git/refs/"):
		w.WriteHeader(http.StatusNoContent)
		return true
	default:
		return false
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone away when this fails
	return true
}

// Every question is asked of the stand-in too, and no credential is in what is said.
func TestRun_AsksEveryQuestion(t *testing.T) {
	t.Parallel()
	stand, err := githubtest.New(githubtest.Options{Dir: t.TempDir(), BadRequests: true})
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if !beyond(w, r) {
			stand.Handler().ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	if _, err := stand.AddOrganization("octo-org", "Octo Org"); err != nil {
		t.Fatal(err)
	}
	if _, err := stand.AddRepository(githubtest.Repository{Owner: "octo-org", Name: "try-out", Private: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := stand.Commit(t.Context(), "octo-org/try-out", githubtest.Commit{Message: "Begin", Files: map[string]githubtest.File{
		"README.md": githubtest.Text("# Try out\n"), ".github/workflows/ci.yml": githubtest.Text("on: push\n"),
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stand.AddInstallation("octo-org"); err != nil {
		t.Fatal(err)
	}
	config := stand.Config()
	key := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(key, config.PrivateKey, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = run(t.Context(), options{base: server.URL, appID: config.AppID, keyFile: key, repository: "octo-org/try-out"}, &out)
	if err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, text := range []string{
		"lacks []", "refused after", "agent/", "A pull request already exists for octo-org:", "No commits between", "verified true (valid)",
		"workflow file without workflows:write:", "state cannot be changed", "pull request closed, branch 204", "18 questions, 0 could not be asked",
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the output lacks %q:\n%s", text, out.String())
		}
	}
	for _, credential := range shown {
		if credential != "" && strings.Contains(out.String(), credential) {
			t.Error("the output shows a credential")
		}
	}
}
