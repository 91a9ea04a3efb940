package github

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"agent-sandboxing/core"
)

// Codes of a refused mint.
const (
	CodeInstallationRemoved   = "installation_removed"
	CodeInstallationSuspended = "installation_suspended"
	CodeRepositoryNotSelected = "repository_not_selected"
	CodePermissionMissing     = "permission_missing"
)

// AppConfig is what a GitHub App is reached with.
type AppConfig struct {
	Bases      Bases
	AppID      int64
	PrivateKey []byte           // PEM
	Roots      *x509.CertPool   // that GitHub's certificate is checked against; nil: the system's
	Now        func() time.Time // nil: time.Now
	Log        *slog.Logger
}

// App is the GitHub App itself. It alone can mint tokens, so only a worker holds one. Printing it
// shows nothing.
type App struct {
	bases Bases
	id    int64
	key   *rsa.PrivateKey
	http  *http.Client
	now   func() time.Time
	log   *slog.Logger
	wait  func(context.Context, time.Duration) error
}

// NewApp reads the key; it asks GitHub nothing (Probe does).
func NewApp(c AppConfig) (*App, error) {
	key, err := parseKey(c.PrivateKey)
	if err != nil {
		return nil, err
	}
	if c.AppID <= 0 {
		return nil, errors.New("the GitHub App id is missing")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &App{bases: c.Bases, id: c.AppID, key: key, http: newHTTPClient(0, c.Roots), now: c.Now, log: c.Log, wait: wait}, nil
}

// String keeps the key out of logs.
func (*App) String() string { return "[github app]" }

// GoString keeps the key out of %#v.
func (*App) GoString() string { return "[github app]" }

// GitURL is the clone address of a repository, without a credential.
func (a *App) GitURL(repo core.Repository) string { return a.bases.GitURL(repo) }

// permissionsFor is exactly what a purpose needs, in GitHub's words.
func permissionsFor(purpose core.TokenPurpose) (map[string]string, error) {
	switch purpose {
	case core.TokenRead:
		return map[string]string{"metadata": "read", "contents": "read"}, nil
	case core.TokenPublish:
		return map[string]string{"metadata": "read", "contents": "write", "pull_requests": "write"}, nil
	}
	return nil, fmt.Errorf("no permissions are known for token purpose %q", purpose)
}

// mintRequest and mintAnswer are our own because go-github's permissions are forty pointers.
type mintRequest struct {
	RepositoryIDs []int64           `json:"repository_ids"`
	Permissions   map[string]string `json:"permissions"`
}

type mintAnswer struct {
	Token        string            `json:"token"`
	ExpiresAt    time.Time         `json:"expires_at"`
	Permissions  map[string]string `json:"permissions"`
	Repositories []struct {
		ID int64 `json:"id"`
	} `json:"repositories"`
}

// Mint asks for a token for one repository, by id, with the permissions of one purpose. A token that
// turns out wider than asked is revoked and refused. Codes: installation_removed,
// installation_suspended, repository_not_selected, permission_missing, github_app_unauthorized.
func (a *App) Mint(ctx context.Context, repo core.Repository, purpose core.TokenPurpose) (core.RepoToken, error) {
	if repo.IsFixture() {
		return core.RepoToken{}, core.Fail(core.Invalid, CodeRepositoryNotSelected, "A fixture repository is not on GitHub.")
	}
	permissions, err := permissionsFor(purpose)
	if err != nil {
		return core.RepoToken{}, err
	}
	client, err := a.asApp()
	if err != nil {
		return core.RepoToken{}, err
	}
	path := fmt.Sprintf("app/installations/%d/access_tokens", repo.InstallationID)
	req, err := client.NewRequest(http.MethodPost, path, mintRequest{RepositoryIDs: []int64{int64(repo.ID)}, Permissions: permissions})
	if err != nil {
		return core.RepoToken{}, fmt.Errorf("mint a token: %w", err)
	}
	var answer mintAnswer
	if _, err := client.Do(ctx, req, &answer); err != nil {
		return core.RepoToken{}, mintRefused(classify(ctx, err, byApp, a.now()))
	}
	token := core.RepoToken{Value: answer.Token, Purpose: purpose, MintedAt: a.now(), ExpiresAt: answer.ExpiresAt}
	if err := answer.check(repo.ID, permissions, a.now()); err != nil {
		a.Revoke(ctx, token)
		return core.RepoToken{}, unavailable().Because(fmt.Errorf("minted token: %w", err))
	}
	return token, nil
}

// check makes sure that the token is what was asked for, not more.
func (m mintAnswer) check(id core.RepositoryID, asked map[string]string, now time.Time) error {
	switch {
	case m.Token == "" || strings.ContainsFunc(m.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("no usable token in the answer")
	case !m.ExpiresAt.After(now):
		return errors.New("it has expired already")
	case len(m.Repositories) != 1 || m.Repositories[0].ID != int64(id):
		return errors.New("it is not for the one repository")
	case !maps.Equal(m.Permissions, asked):
		return errors.New("it has other permissions")
	}
	return nil
}

// mintRefused gives the refusals of a mint their own codes. GitHub tells two of them apart by text only.
func mintRefused(err error) error {
	cause, ok := errors.AsType[*RequestError](err)
	if !ok {
		return err
	}
	switch {
	case cause.Status == http.StatusNotFound:
		return core.Fail(core.Conflict, CodeInstallationRemoved, "The GitHub App is no longer installed on this account. Its owner has to install it again.").Because(cause)
	case cause.Status == http.StatusUnprocessableEntity && strings.Contains(cause.Text, "permissions"):
		return core.Fail(core.Conflict, CodePermissionMissing, "The GitHub App was not granted what it needs here (contents and pull requests, read and write). The account's owner has to accept its permissions.").Because(cause)
	case cause.Status == http.StatusUnprocessableEntity:
		return core.Fail(core.Conflict, CodeRepositoryNotSelected, "The GitHub App is not installed for this repository. The account's owner has to add it to the installation.").Because(cause)
	}
	return err
}

// Revoke ends a token before its time. It works after ctx was cancelled; a failure is logged only,
// since the token dies within the hour by itself.
func (a *App) Revoke(ctx context.Context, token core.RepoToken) {
	if token.Value == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	client, err := newClient(a.http, a.bases, token.Value)
	if err == nil {
		_, err = client.Apps.RevokeInstallationToken(ctx)
	}
	if err = classify(ctx, err, byInstallation, a.now()); err != nil {
		a.log.WarnContext(ctx, "installation token not revoked", "purpose", token.Purpose, "expires_at", token.ExpiresAt, "error", err)
	}
}

func (a *App) asApp() (*gh.Client, error) {
	jwt, err := signJWT(a.key, a.id, a.now())
	if err != nil {
		return nil, err
	}
	return newClient(a.http, a.bases, jwt)
}

// AppInfo is what GitHub says of the App.
type AppInfo struct {
	Slug    string
	BotID   int64    // of the user SLUG[bot]; 0 when GitHub did not tell
	Missing []string // permissions that publishing needs and the App does not ask for, as name:level
	mail    string
}

// Committer is the identity of the App's commits, which GitHub links to its bot user.
func (i AppInfo) Committer() (name, email string) {
	name = i.Slug + "[bot]"
	if i.BotID == 0 {
		return name, name + "@" + i.mail
	}
	return name, fmt.Sprintf("%d+%s@%s", i.BotID, name, i.mail)
}

// Slug is the App's name in URLs.
func (a *App) Slug(ctx context.Context) (string, error) {
	info, err := a.Probe(ctx)
	return info.Slug, err
}

// Probe proves that id and key belong together and reads who the App is.
func (a *App) Probe(ctx context.Context) (AppInfo, error) {
	client, err := a.asApp()
	if err != nil {
		return AppInfo{}, err
	}
	req, err := client.NewRequest(http.MethodGet, "app", nil)
	if err != nil {
		return AppInfo{}, fmt.Errorf("ask for the App: %w", err)
	}
	var answer struct {
		ID          int64             `json:"id"`
		Slug        string            `json:"slug"`
		Permissions map[string]string `json:"permissions"`
	}
	if _, err := client.Do(ctx, req, &answer); err != nil {
		return AppInfo{}, classify(ctx, err, byApp, a.now())
	}
	if answer.ID != a.id || !validName(answer.Slug) {
		return AppInfo{}, unavailable().Because(errors.New("GET /app answered another App"))
	}
	info := AppInfo{Slug: answer.Slug, mail: a.bases.NoreplyHost()}
	info.Missing = missing(answer.Permissions)
	info.BotID, err = a.botID(ctx, answer.Slug)
	return info, err
}

// botID asks anonymously, because a JWT opens nothing but the App's own routes. An instance that
// answers nobody anonymously leaves it 0.
func (a *App) botID(ctx context.Context, slug string) (int64, error) {
	client, err := newClient(a.http, a.bases, "")
	if err != nil {
		return 0, err
	}
	login := slug + "[bot]"
	u, _, err := client.Users.Get(ctx, login)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		a.log.WarnContext(ctx, "bot user not read", "error", classify(ctx, err, byApp, a.now()))
		return 0, nil
	}
	if !strings.EqualFold(u.GetLogin(), login) {
		return 0, nil
	}
	return u.GetID(), nil
}

// wait sleeps unless ctx ends first.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
