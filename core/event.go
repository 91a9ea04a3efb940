package core

import (
	"encoding/json"
	"time"
)

// Event is one line of a session's append-only log. Sequence counts 1..n without holes.
type Event struct {
	SessionID SessionID
	Sequence  int64
	Type      EventType
	Producer  Producer
	MessageID MessageID // "" when of no message
	Payload   json.RawMessage
	CreatedAt time.Time
}

// Producer is who an event comes from.
type Producer string

const (
	ByPerson   Producer = "person"
	ByPlatform Producer = "platform"
	ByAgent    Producer = "agent"
)

// EventType names an event; each has exactly one payload struct below.
type EventType string

// Payload is one event's content. Snippets in it are redacted and at most MaxSnippet bytes.
type Payload interface{ EventType() EventType }

// MaxSnippet bounds every snippet of an event, in bytes.
const MaxSnippet = 500

// SessionCreated opens the log.
type SessionCreated struct {
	Repository string `json:"repository"`
	BaseBranch string `json:"base_branch"`
	BaseSHA    string `json:"base_sha"`
	Branch     string `json:"branch"`
}

// SessionRenamed has the new title.
type SessionRenamed struct {
	Title string `json:"title"`
}

// SessionArchived and its reverse.
type SessionArchived struct {
	Archived bool `json:"archived"`
}

// MessageQueued: a person posted.
type MessageQueued struct {
	Snippet string `json:"snippet"`
}

// MessageEdited: a queued message got another text.
type MessageEdited struct {
	Snippet string `json:"snippet"`
}

// MessagePreparing: a worker has leased the session and prepares its sandbox; the message stays queued.
type MessagePreparing struct {
	Worker string `json:"worker"`
}

// MessageRequeued: the worker that prepared the message was lost; it is prepared again.
type MessageRequeued struct {
	Losses int `json:"losses"`
}

// MessageWorking: the turn has begun.
type MessageWorking struct {
	Model string `json:"model"`
}

// MessageCancelRequested: somebody pressed cancel.
type MessageCancelRequested struct {
	By string `json:"by"`
}

// MessageCompleted ends a turn well.
type MessageCompleted struct {
	AnswerID  MessageID `json:"answer_id"`
	Files     int       `json:"files"`
	Additions int       `json:"additions"`
	Deletions int       `json:"deletions"`
	Steps     int       `json:"steps"`
	Usage     Usage     `json:"usage"`
	// Context is how full the model's window was at the end.
	Context ContextUse `json:"context"`
}

// MessageFailed ends a turn, or a queued message, with a code.
type MessageFailed struct {
	Code     string    `json:"code"`
	Message  string    `json:"message"`
	AnswerID MessageID `json:"answer_id,omitempty"`
	// Context is that of the last request, of a turn that sent one.
	Context ContextUse `json:"context,omitzero"`
}

// MessageCancelled ends a turn, or a queued message, on request.
type MessageCancelled struct {
	AnswerID MessageID `json:"answer_id,omitempty"`
	Started  bool      `json:"started"`
	// Context is that of the last request, of a turn that sent one.
	Context ContextUse `json:"context,omitzero"`
}

// SandboxChanged has the new state of the session's sandbox (types sandbox_creating, sandbox_ready,
// sandbox_stopping, sandbox_stopped, sandbox_failed).
type SandboxChanged struct {
	State      SandboxState `json:"-"`
	SandboxID  SandboxID    `json:"sandbox_id"`
	Generation int          `json:"generation"`
	Image      string       `json:"image,omitempty"`
	Runtime    string       `json:"runtime,omitempty"`
	Code       string       `json:"code,omitempty"`
	Message    string       `json:"message,omitempty"`
	Ms         int64        `json:"ms,omitempty"`
}

// SandboxRestored: a lost work tree was rebuilt from a checkpoint. PassedOver counts newer ones that could
// not be applied; without a CheckpointID none could, and the tree is the base's.
type SandboxRestored struct {
	CheckpointID CheckpointID `json:"checkpoint_id,omitempty"`
	Files        int          `json:"files"`
	PassedOver   int          `json:"passed_over,omitempty"`
	Missing      []string     `json:"missing,omitempty"`
}

// CheckoutStarted: the platform fetches the base.
type CheckoutStarted struct {
	Branch string `json:"branch"`
	SHA    string `json:"sha"`
}

