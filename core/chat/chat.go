// Package chat is the use cases behind the pages: sign in, choose a repository, create a session,
// post, cancel, read the timeline, ask for a publish. It decides who may do what.
package chat

import (
	"context"
	"time"

	"agent-sandboxing/core"
)

// Store is what the use cases read and write. Methods that change a session append their events in
// the same transaction and fail with core.Errors that a page can show.
type Store interface {
	UpsertUser(ctx context.Context, p core.Person) (core.User, error)
	User(ctx context.Context, id core.UserID) (core.User, error)
	// SetRole changes a role and writes down who did. NotFound when by has no longer the role to do so,
	// unless they are configured to.
	SetRole(ctx context.Context, id core.UserID, role core.UserRole, by core.UserID, configured bool) error
	// People lists who has signed in, by a part of login or name.
	People(ctx context.Context, query string, limit int) ([]core.UserRow, error)
	AuditOf(ctx context.Context, actions []string, limit int) ([]core.AuditRow, error)
	SaveUserToken(ctx context.Context, id core.UserID, t core.UserToken) error
	// UserToken reads the token, Unauthenticated reauth_required when there is none.
	UserToken(ctx context.Context, id core.UserID) (core.UserToken, error)
	// RefreshUserToken runs refresh on the token under a row lock and stores what it returns; when
	// another request has refreshed it meanwhile (version differs) it returns that one instead.
	RefreshUserToken(ctx context.Context, id core.UserID, version int64, refresh func(core.UserToken) (core.UserToken, error)) (core.UserToken, error)

	// DropUserToken forgets the token of that version.
	DropUserToken(ctx context.Context, id core.UserID, version int64) error
	// Disconnected forgets the person's token and signs them out everywhere; by is "" when GitHub said so.
	Disconnected(ctx context.Context, id, by core.UserID) error

	CreateLogin(ctx context.Context, id core.UserID) (core.Login, error)
	// Login returns a live login with its user and moves its last_seen_at at most once a minute;
	// Unauthenticated signed_out when it is revoked, idle for 7 days or 30 days old.
	Login(ctx context.Context, id core.LoginID) (core.Login, core.User, error)
	EndLogin(ctx context.Context, id core.LoginID) error
	// EndLogins signs all of a person's browsers out and writes down who did.
	EndLogins(ctx context.Context, id, by core.UserID) (ended int64, err error)
	Browsers(ctx context.Context, id core.UserID) (int, error)
	// Installation is what was last known of one on which something was started. NotFound.
	Installation(ctx context.Context, id core.InstallationID) (core.Installation, error)

	// CreateSession inserts session and first message; a repeated ClientKey returns the first one.
	CreateSession(ctx context.Context, n core.NewSession) (core.ChatSession, error)
	// SessionByKey is the owner's session that was created with the key. NotFound.
	SessionByKey(ctx context.Context, owner core.UserID, key string) (core.ChatSession, error)
	Session(ctx context.Context, id core.SessionID) (core.ChatSession, error)
	Sessions(ctx context.Context, f core.SessionFilter) ([]core.SessionRow, error)
	RenameSession(ctx context.Context, id core.SessionID, title string) error
	ArchiveSession(ctx context.Context, id core.SessionID, archived bool) error

	// Repository is what was last known of it; NotFound unless a session was started or a policy set on it.
	Repository(ctx context.Context, id core.RepositoryID) (core.Repository, error)
	// SaveRepository keeps what GitHub says of one now.
	SaveRepository(ctx context.Context, r core.Repository, stale time.Time) error
	// RepositoryPolicy is what an administrator chose, "" when none did.
	RepositoryPolicy(ctx context.Context, id core.RepositoryID) (core.BashPolicy, error)
	// SetRepositoryPolicy keeps and audits the choice; "" takes it back.
	SetRepositoryPolicy(ctx context.Context, r core.Repository, p core.BashPolicy, by core.UserID) error

	// RepositoryEgress is the mode that an administrator chose, "" when none did.
	RepositoryEgress(ctx context.Context, id core.RepositoryID) (core.EgressMode, error)
	// SetRepositoryEgress keeps and audits the choice; "" takes it back.
	SetRepositoryEgress(ctx context.Context, r core.Repository, m core.EgressMode, by core.UserID) error
	// RepositoryHosts is the repository's list, by name.
	RepositoryHosts(ctx context.Context, id core.RepositoryID) ([]core.RepositoryHost, error)
	// AddRepositoryHost and RemoveRepositoryHost change the list and audit it; a repetition changes
	// nothing. With a session its log says so, too. Conflict hosts_full.
	AddRepositoryHost(ctx context.Context, r core.Repository, host string, by core.User, session core.SessionID) error
	RemoveRepositoryHost(ctx context.Context, r core.Repository, host string, by core.UserID) error
	// Egress sums up what the session's sandbox has reached, with its limit newest rows (0: all).
	Egress(ctx context.Context, id core.SessionID, limit int) (core.EgressSummary, error)

	// PostMessage queues; a repeated ClientKey returns the first one. Conflict session_archived,
	// too_many_active.
	PostMessage(ctx context.Context, n core.NewMessage) (core.Message, error)
	// EditMessage and RemoveMessage touch a queued message only (Conflict not_queued). Removing
	// ends it as cancelled.
	EditMessage(ctx context.Context, session core.SessionID, id core.MessageID, text string) error
	RemoveMessage(ctx context.Context, session core.SessionID, id core.MessageID, by string) error
	// RequestCancel stores the request for the session's working or preparing message. A message
	// that is still queued ends at once as cancelled. Nothing active: Conflict nothing_to_cancel.
	RequestCancel(ctx context.Context, session core.SessionID, by string) (core.Message, error)
	// RequestPublish stores a publication of step requested; a repeated ClientKey returns the first
	// one. Conflict publish_pending while another is unfinished. paths take the place of what was chosen
	// before; nil leaves that as it is.
	RequestPublish(ctx context.Context, p core.Publication, paths core.PathChoices) (core.Publication, error)
	// PathChoices are the paths that people took into the session's publishes, or out of them.
	PathChoices(ctx context.Context, id core.SessionID) (core.PathChoices, error)
	// RequestStop asks the sandbox's worker to stop it.
	RequestStop(ctx context.Context, id core.SessionID) error

	// Timeline reads one snapshot with the last limit events (0: all) before sequence before (0: newest).
	Timeline(ctx context.Context, id core.SessionID, before int64, limit int) (core.Timeline, error)
	EventsSince(ctx context.Context, id core.SessionID, after int64, limit int) ([]core.Event, error)
	Message(ctx context.Context, session core.SessionID, id core.MessageID) (core.Message, error)
	// Artifact is NotFound when it belongs to another session.
	Artifact(ctx context.Context, session core.SessionID, id core.ArtifactID) (core.Artifact, error)
	// DiffIndex is the file index of a diff artifact.
	DiffIndex(ctx context.Context, session core.SessionID, id core.ArtifactID) ([]core.ChangedFile, error)
	// LatestDiffID is "" when nothing was captured yet.
	LatestDiffID(ctx context.Context, id core.SessionID) (core.ArtifactID, error)
	// PullRequest is the session's pull request, nil when there is none.
	PullRequest(ctx context.Context, id core.SessionID) (*core.PullRequest, error)
	// PullRequestRead keeps what GitHub says of it, with an event when its state is another one.
	PullRequestRead(ctx context.Context, session core.SessionID, p core.PullRequest) error
	Publication(ctx context.Context, session core.SessionID, id core.PublicationID) (core.Publication, error)
	// CancelPublication ends an attempt of which nothing was sent, or asks its worker to; Conflict
	// publish_not_waiting when it is over, publish_sent when it is too late.
	CancelPublication(ctx context.Context, session core.SessionID, id core.PublicationID) error
	// LastPublished is the newest publication of the session whose push was done, nil when none.
	LastPublished(ctx context.Context, id core.SessionID) (*core.Publication, error)
	Workers(ctx context.Context) ([]core.Worker, error)
	Audit(ctx context.Context, e core.AuditEntry) error
}

