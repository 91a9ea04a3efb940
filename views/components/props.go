// Package components holds the parts that pages, partial answers and stream fragments share. One
// component serves all three, so that a reload shows exactly what the stream had built.
//
// Ids are stable: msg-<message id>, answer-<message id>, tool-<end of message id>-<call id>, ev-<sequence>, head,
// status, mark, provision, queue, composer, composer-state, changes, pr, artifacts, network, details.
package components

import "time"

// TurnProps is a person's message with the turn that answers it: #msg-<MessageID>.
type TurnProps struct {
	SessionID string
	MessageID string
	Sequence  int64 // of the event that queued it, 0 when unknown

	Author    string // login
	AvatarURL string
	Text      string // as typed
	CreatedAt time.Time

	// State is queued, preparing (a worker makes the sandbox ready), working, cancelling,
	// completed, failed or cancelled.
	State      string
	QueueNote  string    // while queued: "runs next", "2 ahead in this session", "waits for a free worker"
	StartedAt  time.Time // zero: never started
	FinishedAt time.Time
	Now        time.Time

	Items   []Item // what happened, oldest first
	Answer  AnswerProps
	Records *RecordsProps // after the end of a turn that started
	Failure *FailureProps
	CanEdit bool // the viewer may edit and remove it while queued
}

// Item is one line of a turn: exactly one field is set.
type Item struct {
	Tool *ToolProps
	Note *NoteProps
}

// ToolProps is one tool call: #tool-<end of MessageID>-<CallID>.
type ToolProps struct {
	MessageID string // TurnBlock fills it in; call ids come from the model and may repeat in a session
	CallID    string
	Tool      string // read, write, edit, bash, grep, find, ls, subagent, publish_pull_request, …
	Object    string // the one thing that it acts on: a path, a pattern, a command
	// State is running, ok, error, refused, cancelled or interrupted.
	State       string
	Detail      string // "exit 1", "+8 −2", "14 matches"
	Exit        int    // exit status of a command, 0 otherwise
	Code        string // of an error
	Message     string // of a refusal or error: what is not allowed and what to do
	Input       string // snippet, untrusted
	Output      string // snippet, untrusted
	Truncated   bool   // Output was cut
	ArtifactURL string // the whole output when it was kept
	StartedAt   time.Time
	Duration    time.Duration // 0 while running
}

// NoteProps is a line that the platform writes into a turn: #ev-<Sequence>.
type NoteProps struct {
	Sequence int64
	Tone     string // info, success, warning, danger
	Text     string
	Detail   string // "2.1 s", "exit 0", a code
}

// AnswerProps is the agent's prose: #answer-<MessageID>.
type AnswerProps struct {
	MessageID string // of the person's message
	HTML      string // from markdown.Render and nothing else
	Growing   bool
}

// RecordsProps is what the records say about a finished turn.
type RecordsProps struct {
	DiffURL   string // "" when no diff was captured
	Files     []FileProps
	MoreFiles int // files beyond Files
	Additions int
	Deletions int
	// NoChange says so in words; the diff above it may still list files of earlier turns.
	NoChange    bool
	Artifacts   []ArtifactProps
	PullRequest *PullRequestProps // when this turn opened or updated it
	Usage       string            // "41.2k in · 3.1k out · gpt-5", "" when unknown
	Warning     string            // capture failed, checkpoint is partial
}

// FileProps is one changed path.
type FileProps struct {
	Path      string
	OldPath   string // of a rename
	Status    string // added, modified, deleted, renamed, mode, type
	Additions int
	Deletions int
	Binary    bool
	URL       string // its place in the diff, "" for none
}

// ArtifactProps is one kept output.
type ArtifactProps struct {
	ID        string
	URL       string
	Name      string
	Kind      string // "diff", "tool output"
	Size      int64
	CreatedAt time.Time
}

// FailureProps is why a turn, a preparation or a publish ended badly.
type FailureProps struct {
	Title     string // "The turn failed", "" for that
	Message   string // public, says what to do next
	Code      string
	RequestID string
	Safe      string // what is unharmed: "The sandbox and your changes are still there."
	ActionURL string // a way out, "" for none
	Action    string // its label
	Resends   string // id of the message whose text ActionURL fills into the composer, "" for none

	Choices []ChoiceProps // ways on of which one is to be chosen

	ContinueURL string // POST goes on from here, "" when that cannot be
	Continue    string // the button of it: "Continue with a higher limit"
	ContinueFor string // what it will do: "Up to 120 steps and 60 minutes."
}

// ChoiceProps is one way on: a button whose POST sends choice=Value.
type ChoiceProps struct {
	URL   string
	Value string
	Label string
}

// ProvisionProps is the strip of steps until the sandbox is ready: #provision.
type ProvisionProps struct {
	Shown   bool   // false keeps the place without content
	Done    bool   // folded to one line
	Summary string // takes the place of "Sandbox ready": "Sandbox ready in 2.1 s"
	Steps   []StepProps
	Failure *FailureProps
}