// CheckoutCompleted: the work tree stands on the session's branch.
type CheckoutCompleted struct {
	Branch string `json:"branch"`
	SHA    string `json:"sha"`
	Ms     int64  `json:"ms"`
}

// CommandStarted and CommandFinished frame a command that the platform itself ran.
type CommandStarted struct {
	Name string `json:"name"`
}

// CommandFinished has the exit status and duration of a platform command.
type CommandFinished struct {
	Name string `json:"name"`
	Exit int    `json:"exit"`
	Ms   int64  `json:"ms"`
}

// AgentToolCall: the agent called a tool. Object is the one thing that it acts on, for people.
type AgentToolCall struct {
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	Object  string `json:"object"`
	Snippet string `json:"snippet,omitempty"`
	Step    int    `json:"step"`
}

// AgentToolResult: the tool answered. Outcome is ok, error, refused, cancelled or interrupted.
type AgentToolResult struct {
	CallID     string     `json:"call_id"`
	Tool       string     `json:"tool"`
	Object     string     `json:"object"`
	Outcome    string     `json:"outcome"`
	Detail     string     `json:"detail,omitempty"` // "exit 1", "+8 −2", "14 matches"
	Code       string     `json:"code,omitempty"`   // of an error
	Exit       *int       `json:"exit,omitempty"`
	Snippet    string     `json:"snippet,omitempty"`
	Truncated  bool       `json:"truncated,omitempty"`
	ArtifactID ArtifactID `json:"artifact_id,omitempty"` // whole output when it was cut
	Ignored    []string   `json:"ignored,omitempty"`     // arguments that the tool does not know
	Ms         int64      `json:"ms"`
}

// PolicyRefused: the bash policy refused a command; nothing was started.
type PolicyRefused struct {
	CallID  string `json:"call_id"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Snippet string `json:"snippet"`
}

// EgressRefused: a program in the sandbox wanted a host that it may not reach. Once for each host and
// rule of a turn.
type EgressRefused struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	Rule string `json:"rule"`
}

// EgressHostAllowed: somebody put a host on the repository's list from this session's page.
type EgressHostAllowed struct {
	Host string `json:"host"`
	By   string `json:"by"`
}

// ModelRequestRetry: one model request is repeated, before its first data line.
type ModelRequestRetry struct {
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"`
	WaitMs  int64  `json:"wait_ms"`
}

// ArtifactCreated: bytes were kept.
type ArtifactCreated struct {
	ArtifactID ArtifactID   `json:"artifact_id"`
	Kind       ArtifactKind `json:"kind"`
	Name       string       `json:"name"`
	Size       int64        `json:"size"`
	Truncated  bool         `json:"truncated,omitempty"`
}

// DiffUpdated: the difference between base and the work tree was captured.
type DiffUpdated struct {
	ArtifactID ArtifactID `json:"artifact_id"`
	Files      int        `json:"files"`
	Additions  int        `json:"additions"`
	Deletions  int        `json:"deletions"`
}

// CheckpointSaved: the work tree can be rebuilt from here. Missing names what did not fit.
type CheckpointSaved struct {
	CheckpointID CheckpointID `json:"checkpoint_id"`
	Files        int          `json:"files"`
	Bytes        int64        `json:"bytes"`
	Missing      []string     `json:"missing,omitempty"`
}

// CaptureFailed: the diff or checkpoint of a turn could not be taken; the workspace is untouched.
type CaptureFailed struct {
	What    string `json:"what"` // diff or checkpoint
	Code    string `json:"code"`
	Message string `json:"message"`
}

// SummaryUpdated: the session's summary was rewritten, by the model, or by the platform alone. Code
// says why the model's text was not taken.
type SummaryUpdated struct {
	Bytes   int    `json:"bytes"`
	ByModel bool   `json:"by_model"`
	Code    string `json:"code,omitempty"`
	Usage   Usage  `json:"usage"`
}

// PublicationChanged has the new step of a publish (types publication_requested,
// publication_committed, publication_pushed, publication_unchanged, publication_waiting,
// publication_cancel_requested, publication_failed). Until is when one that waits goes on.
type PublicationChanged struct {
	Type          EventType     `json:"-"`
	PublicationID PublicationID `json:"publication_id"`
	CommitSHA     string        `json:"commit_sha,omitempty"`
	Code          string        `json:"code,omitempty"`
	Message       string        `json:"message,omitempty"`
	Until         *time.Time    `json:"until,omitempty"`
}

