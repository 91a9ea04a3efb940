package publish

import (
	"context"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
)

// Codes of GitHub's API that decide what is done next: a token that it does not take, and a text.
const (
	codeTokenRefused = "github_app_unauthorized"
	codeBodyTooLong  = "body_too_long"
)

// remote is the repository on GitHub as one attempt reaches it: with a token of its own, which is minted
// anew once when GitHub does not take it any more.
type remote struct {
	mirror Mirror
	pulls  PullRequests
	tokens Tokens
	repo   core.Repository
	branch string // the session's
	pause  time.Duration

	token   core.RepoToken
	renewed bool
}

func (r *remote) mint(ctx context.Context) (err error) {
	r.token, err = r.tokens.Mint(ctx, r.repo, core.TokenPublish)
	return err
}

func (r *remote) revoke(ctx context.Context) { r.tokens.Revoke(context.WithoutCancel(ctx), r.token) }

// renew mints another token after one was refused. A token that is a moment old may not be known
// everywhere yet, which the pause bridges.
func (r *remote) renew(ctx context.Context) error {
	r.renewed = true
	r.revoke(ctx)
	if err := r.mint(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(r.pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withToken calls, and once more with a new token when the first one was refused. A refusal has no effect
// on GitHub, so that nothing is done twice.
func withToken[T any](ctx context.Context, r *remote, call func(core.RepoToken) (T, error)) (T, error) {
	result, err := call(r.token)
	if code := core.CodeOf(err); r.renewed || code != codeTokenRefused && code != mirror.CodeForbidden {
		return result, err
	}
	if err := r.renew(ctx); err != nil {
		return result, err
	}
	return call(r.token)
}

func (r *remote) find(ctx context.Context) ([]core.PullRequest, error) {
	return withToken(ctx, r, func(t core.RepoToken) ([]core.PullRequest, error) {
		return r.pulls.FindPullRequests(ctx, t, r.repo, r.branch)
	})
}

func (r *remote) open(ctx context.Context, text core.PullRequestText) (core.PullRequest, error) {
	text.Head = r.branch
	return withToken(ctx, r, func(t core.RepoToken) (core.PullRequest, error) {
		return r.pulls.OpenPullRequest(ctx, t, r.repo, text)
	})
}

func (r *remote) update(ctx context.Context, number int, text core.PullRequestText) (core.PullRequest, error) {
	return withToken(ctx, r, func(t core.RepoToken) (core.PullRequest, error) {
		return r.pulls.UpdatePullRequest(ctx, t, r.repo, number, text)
	})
}

func (r *remote) reopen(ctx context.Context, number int) (core.PullRequest, error) {
	return withToken(ctx, r, func(t core.RepoToken) (core.PullRequest, error) {
		return r.pulls.ReopenPullRequest(ctx, t, r.repo, number)
	})
}

func (r *remote) behind(ctx context.Context, base, head string) (int, error) {
	return withToken(ctx, r, func(t core.RepoToken) (int, error) {
		return r.pulls.Behind(ctx, t, r.repo, base, head)
	})
}

// head is the commit of the session's branch, "" when there is no such branch.
func (r *remote) head(ctx context.Context) (string, error) {
	return withToken(ctx, r, func(t core.RepoToken) (string, error) {
		return r.mirror.RemoteHead(ctx, r.repo, t, r.branch)
	})
}

// fetch brings the session's branch into q and returns its head.
func (r *remote) fetch(ctx context.Context, q *mirror.Quarantine) (string, error) {
	return withToken(ctx, r, func(t core.RepoToken) (string, error) {
		return r.mirror.FetchBranch(ctx, r.repo, t, q, r.branch)
	})
}

func (r *remote) push(ctx context.Context, q *mirror.Quarantine, commit, expected string) error {
	_, err := withToken(ctx, r, func(t core.RepoToken) (struct{}, error) {
		return struct{}{}, r.mirror.Push(ctx, r.repo, t, q, commit, r.branch, expected)
	})
	return err
}
