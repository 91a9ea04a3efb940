// Package pages holds one component per page. Each takes one props struct and does no I/O.
package pages

import (
	"time"

	"agent-sandboxing/views/components"
	"agent-sandboxing/views/diff"
	"agent-sandboxing/views/layout"
)

// LoginProps is the sign-in page.
type LoginProps struct {
	Layout   layout.Props
	ReturnTo string // a path of ours, "" for the session list
	// Notice says why one is here: signed out, sign-in cancelled or expired, not allowed.
	Notice string
	Tone   string   // of Notice: info, warning or danger
	Host   string   // "github.com", or the Enterprise host
	People []string // the stand-in's in a demo, as "login (what they may do)"; nil otherwise
}

// InstallationsProps lists the accounts on which the App is installed.
type InstallationsProps struct {
	Layout     layout.Props
	Items      []InstallationProps
	InstallURL string // "" when unknown
	Notice     string // "Could not refresh from GitHub (rate limit, resets 14:32)."
	NoticeURL  string // a page of GitHub's that helps, "" for none
	Hidden     int    // organizations that GitHub leaves out until one signs in to them
	AgainURL   string // signs in once more and comes back
}

// InstallationProps is one account.
type InstallationProps struct {
	ID        int64
	Account   string
	Type      string // User or Organization
	AvatarURL string
	AllRepos  bool
	Suspended bool
	Missing   []string // permissions that its owner has to accept
	// SettingsURL is the installation's page on GitHub, "" when unknown.
	SettingsURL string
}

// NewProps is the new-session page: repository, branch, message.
type NewProps struct {
	Layout       layout.Props
	Installation InstallationProps
	Several      bool // there are other installations to change to

	Query        string
	Repositories []RepositoryProps
	MoreFound    int  // matches beyond Repositories
	Unread       bool // only the first of several pages was looked at
	Repository   *RepositoryProps

	BranchQuery  string
	Branches     []BranchProps
	MoreBranches bool
	Branch       *BranchProps // resolved

	Text      string
	ClientKey string
	MaxBytes  int
	Policy    string
	Model     string
	Egress    string   // the chosen network mode
	Egresses  []string // those that may be chosen, the loosest first

	Error       string // of the form as a whole
	TextError   string
	BranchError string // moved, gone
	RepoError   string // archived, no write access, empty: no session can begin there
}

// RepositoryProps is a repository to choose.
type RepositoryProps struct {
	ID            int64
	FullName      string
	Description   string
	Language      string
	DefaultBranch string
	Private       bool
	Archived      bool
	Fork          bool
	CanPush       bool
	PushedAt      time.Time
	Fixture       bool
}

// BranchProps is a branch with its commit; SHA and Subject are set once it is resolved.
type BranchProps struct {
	Name        string
	SHA         string
	Subject     string
	CommittedAt time.Time
	Protected   bool
	Default     bool
}

// SessionsProps is the session list.
type SessionsProps struct {
	Layout  layout.Props
	Query   string
	State   string // "", active, review, failed, archived
	All     bool   // everybody's sessions (admins)
	Rows    []SessionRowProps
	NextURL string // older rows, "" for none
	PollURL string // this list again, "" when it need not be polled
	Fresh   bool   // the person has no session at all
}

// SessionRowProps is a line of the list.
type SessionRowProps struct {
	ID         string
	Title      string
	Repository string
	BaseBranch string
	Owner      string // "" for one's own
	// State is queued, preparing, working, cancelling, review, completed, failed, cancelled, idle.
	State       string
	StartedAt   time.Time // of a working message
	Queued      int       // messages that wait behind it
	Files       int
	Additions   int
	Deletions   int
	PullRequest *components.PullRequestProps
	Archived    bool
	UpdatedAt   time.Time
}

// SessionProps is the main screen.
type SessionProps struct {
	Layout      layout.Props
	Head        components.HeadProps
	Stream      components.StreamProps
	EarlierURL  string // "" when the timeline is whole
	Turns       []components.TurnProps
	Provision   components.ProvisionProps
	Status      components.StatusProps
	Queue       components.QueueProps
	Composer    components.ComposerProps
	Changes     components.ChangesProps
	PullRequest components.PullRequestProps
	Artifacts   []components.ArtifactProps
	Network     components.NetworkProps
	Details     components.DetailsProps
	Recent      []RecentProps
	Tab         string // chat, changes or details: the zone in front on a narrow screen
}

// RecentProps is a line of the list beside the session.
type RecentProps struct {
	ID    string
	Title string
	State string
	Here  bool
}