// PublicationMerged: others had pushed to the session's branch and their commits were merged with its
// work. InWorkspace says that the workspace has their changes now, too.
type PublicationMerged struct {
	PublicationID PublicationID `json:"publication_id"`
	Commits       int           `json:"commits"`
	Files         []string      `json:"files"` // at most 20 that they changed
	InWorkspace   bool          `json:"in_workspace"`
}

// PullRequestChanged: the pull request was opened or updated (types pull_request_opened,
// pull_request_updated).
type PullRequestChanged struct {
	Opened        bool          `json:"-"`
	PublicationID PublicationID `json:"publication_id"`
	Number        int           `json:"number"`
	URL           string        `json:"url"`
	HeadSHA       string        `json:"head_sha"`
	Files         int           `json:"files"`
	Draft         bool          `json:"draft,omitempty"`
	Behind        int           `json:"behind,omitempty"` // commits of the base that it has not
	LeftOut       []string      `json:"left_out,omitempty"`
}

// PullRequestMoved: people had closed or merged the pull request on GitHub, or opened it again (types
// pull_request_closed, pull_request_merged, pull_request_reopened).
type PullRequestMoved struct {
	State  string `json:"-"` // open, closed, merged
	Number int    `json:"number"`
	URL    string `json:"url"`
}

func (SessionCreated) EventType() EventType         { return "session_created" }
func (SessionRenamed) EventType() EventType         { return "session_renamed" }
func (MessageQueued) EventType() EventType          { return "message_queued" }
func (MessageEdited) EventType() EventType          { return "message_edited" }
func (MessagePreparing) EventType() EventType       { return "message_preparing" }
func (MessageRequeued) EventType() EventType        { return "message_requeued" }
func (MessageWorking) EventType() EventType         { return "message_working" }
func (MessageCancelRequested) EventType() EventType { return "message_cancel_requested" }
func (MessageCompleted) EventType() EventType       { return "message_completed" }
func (MessageFailed) EventType() EventType          { return "message_failed" }
func (MessageCancelled) EventType() EventType       { return "message_cancelled" }
func (e SandboxChanged) EventType() EventType       { return EventType("sandbox_" + e.State) }
func (SandboxRestored) EventType() EventType        { return "sandbox_restored" }
func (CheckoutStarted) EventType() EventType        { return "repo_checkout_started" }
func (CheckoutCompleted) EventType() EventType      { return "repo_checkout_completed" }
func (CommandStarted) EventType() EventType         { return "command_started" }
func (CommandFinished) EventType() EventType        { return "command_finished" }
func (AgentToolCall) EventType() EventType          { return "agent_tool_call" }
func (AgentToolResult) EventType() EventType        { return "agent_tool_result" }
func (PolicyRefused) EventType() EventType          { return "policy_refused" }
func (EgressRefused) EventType() EventType          { return "egress_refused" }
func (EgressHostAllowed) EventType() EventType      { return "egress_host_allowed" }
func (ModelRequestRetry) EventType() EventType      { return "model_request_retry" }
func (ArtifactCreated) EventType() EventType        { return "artifact_created" }
func (DiffUpdated) EventType() EventType            { return "diff_updated" }
func (CheckpointSaved) EventType() EventType        { return "checkpoint_saved" }
func (CaptureFailed) EventType() EventType          { return "capture_failed" }
func (SummaryUpdated) EventType() EventType         { return "summary_updated" }
func (e PublicationChanged) EventType() EventType   { return e.Type }
func (PublicationMerged) EventType() EventType      { return "publication_merged" }

func (e SessionArchived) EventType() EventType {
	if e.Archived {
		return "session_archived"
	}
	return "session_unarchived"
}

func (e PullRequestChanged) EventType() EventType {
	if e.Opened {
		return "pull_request_opened"
	}
	return "pull_request_updated"
}

func (e PullRequestMoved) EventType() EventType {
	switch e.State {
	case PullMerged:
		return "pull_request_merged"
	case PullClosed:
		return "pull_request_closed"
	}
	return "pull_request_reopened"
}

// Types of PublicationChanged.
const (
	EventPublicationRequested EventType = "publication_requested"
	EventPublicationCommitted EventType = "publication_committed"
	EventPublicationPushed    EventType = "publication_pushed"
	EventPublicationUnchanged EventType = "publication_unchanged"
	EventPublicationWaiting   EventType = "publication_waiting"
	EventPublicationCancel    EventType = "publication_cancel_requested"
	EventPublicationFailed    EventType = "publication_failed"
)
