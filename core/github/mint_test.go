package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

func TestMint_ReadTokenCannotPushNorOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenRead)
	dir := t.TempDir()
	clone := filepath.Join(dir, "clone")
	if out, err := git(t.Context(), t, dir, token.Value, "clone", "-q", w.app.GitURL(w.repo), clone); err != nil {
		t.Fatalf("clone with a read token: %v\n%s", err, out)
	}
	if out, err := git(t.Context(), t, clone, token.Value, "push", "-q", "origin", "HEAD:refs/heads/agent/x"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("push with a read token: %v\n%s", err, out)
	}
	if _, err := w.server.Head(t.Context(), "octo-org/widgets", "agent/x"); err == nil {
		t.Error("the refused push made a branch")
	}
	_, err := w.app.OpenPullRequest(t.Context(), token, w.repo, core.PullRequestText{Title: "t", Head: "agent/x", Base: "main"})
	wantCode(t, err, core.Forbidden, github.CodePermissionMissing)
	if !strings.Contains(core.MessageOf(err), "pull_requests=write") {
		t.Errorf("message = %s", core.MessageOf(err))
	}
}

func TestMint_TokenIsForOneRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	other := w.addRepository(t, "gadgets", true)
	if _, err := w.server.Commit(t.Context(), "octo-org/gadgets", githubtest.Commit{Message: "Begin", Files: map[string]githubtest.File{"a": githubtest.Text("a")}}); err != nil {
		t.Fatal(err)
	}
	token := w.mint(t, core.TokenPublish)
	dir := t.TempDir()
	if out, err := git(t.Context(), t, dir, token.Value, "clone", "-q", w.app.GitURL(other), "clone"); err == nil || !strings.Contains(out, "not found") {
		t.Errorf("clone of another repository: %v\n%s", err, out)
	}
	_, err := w.app.FindPullRequests(t.Context(), token, other, "agent/x")
	wantCode(t, err, core.NotFound, "not_found")
}

func TestGit_WithoutATokenReadsPublicRepositoriesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	dir := t.TempDir()
	if out, err := git(t.Context(), t, dir, "", "clone", "-q", w.app.GitURL(w.repo), "private"); err == nil {
		t.Errorf("private clone without a token succeeded: %s", out)
	}
	if err := w.server.SetPrivate("octo-org/widgets", false); err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(dir, "public")
	cmd := []string{"-c", "credential.helper=", "clone", "-q", w.app.GitURL(w.repo), clone}
	if out, err := git(t.Context(), t, dir, "", cmd...); err != nil {
		t.Errorf("public clone: %v\n%s", err, out)
	}
	if out, err := git(t.Context(), t, clone, "ghs_invented", "push", "-q", "origin", "HEAD:refs/heads/x"); err == nil {
		t.Errorf("push with an invented token succeeded: %s", out)
	}
}

func TestRevoke_EndsTheTokenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenPublish)
	w.app.Revoke(t.Context(), token)
	_, err := w.app.FindPullRequests(t.Context(), token, w.repo, "agent/x")
	wantCode(t, err, core.Unavailable, github.CodeAppUnauthorized)
	if out, err := git(t.Context(), t, t.TempDir(), token.Value, "ls-remote", w.app.GitURL(w.repo)); err == nil {
		t.Errorf("a revoked token still reads: %s", out)
	}
}

func TestMint_TokenDiesAfterAnHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	token := w.mint(t, core.TokenRead)
	if left := token.ExpiresAt.Sub(w.server.Now()); left < 59*time.Minute || left > time.Hour {
		t.Errorf("the token says that it lives for %v", left)
	}
	w.server.Advance(61 * time.Minute)
	if out, err := git(t.Context(), t, t.TempDir(), token.Value, "ls-remote", w.app.GitURL(w.repo)); err == nil {
		t.Errorf("an expired token still reads: %s", out)
	}
}

func TestMint_StatelessTokensWorkTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{StatelessTokens: true})
	token := w.mint(t, core.TokenPublish)
	if len(token.Value) < 500 {
		t.Fatalf("the token has %d characters, want the long form", len(token.Value))
	}
	w.pushBranch(t, token, "agent/long")
	if _, err := w.app.FindPullRequests(t.Context(), token, w.repo, "agent/long"); err != nil {
		t.Error(err)
	}
}

