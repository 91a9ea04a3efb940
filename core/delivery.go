package core

import "time"

// Delivery is one message of GitHub's webhook. It is a hint: whatever it says is read anew.
type Delivery struct {
	GUID   string // the same when GitHub sends it again
	Event  string
	Action string // "" when the event has none

	Installation InstallationID // 0 when it is about none
	Repository   RepositoryID
	Person       GitHubUserID
	Session      SessionID // whose branch it is about

	Stale Stale
}

// Stale is what a delivery says to read anew.
type Stale string

const (
	StaleNothing      Stale = ""
	StaleInstallation Stale = "installation" // what it may do and whether it is there
	StaleAccount      Stale = "account"      // an installation and the names of its repositories
	StaleRepository   Stale = "repository"   // its name and state
	StalePerson       Stale = "person"       // whether the token still works
	StalePullRequest  Stale = "pull_request" // the session's branch and pull request
)

// StaleRows are what deliveries said to read anew and when the last one of each said so.
type StaleRows struct {
	Installations map[InstallationID]time.Time
	Repositories  map[RepositoryID]time.Time
	People        map[UserID]time.Time
}

// DeliveryAttempt is one try of GitHub's to deliver.
type DeliveryAttempt struct {
	ID   int64 // of the attempt; GUID is the delivery's
	GUID string
	OK   bool
	At   time.Time
}
