// Package publish takes a session's work to its one pull request. It holds the rules: what may be
// published, on which branch, and what happens after a crash between two steps.
package publish

import (
	"context"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
)

// Store is the ledger. Row and event commit together under the lease (core.ErrLeaseLost else).
type Store interface {
	// SavePublication inserts or updates the row and appends the events.
	SavePublication(ctx context.Context, lease core.Lease, p core.Publication, events ...core.Payload) error
	// FinishPublication writes the row, the pull request's row and the events in one transaction.
	FinishPublication(ctx context.Context, lease core.Lease, p core.Publication, pr core.PullRequest, events ...core.Payload) error
	// SaveCheckpoint keeps a copy of the work tree.
	SaveCheckpoint(ctx context.Context, lease core.Lease, c core.Checkpoint) error
	// SavePullRequest writes what GitHub says of the session's pull request now, with the events.
	SavePullRequest(ctx context.Context, lease core.Lease, pr core.PullRequest, events ...core.Payload) error
	// RepositoryRenamed keeps what GitHub says of a repository that has another name or owner now.
	RepositoryRenamed(ctx context.Context, repo core.Repository) error
	// PullRequest is the session's pull request, nil when there is none.
	PullRequest(ctx context.Context, id core.SessionID) (*core.PullRequest, error)
	// LastPublished is the newest publication of the session whose push was done, nil when none.
	LastPublished(ctx context.Context, id core.SessionID) (*core.Publication, error)
	// WithCommit are the session's publications that have a commit, newest first, whatever became of them:
	// a push whose answer was lost leaves our commit on GitHub and a failed row.
	WithCommit(ctx context.Context, id core.SessionID) ([]core.Publication, error)
	// Resolved are the session's publications that ended as a conflict which the agent was asked to resolve
	// since, in a turn that completed; oldest first.
	Resolved(ctx context.Context, id core.SessionID) ([]core.Publication, error)
	// LastRequest is the text of the message that was worked on last, "" when none was.
	LastRequest(ctx context.Context, id core.SessionID) (string, error)
	// PathChoices are the paths that people took into the session's publishes, or out of them.
	PathChoices(ctx context.Context, id core.SessionID) (core.PathChoices, error)
	// SessionEgress is what the session's sandbox may reach now.
	SessionEgress(ctx context.Context, id core.SessionID) (core.EgressPolicy, error)
	// Egress sums up what the session's sandbox has reached, with its limit newest rows (0: all).
	Egress(ctx context.Context, id core.SessionID, limit int) (core.EgressSummary, error)
	User(ctx context.Context, id core.UserID) (core.User, error)
}

// Tokens mints and revokes installation tokens for one repository and one purpose.
type Tokens interface {
	Mint(ctx context.Context, repo core.Repository, purpose core.TokenPurpose) (core.RepoToken, error)
	Revoke(ctx context.Context, token core.RepoToken)
}

// PullRequests is GitHub's pull request API, called with a publish token.
type PullRequests interface {
	// FindPullRequests lists those whose head is owner:branch, every state, newest first.
	FindPullRequests(ctx context.Context, token core.RepoToken, repo core.Repository, branch string) ([]core.PullRequest, error)
	OpenPullRequest(ctx context.Context, token core.RepoToken, repo core.Repository, text core.PullRequestText) (core.PullRequest, error)
	UpdatePullRequest(ctx context.Context, token core.RepoToken, repo core.Repository, number int, text core.PullRequestText) (core.PullRequest, error)
	ReopenPullRequest(ctx context.Context, token core.RepoToken, repo core.Repository, number int) (core.PullRequest, error)
	// Behind counts the commits of a branch that the commit head has not.
	Behind(ctx context.Context, token core.RepoToken, repo core.Repository, branch, head string) (int, error)
}

// Access asks GitHub, with the person's own token and no cache, whether they may push, and returns the
// repository as it is named now.
type Access interface {
	MayPush(ctx context.Context, user core.UserID, repo core.Repository) (core.Repository, error)
}

// Mirror is the control plane's git; the quarantine it hands out must be closed.
type Mirror interface {
	// Import takes the work tree into a quarantine.
	Import(ctx context.Context, session core.ChatSession, ws core.PlatformWorkspace) (*mirror.Quarantine, error)
	// Open makes a quarantine that holds the session's base alone.
	Open(ctx context.Context, session core.ChatSession) (*mirror.Quarantine, error)
	FetchBranch(ctx context.Context, repo core.Repository, token core.RepoToken, q *mirror.Quarantine, branch string) (head string, err error)
	RemoteHead(ctx context.Context, repo core.Repository, token core.RepoToken, branch string) (string, error)
	Push(ctx context.Context, repo core.Repository, token core.RepoToken, q *mirror.Quarantine, commit, branch, expected string) error
}
