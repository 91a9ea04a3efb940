package core

import "time"

// Role of a message in the conversation.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// UserRole is what a person may do on this installation.
type UserRole string

const (
	Member UserRole = "member"
	Admin  UserRole = "admin"
)

// User is a person who has signed in. The key is GitHub's numeric id; logins change hands.
type User struct {
	ID        UserID
	GitHubID  GitHubUserID
	Login     string
	Name      string
	Role      UserRole
	CreatedAt time.Time
}

// UserRow is a line of the list of people.
type UserRow struct {
	User       User
	LastSeenAt time.Time // zero: never
	Browsers   int       // that are signed in
	Connected  bool      // there is a GitHub token of theirs
}

// UserToken is a person's GitHub access. It is sealed in the database.
type UserToken struct {
	Access           string
	Refresh          string
	ExpiresAt        time.Time // zero: does not expire
	RefreshExpiresAt time.Time
	Version          int64 // raised by each write, and never one that was; a late refresh must not overwrite a newer login
}

// Login is one signed-in browser, ended by sign-out, 7 idle days or 30 days.
type Login struct {
	ID         LoginID
	UserID     UserID
	CreatedAt  time.Time
	LastSeenAt time.Time
}

// SessionFilter selects a page of the session list, newest activity first.
type SessionFilter struct {
	Owner    UserID // "" selects every owner (admins)
	Query    string // in title, repository and branch
	State    string // "", active, review, failed, archived
	Archived bool
	Before   time.Time // keyset: updated_at of the last row shown
	Limit    int
}

// SessionRow is a line of the session list.
type SessionRow struct {
	Session     ChatSession
	OwnerLogin  string
	LastState   MessageState
	LastMessage MessageID
	StartedAt   time.Time
	QueuedCount int
	Sandbox     SandboxState
	PullRequest *PullRequest
	Files       int
	Additions   int
	Deletions   int
}

// NewSession is a session with its first message.
type NewSession struct {
	Session   ChatSession // ID, OwnerID, Repository, BaseBranch, BaseSHA, Title, BashPolicy …
	Text      string
	ClientKey string // unique per owner: a double submit is one session
	MaxActive int    // unfinished messages that one person may have; 0: no cap
}

// NewMessage is a follow-up.
type NewMessage struct {
	SessionID SessionID
	OwnerID   UserID
	Text      string
	ClientKey string // unique per session: a double submit is one message
	Limits    TurnLimits
	MaxActive int
}

// Timeline is everything that a session page shows, read in one snapshot: the events after it are
// exactly those with a sequence above Session.LastSequence.
type Timeline struct {
	Session     ChatSession
	Owner       User
	Messages    []Message // oldest first, both roles
	Events      []Event   // in sequence; the last Limit only
	Earlier     bool      // events before the first were left out
	Sandbox     *Sandbox
	PullRequest *PullRequest
	Publication *Publication // the newest attempt
	Diff        *Artifact    // the newest diff, without data
	Changed     []ChangedFile
	Egress      EgressSummary
	Hosts       []string // the repository's list, read for EgressAllowlist only
}

// AuditEntry records what a person did that others may have to answer for.
type AuditEntry struct {
	UserID  UserID
	Action  string
	Session SessionID
	Detail  string
}

// AuditRow is an entry as it is read.
type AuditRow struct {
	By     string // login
	Action string
	Detail string
	At     time.Time
}
