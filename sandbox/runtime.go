// Package sandbox owns the execution plane: the life of each session's sandbox and the seam to the
// runtimes that can hold one. It speaks to a sandbox only through the toolbox's stream.
package sandbox

import (
	"context"
	"io"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// Runtime is a place where sandboxes can be made. One conformance suite (sandboxtest) is its
// contract. Every method returns core.Errors: runtime_unavailable when the runtime does not answer
// within 5 s, image_missing, image_unsupported, toolbox_missing, capacity, sandbox_lost (what ref
// names is gone), volume_lost.
type Runtime interface {
	// Host identifies the daemon, so that two workers on one daemon know it.
	Host(ctx context.Context) (string, error)
	// Create makes container and volume, not started. Calling it again with the same spec adopts
	// what is there when labels agree, and fails with spec_changed when they do not. Inspect names
	// the volume that was made.
	Create(ctx context.Context, spec Spec) (ref string, err error)
	// Attach opens the one byte stream to the toolbox; best called before Start.
	Attach(ctx context.Context, ref string) (Stream, error)
	Start(ctx context.Context, ref string) error
	// Stop kills the container and keeps it and its volume. Stopping a stopped one is fine.
	Stop(ctx context.Context, ref string) error
	// Remove deletes the container, and the volume when volume is true. Absent is fine.
	Remove(ctx context.Context, ref string, volume bool) error
	Inspect(ctx context.Context, ref string) (Status, error)
	// OutOfMemory says whether a process of ref was killed for want of memory within the last so long,
	// where the toolbox inside cannot know; false where it does.
	OutOfMemory(ctx context.Context, ref string, within time.Duration) (bool, error)
	// Fingerprint tells specs apart, whoever they are for: two containers with the same one differ
	// only in their ids and volumes. It changes with image, limits, runtime, toolbox and hardening.
	Fingerprint(ctx context.Context, spec Spec) (string, error)
	// List returns this installation's containers by label, of every purpose and state.
	List(ctx context.Context) ([]Status, error)
	// Volumes returns this installation's workspace volumes by label, used or not.
	Volumes(ctx context.Context) ([]Volume, error)
	// RemoveVolume deletes a workspace volume of this installation. Absent is fine; one that a
	// container has, running or not, is refused.
	RemoveVolume(ctx context.Context, name string) error
	// Space says what the host has left, as far as it can be seen from here.
	Space(ctx context.Context) (Space, error)
	// Capabilities says what this host offers.
	Capabilities(ctx context.Context) (Capabilities, error)
}

// Spec is everything that a runtime needs to make one sandbox. Nothing in it is secret.
type Spec struct {
	Session    core.SessionID
	Sandbox    core.SandboxID
	Generation int
	// Volume is the session's volume of an earlier generation, which then must exist (volume_lost);
	// "" makes an empty one.
	Volume string
	Image  string // "" means the default image
	Limits Limits
	// Purpose is what the container is for; "" means PurposeSession.
	Purpose Purpose
}

// Purpose tells the containers of an installation apart.
type Purpose string

const (
	PurposeSession Purpose = "session" // one session's sandbox
	PurposePool    Purpose = "pool"    // started ahead for a session that is not known yet: Session is ""
	PurposeHelper  Purpose = "helper"  // a runtime's own, for seconds: it looks into an image or fills a volume
)

// Stream is one attach to a sandbox's toolbox.
type Stream interface {
	io.ReadWriteCloser
	// Stderr is the first 2 KiB of what the container's first process wrote to its standard error
	// since the attach: why it did not start. It is untrusted.
	Stderr() []byte
}

// Volume is a workspace volume by its labels.
type Volume struct {
	Name    string
	Session core.SessionID
	Sandbox core.SandboxID
}

// Space is what a host has left, in bytes.
type Space struct {
	Known  bool  // the host is this one, or it said so itself
	Disk   int64 // for containers and volumes
	Memory int64 // that can be had without swapping
}

// Limits bound one sandbox.
type Limits struct {
	MemoryBytes int64
	CPUs        float64
	PIDs        int64
	DiskBytes   int64 // of the workspace volume; 0 means no bound
	Inodes      int64 // of the workspace volume; 0 means no bound
}

// Status is what a runtime knows of one sandbox.
type Status struct {
	Ref        string
	Session    core.SessionID
	Sandbox    core.SandboxID
	Generation int
	Purpose    Purpose
	Running    bool // paused counts
	Paused     bool // somebody froze it; nothing in it answers
	OOMKilled  bool
	ExitCode   int
	ImageID    string
	Volume     string
	CreatedAt  time.Time
}

// Capabilities of a host, for doctor and for the conformance suite's "needs".
type Capabilities struct {
	Runtime       string // runc or runsc
	RuntimeKnown  bool   // to the host; else nothing starts
	ServerVersion string
	Seccomp       bool
	CgroupVersion string
	ImageReady    bool
	ImageRef      string
	// MemoryBytes and Processors are the host's.
	MemoryBytes int64
	Processors  int
	// DiskBudget is what holds a workspace to Limits.DiskBytes.
	DiskBudget DiskBudget
}

// DiskBudget is a way to bound a workspace volume.
type DiskBudget string

const (
	// BudgetQuota: the kernel refuses writes above the bound (a project quota of the daemon's xfs).
	BudgetQuota DiskBudget = "quota"
	// BudgetSampled: the toolbox looks while a command runs and ends it above the bound.
	BudgetSampled DiskBudget = "sampled"
)

// Network is the way out of sandboxes, which have no network interface.
type Network interface {
	// Session is the way out of one session's sandbox, under that session's policy of each moment.
	Session(id core.SessionID) toolbox.Egress
}

// Store is what the service writes. State and event commit together; each call that takes a lease
// fails with core.ErrLeaseLost when the session has another owner. All times are the database's.
type Store interface {
	// LiveSandbox returns the session's newest sandbox row of any state, or nil.
	LiveSandbox(ctx context.Context, id core.SessionID) (*core.Sandbox, error)
	// SaveSandbox inserts or updates the row and appends the events in one transaction. While the row
	// is creating or ready that counts as use. A copy of an older generation changes nothing (Conflict
	// sandbox_superseded). A stop request is kept until the row is neither creating nor ready.
	SaveSandbox(ctx context.Context, lease core.Lease, box core.Sandbox, events ...core.Payload) error
	// CheckedOut says whether a checkout of the session was ever completed, on any host.
	CheckedOut(ctx context.Context, id core.SessionID) (bool, error)
	// Checkpoint returns a checkpoint with its archive, back being how many newer ones are passed over;
	// nil when there are not so many.
	Checkpoint(ctx context.Context, id core.SessionID, back int) (*core.Checkpoint, error)
	// SaveCheckpoint inserts it and says of the row that its work is saved. One of another base than the
	// session's is refused.
	SaveCheckpoint(ctx context.Context, lease core.Lease, c core.Checkpoint) error
	// SandboxesOn lists the rows in states creating, ready and stopping of one host, the longest
	// unused first.
	SandboxesOn(ctx context.Context, host string) ([]core.Sandbox, error)
	// SandboxesByID returns the rows, of any state and host, that have one of the ids.
	SandboxesByID(ctx context.Context, ids []core.SandboxID) ([]core.Sandbox, error)
	// DispensableVolumes lists rows of one host whose volume may go: of archived sessions, long unused,
	// with all of their work in the last checkpoint.
	DispensableVolumes(ctx context.Context, host string) ([]core.Sandbox, error)
	// MarkSandbox changes a row without a lease, only while the session has no owner; false says
	// that it had one. For what the janitor finds.
	MarkSandbox(ctx context.Context, box core.Sandbox, events ...core.Payload) (bool, error)
	// HoldSession leases a session that has no owner, for what the platform does between turns;
	// core.ErrNoWork when it has one. Release gives it back.
	HoldSession(ctx context.Context, id core.SessionID, time time.Duration) (core.Lease, error)
	Release(ctx context.Context, lease core.Lease) error
	PoolStore
}

// Source gives a session's base as one pack behind its index. The reader ends with the pack; closing it
// early stops the producer. again says that the session was checked out before, here or on another host: its base
// is then the same commit wherever the branch points now. The first time a moved branch is refused.
type Source interface {
	Checkout(ctx context.Context, session core.ChatSession, again bool) (core.Checkout, io.ReadCloser, error)
}
