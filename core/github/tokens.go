package github

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"agent-sandboxing/core"
)

// sharedUntil is how long before its end a read token is given out for the last time.
const sharedUntil = 5 * time.Minute

// Tokens hands out the App's installation tokens, in memory alone. A token that may only read is shared
// by all who read the same repository; one that publishes is minted for its one use. It is safe for
// concurrent use.
type Tokens struct {
	app     *App
	known   func(core.RepoToken)
	minting singleflight.Group

	mu     sync.Mutex
	shared []sharedToken
}

type sharedToken struct {
	installation core.InstallationID
	repository   core.RepositoryID
	core.RepoToken
}

// NewTokens tells known of every token before anybody has it, so that it can be kept out of texts.
func NewTokens(app *App, known func(core.RepoToken)) *Tokens {
	return &Tokens{app: app, known: known}
}

// Mint returns a token for one repository and one purpose; its refusals are the App's.
func (t *Tokens) Mint(ctx context.Context, repo core.Repository, purpose core.TokenPurpose) (core.RepoToken, error) {
	if purpose != core.TokenRead {
		return t.fresh(ctx, repo, purpose)
	}
	if token, ok := t.find(repo); ok {
		return token, nil
	}
	// Whoever asks meanwhile waits for the same answer, which the end of one of them does not take away.
	flight := t.minting.DoChan(key(repo), func() (any, error) {
		if token, ok := t.find(repo); ok {
			return token, nil
		}
		token, err := t.fresh(context.WithoutCancel(ctx), repo, purpose)
		if err == nil {
			t.share(repo, token)
		}
		return token, err
	})
	select {
	case got := <-flight:
		return got.Val.(core.RepoToken), got.Err
	case <-ctx.Done():
		return core.RepoToken{}, context.Cause(ctx)
	}
}

func (t *Tokens) fresh(ctx context.Context, repo core.Repository, purpose core.TokenPurpose) (core.RepoToken, error) {
	token, err := t.app.Mint(ctx, repo, purpose)
	if err == nil {
		t.known(token)
	}
	return token, err
}

// key names a repository of an installation: another installation's token has other rights.
func key(repo core.Repository) string {
	return fmt.Sprintf("%d/%d", repo.InstallationID, repo.ID)
}

// find forgets what is at its end on the way.
func (t *Tokens) find(repo core.Repository) (core.RepoToken, bool) {
	now := t.app.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared = slices.DeleteFunc(t.shared, func(s sharedToken) bool { return !s.ExpiresAt.After(now.Add(sharedUntil)) })
	for _, s := range t.shared {
		if s.installation == repo.InstallationID && s.repository == repo.ID {
			return s.RepoToken, true
		}
	}
	return core.RepoToken{}, false
}

func (t *Tokens) share(repo core.Repository, token core.RepoToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared = append(t.shared, sharedToken{repo.InstallationID, repo.ID, token})
}

// Refused says that GitHub did not take a token: nobody gets it again. It is not revoked, because others
// may be in the middle of using it.
func (t *Tokens) Refused(token core.RepoToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared = slices.DeleteFunc(t.shared, func(s sharedToken) bool { return s.Value == token.Value })
}

// Revoke ends a token that was minted for one use.
func (t *Tokens) Revoke(ctx context.Context, token core.RepoToken) { t.app.Revoke(ctx, token) }

// Close revokes the tokens that are shared; nobody may use them any more.
func (t *Tokens) Close(ctx context.Context) {
	t.mu.Lock()
	shared := t.shared
	t.shared = nil
	t.mu.Unlock()
	var revoking sync.WaitGroup
	for _, s := range shared {
		revoking.Go(func() { t.app.Revoke(ctx, s.RepoToken) })
	}
	revoking.Wait()
}
