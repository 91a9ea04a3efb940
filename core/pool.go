package core

import "time"

// PoolState is the life of a sandbox that no session has yet. One that a session takes is no member
// any more.
type PoolState string

const (
	PoolFilling   PoolState = "filling"   // being made
	PoolReady     PoolState = "ready"     // runs and can be claimed
	PoolDiscarded PoolState = "discarded" // will be removed; nobody can claim it
)

// PoolMember is the record of a sandbox that was started ahead.
type PoolMember struct {
	ID         SandboxID // becomes the sandbox's, so that its container's labels stay true
	Host       string
	State      PoolState
	Spec       string // what it was made with, as the runtime tells specs apart
	RuntimeRef string
	Volume     string
	Image      string // image id
	Overdue    bool   // filling for longer than a living worker takes
	Age        time.Duration
}