// DiffProps is a captured diff.
type DiffProps struct {
	Layout     layout.Props
	SessionID  string
	DiffID     string
	Title      string // of the session
	Repository string
	BaseBranch string
	BaseSHA    string
	CapturedAt time.Time
	Latest     bool // it is the newest one
	Truncated  bool // at capture
	Diff       diff.Document
	ArtifactID string // for the raw patch, "" for none
	CanPublish bool
	PullNumber int // of the session's pull request, 0 for none
}

// PublishProps is the form that asks for a pull request, or for its update.
type PublishProps struct {
	Layout     layout.Props
	SessionID  string
	Session    string // title
	Repository string
	Branch     string
	Title      string
	Body       string
	Draft      bool
	Base       string // the branch to merge into
	ClientKey  string
	Kept       []PublishPathProps // that a rule keeps out
	Paths      []PublishPathProps // the others
	MoreFiles  int                // that are not listed
	Total      int
	Included   int // files that go in as the form begins
	Additions  int // of them
	Deletions  int
	DiffURL    string
	Warnings   []string
	Number     int    // of the pull request that will be updated, 0 opens one
	Blocked    string // why it cannot be published now, "" for none
	Error      string
	TitleError string
	BaseError  string
	Behind     int // commits of BehindBase that the pull request had not when it was published
	BehindBase string
	Author     string // "The platform commits as agent-sandboxing[bot], co-authored by @octo-dev."
}

// PublishPathProps is one changed path of the form.
type PublishPathProps struct {
	File  components.FileProps
	Rule  string // keeps it out unless it is ticked, "" for none
	In    bool   // ticked
	Fixed bool   // its name cannot be sent, so it goes by the rule
	Note  string // what will become of it, "" for nothing special
}

// ArtifactPageProps is one artifact's text.
type ArtifactPageProps struct {
	Layout     layout.Props
	SessionID  string
	Session    string // title
	ID         string
	Name       string
	Kind       string
	Size       int64
	CreatedAt  time.Time
	Redactions int
	Truncated  bool
	Lines      []string // of this page, untrusted
	FirstLine  int      // number of Lines[0], from 1
	TotalLines int
	Page       int // from 1
	Pages      int
	Binary     bool   // not shown
	Gone       string // why the bytes are no longer kept, "" while they are
}

// ErrorProps is a failure in the same frame.
type ErrorProps struct {
	Layout    layout.Props
	Status    int
	Title     string // "" takes the status's own
	Message   string
	Code      string
	RequestID string
	ActionURL string
	Action    string
	AgainURL  string // signs in once more and comes back, "" when that does not help
}

// NetworkLogProps is everything that a session's sandbox has reached or wanted.
type NetworkLogProps struct {
	Layout  layout.Props
	Session string // title
	Network components.NetworkProps
}

// RepositoryNetworkProps is what sandboxes of a repository's sessions may reach.
type RepositoryNetworkProps struct {
	Layout       layout.Props
	Installation int64
	Repository   int64
	FullName     string
	Effective    string // of new sessions
	Chosen       string // by an administrator, "" for none
	Ceiling      string // the operator's
	Modes        []string
	Hosts        []HostProps
	Operator     []string // hosts that hold for every repository
	CanList      bool     // the viewer may change the list
	CanChoose    bool     // the viewer may choose the mode
	Typed        string   // a host that was not taken
	HostError    string   // why not
}

// HostProps is an entry of a list of hosts.
type HostProps struct {
	Host    string
	AddedBy string // login, "" when unknown
	AddedAt time.Time
}

// SettingsProps is the person's own settings.
type SettingsProps struct {
	Layout     layout.Props
	GitHubHost string
	Browsers   int // that are signed in, this one too
}

// SetupProps is the page after the App was installed, asked for or changed on GitHub.
type SetupProps struct {
	Layout    layout.Props
	Requested bool // an owner has to approve first
	SignedIn  bool
}

// PeopleProps is who has signed in.
type PeopleProps struct {
	Layout layout.Props
	Query  string
	People []PersonProps
	Full   bool // there may be more
	Audit  []AuditProps
}

// PersonProps is one of them.
type PersonProps struct {
	ID         string
	Login      string
	Name       string
	AvatarURL  string
	Admin      bool
	Configured bool // by ADMIN_LOGINS
	Self       bool
	LastSeenAt time.Time
	Browsers   int
	Connected  bool // there is a GitHub token of theirs
}

// AuditProps is a thing that was done to somebody's access.
type AuditProps struct {
	By     string
	Action string
	Detail string
	At     time.Time
}