// StepProps is one step of a strip.
type StepProps struct {
	Name      string
	Detail    string // "main @ 3f2c1ab"
	State     string // waiting, running, done, failed
	StartedAt time.Time
	Duration  time.Duration
}

// HeadProps is the session's header: #head.
type HeadProps struct {
	SessionID     string
	Title         string
	Repository    string // owner/name
	RepositoryURL string // on GitHub, "" for a fixture
	BaseBranch    string
	BaseSHA       string
	Branch        string
	Sandbox       string // "", creating, ready, stopping, stopped, failed
	Archived      bool
	Owner         string // login, shown to others than the owner
	CanRename     bool
	NewTitle      string // as typed, when it was not taken
	TitleError    string // why not
	CanPublish    bool   // there is something unpublished and the viewer may publish it
	PullRequest   *PullRequestProps
	Files         int
	Additions     int
	Deletions     int
}

// StatusProps is the line above the composer: #status. It names the state in words.
type StatusProps struct {
	SessionID string
	// State is idle, queued, preparing, working, cancelling, publishing, completed, failed or cancelled.
	State     string
	Label     string    // "Working", "Done in 3m 12s", "Preparing the sandbox"
	Detail    string    // "9 actions · running go build ./…"
	StartedAt time.Time // of the timer, zero for none
	Now       time.Time
	CanCancel bool
}

// QueueProps is the strip of messages that wait: #queue.
type QueueProps struct {
	SessionID string
	Messages  []QueuedProps
	Ahead     int // messages of other sessions before ours when no worker is free
}

// QueuedProps is one waiting message.
type QueuedProps struct {
	MessageID string
	Text      string
}

// ComposerProps is the form for the next message: #composer with #composer-state inside. A request
// of htmx is answered with the component itself, 200 with a fresh key or 422 with Error and Text;
// every other failure becomes a toast and leaves the text where it is.
type ComposerProps struct {
	SessionID string
	ClientKey string // fresh for each rendered form: a double submit is one message
	Text      string // what was typed, after an error
	Error     string // one sentence, "" for none
	Active    bool   // a message is active: the next one queues
	Disabled  string // why nobody may post, "" when one may
	MaxBytes  int
	Model     string // "" when unknown
}

// ChangesProps is the panel of changed files: #changes.
type ChangesProps struct {
	SessionID  string
	DiffURL    string
	Files      []FileProps
	MoreFiles  int
	Total      int
	Additions  int
	Deletions  int
	CapturedAt time.Time
	Truncated  bool
	Now        time.Time
}

// PullRequestProps is the session's pull request, or the way to it: #pr.
type PullRequestProps struct {
	SessionID string
	Number    int // 0: none yet
	URL       string
	State     string // open, closed, merged
	Draft     bool
	Base      string // branch that it goes into, "" when not known
	Behind    int    // commits of Base that it had not when it was published
	Title     string
	HeadSHA   string
	UpdatedAt time.Time
	Now       time.Time
	// Publishing holds the steps of an unfinished publish.
	Publishing []StepProps
	CancelURL  string // POST ends the publish, "" when that cannot be (any more)
	Outcome    string // "Pull request #41 is open.", "Already published, nothing new."
	Failure    *FailureProps
	LeftOut    []string // paths that were not published
	CanPublish bool     // the viewer may, now
	Update     bool     // there are changes that the pull request has not
	Blocked    string   // why it cannot be published now, "" for none
	// FollowUpURL is the form of a session that goes on after the merge, "" before it.
	FollowUpURL string
}

// NetworkProps is what the session's sandbox has reached: #network.
type NetworkProps struct {
	SessionID string
	Mode      string // open, allowlist or none
	Rows      []ConnectionProps
	Total     int // rows, also of those that are not shown
	Contacted int
	Refused   int
	Sent      int64  // bytes
	Received  int64  // bytes
	AllURL    string // the page of every row, "" on that page
	ListURL   string // the repository's list of hosts
	Live      bool   // a stream redraws the panel when a host has been allowed
	Now       time.Time
}

// ConnectionProps sums the connections to one host that one rule decided.
type ConnectionProps struct {
	Host        string // untrusted; "" stands for hosts without names of their own
	Port        int
	Outcome     string // allowed, refused, failed, or allowed_now: refused, and on the list since
	Rule        string // id
	Reason      string // the rule in words, in one sentence
	Connections int64
	Sent        int64
	Received    int64
	FirstAt     time.Time
	LastAt      time.Time
	CanAllow    bool // the viewer may put it on the repository's list
}

// DetailsProps is what one looks up: #details.
type DetailsProps struct {
	SessionID   string
	Branch      string
	BaseBranch  string
	BaseSHA     string
	Policy      string
	Model       string
	Sandbox     string
	SandboxInfo string // "runc · image 3f2c1ab · generation 2"
	Usage       string
	Messages    int
	CreatedAt   time.Time
	Now         time.Time
	EventsURL   string
	CanStop     bool
	CanArchive  bool
	Archived    bool
}

// StreamProps says where live fragments come from and which sequence the page already shows.
type StreamProps struct {
	URL      string
	Sequence int64
	LoginURL string // where a signed-out stream goes
}
