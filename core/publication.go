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
	// WorkCommit holds the session's own tree and lies in CommitSHA: the next three-way merge with what
	// others pushed begins there. The two differ when there was something to merge.
	WorkCommit string
	// Conflicts are paths in which others pushed other changes than the session's, and ConflictPatch what
	// they changed there: repository content, at most MaxConflictPatch bytes.
	Conflicts     []string
	ConflictPatch string
}

// CodeSyncConflict ends a publish whose work does not go together with what others pushed.
const CodeSyncConflict = "sync_conflict"

// MaxConflictPatch bounds what is kept of the changes of others, in bytes.
const MaxConflictPatch = 16 << 10

// PullRequest is the session's one pull request.
type PullRequest struct {
	SessionID SessionID
	Number    int
	URL       string
	State     string // open, closed, merged
	HeadSHA   string
	Title     string // as we wrote it last; from GitHub's API: as it stands there
	Body      string // only from GitHub's API, never stored
	UpdatedAt time.Time
}
