package core

import "time"

// ChatSession is the unit of work: one sandbox, one branch agent/<id>, one message at a time.
type ChatSession struct {
	ID               SessionID
	OwnerID          UserID
	Repository       Repository
	BaseBranch       string
	BaseSHA          string
	DefaultBranchSHA string // pinned at creation, "" when unknown
	Branch           string
	Title            string
	Summary          string
	BashPolicy       BashPolicy
	EgressMode       EgressMode // "" in a new session is EgressNone
	LastSequence     int64
	Archived         bool
	LeaseOwner       string // "" when free
	LeaseUntil       time.Time
	CreatedAt        time.Time
	UpdatedAt        time.Time
}

// BranchFor is the one branch that a session may push.
func BranchFor(id SessionID) string { return "agent/" + string(id) }

// Lease proves that a worker still owns a session. Owner is fresh for each claim; every write of a
// turn carries it and fails with ErrLeaseLost once the session has another owner or none.
type Lease struct {
	SessionID SessionID
	Owner     string
}

// Claim is one session that a worker has leased, with what waits in it.
type Claim struct {
	Lease       Lease
	Worker      WorkerID
	Session     ChatSession
	Owner       User
	Message     *Message     // the oldest queued message, still queued
	Publication *Publication // or a publish that a person asked for; served first
}
