package core

import "github.com/google/uuid"

// Ids of our own records are UUID version 7, 36 lower-case characters, made in Go.
// The type keeps one kind of id from being passed for another.
type (
	UserID        string
	LoginID       string
	SessionID     string
	MessageID     string
	SandboxID     string
	ArtifactID    string
	CheckpointID  string
	PublicationID string
	WorkerID      string
)

// Ids that GitHub gave out. They survive renames, so they are the keys, never names.
type (
	GitHubUserID   int64
	InstallationID int64
	RepositoryID   int64
)

// NewID returns a fresh UUID v7 as the wanted id type.
func NewID[T ~string]() T {
	return T(uuid.Must(uuid.NewV7()).String())
}

// ParseID accepts exactly the canonical 36-character lower-case form. Anything else is
// not_found: an id that cannot exist and one that does not exist are the same answer.
func ParseID[T ~string](s string) (T, error) {
	u, err := uuid.Parse(s)
	if err != nil || u.String() != s {
		return "", NotFoundError()
	}
	return T(s), nil
}

// Short is the form shown to people: the last 8 characters (the first are the clock).
func Short[T ~string](id T) string {
	return string(id[max(0, len(id)-8):])
}
