package core

import "time"

// SandboxState is the life of a session's container.
type SandboxState string

const (
	SandboxCreating SandboxState = "creating"
	SandboxReady    SandboxState = "ready"
	SandboxStopping SandboxState = "stopping"
	SandboxStopped  SandboxState = "stopped"
	SandboxFailed   SandboxState = "failed"
)

// Sandbox is the record of a session's execution plane. One row lives per session; Generation rises
// with each container, so that an old one can never be mistaken for the live one.
type Sandbox struct {
	ID              SandboxID
	SessionID       SessionID
	State           SandboxState
	Host            string // id of the Docker host that holds the container and volume
	Generation      int
	RuntimeRef      string // container id
	Volume          string
	Image           string // image id
	Runtime         string // runc or runsc
	CheckedOut      bool   // the volume holds the session's checkout
	Unsaved         bool   // the volume may hold what no checkpoint has
	FailureCode     string
	FailureText     string
	StopRequestedAt time.Time
	LastUsedAt      time.Time
	CreatedAt       time.Time
	// How long ago the row was last used and its container was begun, when it was read, by the
	// database's clock: no other is compared with it.
	Unused, Age time.Duration
}

// MaxCheckpoint bounds a checkpoint's archive, in bytes.
const MaxCheckpoint = 64 << 20

// Checkpoint is a stored copy of a work tree's difference from base.
type Checkpoint struct {
	ID        CheckpointID
	SessionID SessionID
	MessageID MessageID
	Info      CheckpointInfo
	Archive   []byte // zstd tar
	CreatedAt time.Time
}

// Worker is a process that claims sessions.
type Worker struct {
	ID        WorkerID
	Host      string
	Version   string
	Capacity  int
	Status    WorkerStatus
	SilentFor time.Duration // since its last heartbeat, by the database's clock
}

// WorkerStatus is what web shows of a worker, written by the worker itself.
type WorkerStatus struct {
	Docker       string `json:"docker"` // "ok", or why no sandbox can be made, in words for people
	Runtime      string `json:"runtime"`
	Image        string `json:"image"`
	Model        string `json:"model"`
	ModelLabel   string `json:"model_label,omitempty"` // "scripted demo model" when it is one
	AppSlug      string `json:"app_slug,omitempty"`
	AppProblem   string `json:"app_problem,omitempty"` // what keeps the GitHub App from working, in words for people
	RunningBoxes int    `json:"running_sandboxes"`
	DiskFreeMiB  int64  `json:"disk_free_mib"`
}