// GitHub is what a person's own token can ask. Errors are core.Errors: reauth_required on 401,
// github_forbidden, not_found, github_rate_limited (with the time), github_unavailable.
type GitHub interface {
	SignInURL(state, verifier string) string
	Exchange(ctx context.Context, code, verifier string) (core.UserToken, error)
	Refresh(ctx context.Context, t core.UserToken) (core.UserToken, error)
	Person(ctx context.Context, t core.UserToken) (core.Person, error)
	// Disconnect takes back what the person gave to the App.
	Disconnect(ctx context.Context, t core.UserToken) error
	Installations(ctx context.Context, t core.UserToken) (core.Accounts, error)
	// Repositories lists the installation's repositories that the person sees, every page.
	Repositories(ctx context.Context, t core.UserToken, id core.InstallationID) ([]core.Repository, error)
	// RepositoryPage is one request's worth of them; pages hold PageOfRepositories and count from 1.
	RepositoryPage(ctx context.Context, t core.UserToken, id core.InstallationID, page int) (core.RepositoryPage, error)
	// Repository reads one by id with the person's permissions.
	Repository(ctx context.Context, t core.UserToken, id core.RepositoryID) (core.Repository, error)
	// Branches lists the first limit branches by name and says whether there are more.
	Branches(ctx context.Context, t core.UserToken, repo core.Repository, limit int) (list []core.Branch, more bool, err error)
	// BranchesNamed lists branches whose name begins with prefix, among any number.
	BranchesNamed(ctx context.Context, t core.UserToken, repo core.Repository, prefix string) ([]core.Branch, error)
	// Branch resolves one branch with its commit's subject. not_found, empty_repository.
	Branch(ctx context.Context, t core.UserToken, repo core.Repository, name string) (core.Branch, error)
	// PullRequest reads one of the repository.
	PullRequest(ctx context.Context, t core.UserToken, repo core.Repository, number int) (core.PullRequest, error)
	// InstallURL is where the App is installed on another account.
	InstallURL(appSlug string) string
}
