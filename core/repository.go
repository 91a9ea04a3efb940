package core

import "time"

// Installation is an account on which the GitHub App is installed.
type Installation struct {
	ID          InstallationID
	Account     string // login
	AccountID   int64
	AccountType string // User or Organization
	AllRepos    bool
	Suspended   bool
	Removed     bool     // the App is not installed there any more
	Missing     []string // what sessions need and the account has not granted, as name:level
	SettingsURL string   // on GitHub, "" when unknown
}

// Accounts are the installations that a person reaches. Hidden counts organizations that GitHub left
// out until the person has signed in to them.
type Accounts struct {
	Installations []Installation
	Hidden        int
}

// RepositoryPage is a part of an installation's repositories, in GitHub's order.
type RepositoryPage struct {
	Repositories []Repository
	Total        int // of all pages
	Last         int // number of the last page; the first is 1
}

// Repository is a GitHub repository as one person sees it.
type Repository struct {
	ID             RepositoryID
	InstallationID InstallationID
	Owner, Name    string
	DefaultBranch  string
	Private        bool
	Archived       bool
	Fork           bool
	Language       string
	Description    string
	PushedAt       time.Time
	CanPull        bool // of the person asked for
	CanPush        bool
}

// FullName is owner/name.
func (r Repository) FullName() string { return r.Owner + "/" + r.Name }

// FixtureInstallation marks a repository that is a folder of FIXTURES_DIR instead of GitHub's
// (only with ENABLE_FIXTURES). Its RepositoryID is negative; it is never published.
const FixtureInstallation InstallationID = 0

// IsFixture says that the repository is a local folder.
func (r Repository) IsFixture() bool { return r.InstallationID == FixtureInstallation }

// Branch is a branch and the commit that it points to.
type Branch struct {
	Name        string
	SHA         string
	Subject     string // first line of the commit, "" when not asked for
	CommittedAt time.Time
	Protected   bool
}

// TokenPurpose narrows an installation token to what one git or API use needs.
type TokenPurpose string

const (
	TokenRead    TokenPurpose = "read"    // contents:read, metadata:read
	TokenPublish TokenPurpose = "publish" // contents:write, pull_requests:write, metadata:read
)

// RepoToken is a short-lived credential for one repository and one purpose. It never leaves the
// control plane and never reaches argv, an environment, a file, a log or an event.
type RepoToken struct {
	Value     string
	Purpose   TokenPurpose
	MintedAt  time.Time
	ExpiresAt time.Time
}

// String keeps the value out of logs.
func (RepoToken) String() string { return "[secret]" }

// GoString keeps the value out of %#v.
func (RepoToken) GoString() string { return "[secret]" }

// Person is who GitHub says a token belongs to.
type Person struct {
	ID    GitHubUserID
	Login string
	Name  string
}

// PullRequestText is what a pull request is opened or updated with.
type PullRequestText struct {
	Title, Body string
	Head, Base  string // branch names
	Draft       bool
}
