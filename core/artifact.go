package core

import "time"

// ArtifactKind is what an artifact holds.
type ArtifactKind string

const (
	ArtifactDiff   ArtifactKind = "diff"
	ArtifactOutput ArtifactKind = "tool_output"
)

// Artifact is bounded, redacted bytes that belong to one session.
type Artifact struct {
	ID         ArtifactID
	SessionID  SessionID
	MessageID  MessageID // "" when of no turn
	Kind       ArtifactKind
	Name       string
	MediaType  string
	Size       int64 // bytes as kept
	SHA256     string
	Truncated  bool
	Redactions int
	Data       []byte // nil in lists
	CreatedAt  time.Time
}

// Diff is a captured difference between two trees; Patch is a git patch, cut at MaxPatch bytes.
type Diff struct {
	BaseSHA   string
	TreeSHA   string
	Files     []ChangedFile
	Patch     []byte
	Truncated bool
}

// Totals adds up the lines of a diff's files.
func Totals(files []ChangedFile) (additions, deletions int) {
	for _, f := range files {
		additions += f.Additions
		deletions += f.Deletions
	}
	return additions, deletions
}
