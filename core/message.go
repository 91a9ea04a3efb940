package core

import "time"

// MessageState is the life of a person's message. completed, failed and cancelled are terminal.
type MessageState string

const (
	Queued    MessageState = "queued"
	Working   MessageState = "working"
	Completed MessageState = "completed"
	Failed    MessageState = "failed"
	Cancelled MessageState = "cancelled"
)

// Terminal says that the state never changes again.
func (s MessageState) Terminal() bool {
	return s == Completed || s == Failed || s == Cancelled
}

// MaxMessageBytes bounds a message's text (413 above it).
const MaxMessageBytes = 48 << 10

// Message is a person's message with the turn that answers it, or (Role assistant) the final answer.
type Message struct {
	ID                MessageID
	SessionID         SessionID
	Role              Role
	ReplyTo           MessageID // of an answer: the person's message
	Text              string
	PartialText       string // the answer while it grows
	State             MessageState
	FailureCode       string
	FailureText       string
	CancelRequestedAt time.Time // zero: not asked
	Preparations      int       // leases lost while it was prepared; fails at the third
	Model             string
	PromptHash        string
	Steps             int
	Usage             Usage
	Limits            TurnLimits // that it ran under, or shall run under; zero: the agent's own
	CreatedAt         time.Time
	StartedAt         time.Time // zero: never started
	FinishedAt        time.Time
}

// Finish is the terminal state of a working message.
type Finish struct {
	MessageID   MessageID
	State       MessageState // completed, failed or cancelled
	Answer      string       // final text, or what had been written before the end
	FailureCode string
	FailureText string
	Result      TurnResult
	Changed     []ChangedFile
}

// ChangedFile is one path of a diff between two trees.
type ChangedFile struct {
	Path      string `json:"path"`
	OldPath   string `json:"old_path,omitempty"` // of a rename
	Status    string `json:"status"`             // added, modified, deleted, renamed, mode, type
	OldMode   string `json:"old_mode,omitempty"`
	NewMode   string `json:"new_mode,omitempty"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Binary    bool   `json:"binary,omitempty"`
	// Rule keeps the path out of a publish until a person takes it in; "" for none.
	Rule string `json:"rule,omitempty"`
}
