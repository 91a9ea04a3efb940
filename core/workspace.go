package core

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// Where the workspace lies inside every sandbox.
const (
	RepoDir = "/workspace/repo"
	// OutputDir is where the full output of a cut command is kept for the rest of the turn.
	OutputDir = "/tmp/agent-out"
)

// Workspace is what the agent's tools may do to a session's checkout. The toolbox's client is
// the one implementation, over Docker or in memory; everything it answers came from an untrusted
// place and is already bounded and validated.
//
// Paths are relative to RepoDir, or absolute below RepoDir or /tmp. A path that leaves these
// (by .., a link, or an absolute name) fails with an Invalid Error of code
// path_outside_workspace naming the target. Other codes: not_found, is_directory,
// not_a_directory, not_regular_file, file_too_large, changed_since_read, already_exists,
// disk_full, permission_denied. A lost sandbox is an Unavailable Error of code sandbox_lost.
type Workspace interface {
	// Run executes shell text with bash --noprofile --norc -c, stdin closed, in RepoDir. A command
	// that fails, is killed or times out is an answer, not an error. Cancelling ctx kills the tree.
	Run(ctx context.Context, cmd Command) (CommandResult, error)
	// Read returns up to limit bytes from byte offset. limit 0 means MaxRead.
	Read(ctx context.Context, path string, offset, limit int64) (FileData, error)
	// Write replaces or creates one file atomically, keeping the mode of an existing one.
	Write(ctx context.Context, w WriteFile) (FileStat, error)
	// Stat describes the path itself, not the target of a link.
	Stat(ctx context.Context, path string) (FileStat, error)
	// List returns one level, sorted by name.
	List(ctx context.Context, path string, limit int) (Listing, error)
	// Find walks and returns files whose path matches a glob, sorted; .git and ignored files excluded.
	Find(ctx context.Context, q FindQuery) (FindResult, error)
	// Search greps file contents (RE2, or literally); .git, ignored and binary files excluded.
	Search(ctx context.Context, q SearchQuery) (SearchResult, error)
}

// MaxRead bounds one Read; MaxWrite bounds one Write. Bytes.
const (
	MaxRead  = 10 << 20
	MaxWrite = 1 << 20
)

// Command is one shell text to run.
type Command struct {
	Shell   string
	Dir     string        // "" means RepoDir
	Env     []string      // KEY=value, added to the fixed environment
	Timeout time.Duration // 0 means 120 s
	// KeepHead and KeepTail bound what is returned, in bytes; 0 means 10 KiB and 40 KiB.
	KeepHead, KeepTail int
	// LogName, when set, is a file name under OutputDir that receives the whole merged output
	// (at most 10 MiB) when it did not fit into head and tail.
	LogName string
}

// CommandResult is how a command ended. Output is stdout and stderr merged in arrival order:
// Head, then Omitted bytes that were dropped, then Tail.
type CommandResult struct {
	Exit      int    // 0..255; 128+signal when killed
	Signal    string // "KILL" etc. when it died by a signal
	TimedOut  bool
	OOMKilled bool
	OverQuota bool // ended because the workspace held more than its budget
	HostFull  bool // ended because the host's disk was almost full
	// MemoryLimit is what the sandbox may use, when OOMKilled and known. Bytes.
	MemoryLimit int64
	Survivors   int // background processes that it left and that were then killed
	Head        []byte
	Tail        []byte
	Total       int64 // bytes it wrote
	Lines       int64 // newlines it wrote
	Omitted     int64 // bytes in neither Head nor Tail
	LogPath     string
	Duration    time.Duration
	Refused     []EgressRefusal // hosts that could not be reached while it ran, as far as the platform knows
}

// FileKind is what a path names.
type FileKind string

const (
	FileRegular FileKind = "file"
	FileDir     FileKind = "dir"
	FileLink    FileKind = "link"
	FileOther   FileKind = "other" // FIFO, socket, device
)

// FileStat describes one path. Path is relative to RepoDir when below it, else absolute.
type FileStat struct {
	Path   string
	Kind   FileKind
	Size   int64
	Mode   fs.FileMode // permission bits
	Target string      // of a link
	SHA256 string      // hex; only from Read and Write
}

// FileData is a part of one regular file.
type FileData struct {
	FileStat
	Offset int64
	Data   []byte
	EOF    bool // Data reaches the end of the file
}

