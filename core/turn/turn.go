// Package turn takes messages from the queue to their terminal state: claim the session, prepare
// its sandbox, run the agent, capture what changed, finish, summarise, release.
package turn

import (
	"context"
	"time"

	"agent-sandboxing/core"
)

// Store is the queue and the record. Every write that takes a lease fails with core.ErrLeaseLost
// when the session has another owner or none; state and event commit together.
type Store interface {
	// Claim leases one free session that has a queued message or a requested publication, oldest
	// first, preferring none; a session whose live sandbox is on another host that was seen in the
	// last 30 s is left to it. core.ErrNoWork when there is none. It appends message_preparing when
	// a message waits and no publication. A message for which budgets leave no money fails instead.
	Claim(ctx context.Context, worker core.Worker, lease time.Duration, budgets core.Budgets) (core.Claim, error)
	// Heartbeat extends the lease and says whether a cancel of the session's message was requested.
	Heartbeat(ctx context.Context, lease core.Lease, extend time.Duration) (cancel bool, err error)
	// CancelRequested reads whether a cancel was requested of the session's message.
	CancelRequested(ctx context.Context, lease core.Lease) (bool, error)
	// Release gives the session back. While its message still works, because its end could not be
	// written, the lease stays and runs out, so that Reap ends the message.
	Release(ctx context.Context, lease core.Lease) error
	// Reap ends expired leases: a working message fails with worker_lost, a queued one counts a lost
	// preparation (the third fails it), a sandbox that was creating or ready becomes failed
	// (worker_lost), so that the next claim makes a new container on the same volume. Publications
	// stay as they are: each step can be repeated.
	Reap(ctx context.Context) (int, error)

	// StartMessage moves queued to working; core.ErrLeaseLost, or Conflict session_busy.
	StartMessage(ctx context.Context, lease core.Lease, id core.MessageID, model string) (core.Message, error)
	// FailQueued moves queued to failed; Conflict not_queued when it has ended already.
	FailQueued(ctx context.Context, lease core.Lease, id core.MessageID, code, text string) error
	// SetPartial stores the growing answer and notifies, without an event.
	SetPartial(ctx context.Context, lease core.Lease, id core.MessageID, text string) error
	// AddUsage adds what one model request used to its message, and sums what was spent with it.
	AddUsage(ctx context.Context, lease core.Lease, id core.MessageID, u core.Usage) (core.Spending, error)
	// FinishMessage moves working to a terminal state, inserts the assistant's message, appends the
	// terminal event, in one transaction. Finishing a finished message is core.ErrLeaseLost.
	FinishMessage(ctx context.Context, lease core.Lease, f core.Finish) error

	Append(ctx context.Context, lease core.Lease, by core.Producer, id core.MessageID, events ...core.Payload) error
	// SaveArtifact inserts the bytes, appends artifact_created and then events.
	SaveArtifact(ctx context.Context, lease core.Lease, a core.Artifact, events ...core.Payload) error
	// SaveDiff inserts a diff artifact and its file index, appends artifact_created and diff_updated.
	SaveDiff(ctx context.Context, lease core.Lease, a core.Artifact, files []core.ChangedFile) error
	// SaveCheckpoint inserts it, appends checkpoint_saved, keeps the 20 newest of the session.
	SaveCheckpoint(ctx context.Context, lease core.Lease, c core.Checkpoint) error
	// SaveSummary replaces the session's summary and appends summary_updated of message id.
	SaveSummary(ctx context.Context, lease core.Lease, id core.MessageID, c core.Compaction) error
	// Unsummarised returns the turns of the session that have ended without SaveSummary, oldest first
	// and only the newest of many.
	Unsummarised(ctx context.Context, id core.SessionID) ([]core.EndedTurn, error)

	// Conversation returns the last texts before message id, oldest first.
	Conversation(ctx context.Context, id core.SessionID, before core.MessageID, limit int) ([]core.TurnText, error)
	// Activity returns the last tool calls of the session, oldest first.
	Activity(ctx context.Context, id core.SessionID, limit int) ([]core.ToolActivity, error)
	// LatestDiff is the file index of the newest diff, nil when there is none.
	LatestDiff(ctx context.Context, id core.SessionID) ([]core.ChangedFile, error)
	// PullRequest is the session's pull request, nil when there is none.
	PullRequest(ctx context.Context, id core.SessionID) (*core.PullRequest, error)
	// SaveWorker upserts the worker's row and heartbeat.
	SaveWorker(ctx context.Context, w core.Worker) error
}

// Sandboxes gives and takes back a session's workspace.
type Sandboxes interface {
	// Acquire makes the session's sandbox ready: created, started, checked out, restored. The error
	// is a core.Error whose code ends the message.
	Acquire(ctx context.Context, claim core.Claim) (core.PlatformWorkspace, error)
	// Release ends every process in it and detaches. It is safe after a failure.
	Release(ctx context.Context, claim core.Claim, ws core.PlatformWorkspace)
}

// Agent runs one invocation. A failure is a core.Error with a code of core/agent.go.
type Agent interface {
	Model() string
	Run(ctx context.Context, req core.TurnRequest, ws core.Workspace, pub core.Publisher, rec core.TurnRecorder) (core.TurnResult, error)
	// Compact makes the session's next summary of an ended turn. It never fails, and ends with ctx.
	Compact(ctx context.Context, req core.CompactionRequest, ws core.Workspace, rec core.TurnRecorder) core.Compaction
}

// Mirror turns a workspace's state into a diff that the control plane made itself.
type Mirror interface {
	Capture(ctx context.Context, session core.ChatSession, ws core.PlatformWorkspace) (core.Diff, error)
	// ReadBase reads a file at the base commit; nil when it is not there.
	ReadBase(ctx context.Context, session core.ChatSession, path string, limit int64) ([]byte, error)
}

// Publisher performs one publish attempt under the claim's lease, from the step its row says.
type Publisher interface {
	Publish(ctx context.Context, claim core.Claim, p core.Publication, ws core.PlatformWorkspace) (core.PublishResult, error)
	// Fail records the end of an attempt that could not begin, because there was no workspace.
	Fail(ctx context.Context, claim core.Claim, p core.Publication, cause error) error
}

// Signals wakes the processor early; everything is also polled, because a signal can be lost.
type Signals interface {
	// Work fires when a session may have become claimable.
	Work() <-chan struct{}
	// Changed fires when the session's rows changed, until stop is called.
	Changed(id core.SessionID) (wake <-chan struct{}, stop func())
}

// Redactor takes secrets out of text before it is stored.
type Redactor interface {
	Text(s string) (clean string, redactions int)
	Bytes(b []byte) (clean []byte, redactions int)
}