func TestMint_Refusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		prepare func(t *testing.T, w *world) error
		kind    core.Kind
		code    string
	}{
		{"suspended", func(_ *testing.T, w *world) error { return w.server.SetSuspended(int64(w.repo.InstallationID), true) }, core.Conflict, github.CodeInstallationSuspended},
		{"uninstalled", func(_ *testing.T, w *world) error { return w.server.RemoveInstallation(int64(w.repo.InstallationID)) }, core.Conflict, github.CodeInstallationRemoved},
		{"repository not selected", func(t *testing.T, w *world) error {
			w.addRepository(t, "gadgets", true)
			_, err := w.server.AddInstallation("octo-org", "octo-org/gadgets")
			return err
		}, core.Conflict, github.CodeRepositoryNotSelected},
		{"permission not granted", func(_ *testing.T, w *world) error {
			return w.server.SetInstallationPermissions(int64(w.repo.InstallationID), map[string]string{"metadata": "read", "contents": "read"})
		}, core.Conflict, github.CodePermissionMissing},
		{"another key", func(t *testing.T, w *world) error {
			w.app = w.appWith(t, newKey(t), w.server.Now)
			return nil
		}, core.Unavailable, github.CodeAppUnauthorized},
		{"clock behind by an hour", func(t *testing.T, w *world) error {
			w.app = w.appWith(t, w.server.Config().PrivateKey, func() time.Time { return w.server.Now().Add(-time.Hour) })
			return nil
		}, core.Unavailable, github.CodeAppUnauthorized},
		{"clock ahead by five minutes", func(t *testing.T, w *world) error {
			w.app = w.appWith(t, w.server.Config().PrivateKey, func() time.Time { return w.server.Now().Add(5 * time.Minute) })
			return nil
		}, core.Unavailable, github.CodeAppUnauthorized},
		{"fixture", func(_ *testing.T, w *world) error {
			w.repo.InstallationID = core.FixtureInstallation
			return nil
		}, core.Invalid, github.CodeRepositoryNotSelected},
		{"server error", func(_ *testing.T, w *world) error {
			w.server.Fail(githubtest.Fault{Pattern: "POST /api/v3/app/installations/{id}/access_tokens", Status: http.StatusBadGateway})
			return nil
		}, core.Unavailable, github.CodeUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, githubtest.Options{})
			if err := tt.prepare(t, w); err != nil {
				t.Fatal(err)
			}
			_, err := w.app.Mint(t.Context(), w.repo, core.TokenPublish)
			wantCode(t, err, tt.kind, tt.code)
		})
	}
}

func TestMint_ClockSkewOfHalfAMinuteIsFine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	for _, skew := range []time.Duration{-30 * time.Second, 30 * time.Second} {
		app := w.appWith(t, w.server.Config().PrivateKey, func() time.Time { return w.server.Now().Add(skew) })
		if _, err := app.Mint(t.Context(), w.repo, core.TokenRead); err != nil {
			t.Errorf("skew %v: %v", skew, err)
		}
	}
}

func TestMint_WiderTokenIsRevokedAndRefused(t *testing.T) {
	t.Parallel()
	const mint = "POST /api/v3/app/installations/{id}/access_tokens"
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for name, body := range map[string]string{
		"all repositories": `{"token":"ghs_wide","expires_at":"` + later + `","permissions":{"contents":"read","metadata":"read"}}`,
		"more permissions": `{"token":"ghs_wide","expires_at":"` + later + `","permissions":{"contents":"write","metadata":"read"},"repositories":[{"id":REPO}]}`,
		"two repositories": `{"token":"ghs_wide","expires_at":"` + later + `","permissions":{"contents":"read","metadata":"read"},"repositories":[{"id":REPO},{"id":1}]}`,
		"another one":      `{"token":"ghs_wide","expires_at":"` + later + `","permissions":{"contents":"read","metadata":"read"},"repositories":[{"id":1}]}`,
		"expired":          `{"token":"ghs_wide","expires_at":"2020-01-01T00:00:00Z","permissions":{"contents":"read","metadata":"read"},"repositories":[{"id":REPO}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, githubtest.Options{})
			w.server.Fail(githubtest.Fault{Pattern: mint, Status: http.StatusCreated, Body: strings.ReplaceAll(body, "REPO", itoa(int64(w.repo.ID)))})
			_, err := w.app.Mint(t.Context(), w.repo, core.TokenRead)
			wantCode(t, err, core.Unavailable, github.CodeUnavailable)
			if !slices.Contains(w.server.Requests(), "DELETE /api/v3/installation/token") {
				t.Error("the token was not revoked")
			}
		})
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	info, err := w.app.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Slug != w.server.Config().AppSlug || info.BotID == 0 || info.Missing != nil {
		t.Errorf("Probe = %+v", info)
	}
	name, mail := info.Committer()
	want := itoa(info.BotID) + "+" + info.Slug + "[bot]@users.noreply.127.0.0.1"
	if name != info.Slug+"[bot]" || mail != want {
		t.Errorf("Committer = %s <%s>, want %s", name, mail, want)
	}
	w.server.Fail(githubtest.Fault{Pattern: "GET /api/v3/app", Status: 200, Body: `{"id":4242,"slug":"other","permissions":{"contents":"read","metadata":"read"}}`})
	w.server.Fail(githubtest.Fault{Pattern: "GET /api/v3/users/{login}", Status: 401, Body: `{}`})
	info, err = w.app.Probe(t.Context())
	if diff := cmp.Diff([]string{"contents:write", "pull_requests:write"}, info.Missing); err != nil || diff != "" || info.BotID != 0 {
		t.Errorf("Probe with too little granted: %v, bot %d (-want +got):\n%s", err, info.BotID, diff)
	}
}

func TestNewApp_RefusesAKeyThatIsNone(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{
		"empty": nil, "text": []byte("secret-canary"),
		"pem of something": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: []byte("secret-canary")}),
	} {
		_, err := github.NewApp(github.AppConfig{AppID: 1, PrivateKey: key})
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := github.NewApp(github.AppConfig{PrivateKey: newKey(t)}); err == nil {
		t.Error("no App id, and no error")
	}
}

func (w *world) appWith(t *testing.T, key []byte, now func() time.Time) *github.App {
	t.Helper()
	app, err := github.NewApp(github.AppConfig{Bases: w.bases, AppID: w.server.Config().AppID, PrivateKey: key, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// newKey is a PKCS #8 key that the stand-in does not know.
func newKey(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