// WriteFile is one whole-file write of at most MaxWrite bytes.
type WriteFile struct {
	Path string
	Data []byte
	Mode fs.FileMode // of a new file; 0 means 0644
	// Expect guards the write: "" writes anyway, "absent" demands that nothing is there
	// (already_exists), a hex SHA-256 demands that content (changed_since_read).
	Expect string
}

// Listing is one directory level.
type Listing struct {
	Entries []FileStat
	More    bool // the limit cut it
}

// FindQuery selects files by glob (doublestar; without / it matches base names).
type FindQuery struct {
	Pattern string
	Path    string // "" means RepoDir
	Limit   int    // 0 means 200
}

// FindResult holds paths that can be passed straight to Read.
type FindResult struct {
	Paths []string
	More  bool
}

// SearchQuery selects lines.
type SearchQuery struct {
	Pattern    string
	Path       string // file or directory; "" means RepoDir
	Glob       string // restricts the files
	IgnoreCase bool
	Literal    bool
	Context    int // lines before and after, 0..5
	Limit      int // matching lines; 0 means 100
}

// SearchLine is a matching line or, with Match false, one of context.
type SearchLine struct {
	Path   string
	Number int // from 1
	Text   string
	Match  bool
	// Length is how many characters the line has when Text is only a piece of it, else 0; Column is
	// then where the match begins, in characters from 1.
	Length, Column int
}

// SearchResult holds lines in path and line order. Ignored says that files which git ignores exist
// below the path and were not searched.
type SearchResult struct {
	Lines   []SearchLine
	Matches int
	More    bool
	Ignored bool
}

// PlatformWorkspace adds what only the platform may ask of a sandbox. The agent never gets it.
type PlatformWorkspace interface {
	Workspace
	// Checkout builds RepoDir as a repository from one pack, its index before it: branch made at base,
	// remote token-free.
	// It refuses (checkout_exists) when RepoDir already holds a repository: a session's workspace is
	// never reset. With spec.BaseOnly it leaves RepoDir alone and makes the platform's own copy of the
	// base again, which commands may have damaged.
	Checkout(ctx context.Context, spec Checkout, pack io.Reader) error
	// GitState reads branch, HEAD and dirtiness of RepoDir. Error: checkout_missing, when the platform's
	// copy of the base is not there or cannot be read.
	GitState(ctx context.Context) (GitState, error)
	// SwitchBranch puts a work tree that is not dirty on a branch of RepoDir, without running anything
	// of the repository's. A branch that is missing is made at HEAD.
	SwitchBranch(ctx context.Context, branch string) error
	// Snapshot records the work tree with a git directory of its own, and writes a thin pack of its
	// objects minus the base to pack.
	Snapshot(ctx context.Context, pack io.Writer) (Snapshot, error)
	// Checkpoint writes a zstd tar of every path that differs from base to w.
	Checkpoint(ctx context.Context, w io.Writer, maxBytes int64) (CheckpointInfo, error)
	// Restore applies a checkpoint on top of a fresh checkout of the same base.
	Restore(ctx context.Context, info CheckpointInfo, r io.Reader) error
	// KillAll ends every process but the toolbox and returns how many there were.
	KillAll(ctx context.Context) (int, error)
	// Ping proves that the toolbox answers.
	Ping(ctx context.Context) error
}

// Checkout says what RepoDir shall become.
type Checkout struct {
	BaseSHA   string   // 40 hex digits
	Branch    string   // agent/<session id>, made at BaseSHA
	BaseRef   string   // base branch name, kept as refs/remotes/origin/<BaseRef>
	RemoteURL string   // token-free
	Shallow   []string // commits whose parents are not in the pack
	// IndexBytes is the length of the pack's index, which comes before the pack: the sandbox need not
	// unpack every object to make one.
	IndexBytes int64
	BaseOnly   bool // RepoDir has been made before and stays as it is
}

// GitState is what git in the sandbox says of RepoDir; untrusted, used only to refuse.
type GitState struct {
	Branch string // "" when detached
	Head   string
	Base   string // the commit that work is compared with
	Dirty  bool
}

// Snapshot is the work tree as git objects. NestedRepositories names folders with a .git of their
// own whose files were added as plain files.
type Snapshot struct {
	TreeSHA            string
	BaseSHA            string
	NestedRepositories []string
}

// CheckpointInfo is the index of a checkpoint archive.
type CheckpointInfo struct {
	BaseSHA string
	Deleted []string // paths of base that the work tree has not
	Files   int
	Bytes   int64    // of the archive
	Missing []string // what did not fit (checkpoint_partial)
}
