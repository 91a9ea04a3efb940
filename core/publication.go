package core

import "time"

// PublishStep is how far a publish has come. Each step can be repeated after a crash.
type PublishStep string

const (
	PublishRequested PublishStep = "requested"
	PublishCommitted PublishStep = "committed"
	PublishPushed    PublishStep = "pushed"
	PublishDone      PublishStep = "done"
	PublishFailed    PublishStep = "failed"
)

// PublishOutcome is what a finished publish did.
type PublishOutcome string

const (
	PublishOpened    PublishOutcome = "opened"
	PublishUpdated   PublishOutcome = "updated"
	PublishUnchanged PublishOutcome = "unchanged" // already published, nothing new
)

// PublishChoice is what a person decided about a pull request that was closed without being merged.
type PublishChoice string

const (
	ChooseNothing PublishChoice = ""       // ask again
	ChooseReopen  PublishChoice = "reopen" // the same one goes on
	ChooseNew     PublishChoice = "new"    // a new one takes its place, on a new branch of the name if need be
)

// Publication is one attempt to publish, the row of a ledger: what was to be pushed is written
// before it is pushed.
type Publication struct {
	ID            PublicationID
	SessionID     SessionID
	MessageID     MessageID // the turn that asked, "" when a person pressed the button
	RequestedBy   UserID
	ClientKey     string
	Title         string
	Body          string
	Draft         bool          // a pull request that is opened now shall be a draft
	Base          string        // the branch to merge into, "" leaves it as it is
	Choice        PublishChoice // about the pull request that there was
	Step          PublishStep
	Outcome       PublishOutcome
	TreeSHA       string
	CommitSHA     string
	RemoteBefore  string // head of the session branch before the push, "" when absent
	Number        int
	FailureCode   string
	FailureText   string
	LeftOut       []string
	CreatedAt     time.Time // also the commit's date, so that a repeat makes the same commit
	FinishedAt    time.Time
	WaitingUntil  time.Time // zero: not waiting
	WaitingReason string
	Waits         int // how often it has waited
	// CancelRequestedAt is when somebody wanted it to end; it does so unless it is pushed already.
	CancelRequestedAt time.Time
	// WorkCommit holds the session's own tree and lies in CommitSHA: the next three-way merge with what
	// others pushed begins there. The two differ when there was something to merge.
	WorkCommit string
	// Conflicts are paths in which others pushed other changes than the session's, and ConflictPatch what
	// they changed there up to RemoteBefore: repository content, at most MaxConflictPatch bytes.
	Conflicts     []string
	ConflictPatch string
}

// Choices are the answers that an attempt which has ended leaves to a person, none for most.
func (p Publication) Choices() []PublishChoice {
	if p.Step != PublishFailed {
		return nil
	}
	switch p.FailureCode {
	case CodePullClosed:
		return []PublishChoice{ChooseReopen, ChooseNew}
	case CodeBranchDeleted, CodeReopenRefused:
		return []PublishChoice{ChooseNew}
	}
	return nil
}

// Codes of publishes that end with a question to the person.
const (
	CodePullClosed    = "pull_request_closed"
	CodePullMerged    = "pull_request_merged"
	CodeBranchDeleted = "branch_deleted"
	CodeReopenRefused = "reopen_refused"
	CodeBaseMissing   = "base_missing"
)

// CodeSyncConflict ends a publish whose work does not go together with what others pushed.
const CodeSyncConflict = "sync_conflict"

// ResolveKey and the publication's ID are the ClientKey of the message that asks the agent to resolve one.
const ResolveKey = "resolve "

// MaxConflictPatch bounds what is kept of the changes of others, in bytes.
const MaxConflictPatch = 16 << 10

// PathChoices are what people decided against the rules of the publish set: true takes a path in that
// stays out by itself, false leaves one out that goes in. They hold for every later publish of the session.
type PathChoices map[string]bool

// States of a pull request.
const (
	PullOpen   = "open"
	PullClosed = "closed"
	PullMerged = "merged"
)

// PullRequest is the session's one pull request.
type PullRequest struct {
	SessionID SessionID
	Number    int
	URL       string
	State     string // open, closed, merged
	Draft     bool
	HeadSHA   string
	Base      string // branch, "" when not known
	Behind    int    // commits of Base that the head had not when it was published
	Title     string // as we wrote it last; from GitHub's API: as it stands there
	Body      string // only from GitHub's API, never stored
	UpdatedAt time.Time
	StaleAt   time.Time // when GitHub said last that it changed; zero when it was read since
}
