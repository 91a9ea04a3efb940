package wire

// Verb names a request.
type Verb string

// The verbs. Each comment names its request and its result.
const (
	VerbRun        Verb = "run"        // RunArgs → RunResult
	VerbRead       Verb = "read"       // ReadArgs → Data, ReadResult
	VerbWrite      Verb = "write"      // WriteArgs, Data → Stat
	VerbStat       Verb = "stat"       // StatArgs → Stat
	VerbList       Verb = "list"       // ListArgs → ListResult
	VerbFind       Verb = "find"       // FindArgs → FindResult
	VerbSearch     Verb = "search"     // SearchArgs → SearchResult
	VerbCheckout   Verb = "checkout"   // CheckoutArgs, Data → nothing
	VerbGitState   Verb = "git_state"  // nothing → GitState
	VerbSwitch     Verb = "switch"     // SwitchArgs → nothing
	VerbSnapshot   Verb = "snapshot"   // nothing → Data, SnapshotResult
	VerbCheckpoint Verb = "checkpoint" // CheckpointArgs → Data, CheckpointResult
	VerbRestore    Verb = "restore"    // RestoreArgs, Data → nothing
	VerbKillAll    Verb = "kill_all"   // nothing → KillResult
	VerbPing       Verb = "ping"       // nothing → nothing
	VerbSpace      Verb = "space"      // nothing → SpaceResult
	VerbNetwork    Verb = "network"    // NetworkArgs → nothing
)

// Call is the payload of a Request frame.
type Call[A any] struct {
	Verb Verb `json:"verb"`
	Args A    `json:"args"`
}

// Name is a path as bytes: file names need not be UTF-8, which a JSON string must be.
type Name []byte

// Names turns strings into Names.
func Names(paths []string) []Name {
	names := make([]Name, len(paths))
	for i, p := range paths {
		names[i] = Name(p)
	}
	return names
}

// Code is why a request failed. The client knows a fixed set of codes and words the message itself.
type Code string

// The codes that the toolbox uses.
const (
	OutsideWorkspace Code = "path_outside_workspace"
	NotFound         Code = "not_found"
	IsDirectory      Code = "is_directory"
	NotADirectory    Code = "not_a_directory"
	NotRegular       Code = "not_regular_file"
	FileTooLarge     Code = "file_too_large"
	ChangedSinceRead Code = "changed_since_read"
	AlreadyExists    Code = "already_exists"
	DiskFull         Code = "disk_full"
	PermissionDenied Code = "permission_denied"
	BadPath          Code = "path_invalid"
	BadRequest       Code = "toolbox_request_invalid"
	CommandFailed    Code = "command_not_started"
	CheckoutExists   Code = "checkout_exists"
	CheckoutMissing  Code = "checkout_missing"
	CheckoutFailed   Code = "checkout_failed"
	SwitchFailed     Code = "branch_switch_failed"
	SnapshotFailed   Code = "snapshot_failed"
	CheckpointFailed Code = "checkpoint_failed"
	RestoreFailed    Code = "restore_failed"
	NetworkMissing   Code = "network_unavailable"
	Busy             Code = "toolbox_busy"
	Cancelled        Code = "cancelled"
	Failed           Code = "toolbox_failed"
)

// Error is the payload of a Finish frame that reports a failure. Detail is the path or link target
// that the failure is about, never a program's text.
type Error struct {
	Code   Code `json:"code"`
	Detail Name `json:"detail,omitempty"`
}

func (e *Error) Error() string { return string(e.Code) + ": " + string(e.Detail) }

// Fail makes an Error.
func Fail(code Code, detail string) *Error { return &Error{Code: code, Detail: Name(detail)} }

// RunArgs asks for one shell text. Times are milliseconds, sizes bytes.
type RunArgs struct {
	Shell    []byte   `json:"shell"`
	Dir      Name     `json:"dir,omitempty"`
	Env      [][]byte `json:"env,omitempty"`
	Timeout  int64    `json:"timeout_ms"`
	KeepHead int      `json:"keep_head"`
	KeepTail int      `json:"keep_tail"`
	LogName  string   `json:"log_name,omitempty"`
	MaxLog   int64    `json:"max_log,omitempty"`
	// What the workspace may hold, and what its file system must have left; 0 means no bound.
	MaxBytes   int64 `json:"max_bytes,omitempty"`
	MaxEntries int64 `json:"max_entries,omitempty"`
	MinFree    int64 `json:"min_free,omitempty"`
}

// RunResult is how it ended.
type RunResult struct {
	Exit      int    `json:"exit"`
	Signal    string `json:"signal,omitempty"`
	TimedOut  bool   `json:"timed_out,omitempty"`
	OOMKilled bool   `json:"oom_killed,omitempty"`
	OverQuota bool   `json:"over_quota,omitempty"` // ended because of MaxBytes or MaxEntries
	HostFull  bool   `json:"host_full,omitempty"`  // ended because of MinFree
	Memory    int64  `json:"memory,omitempty"`     // the limit that it met, when OOMKilled. Bytes.
	Survivors int    `json:"survivors,omitempty"`
	Head      []byte `json:"head,omitempty"`
	Tail      []byte `json:"tail,omitempty"`
	Total     int64  `json:"total"`
	Lines     int64  `json:"lines"`
	Logged    bool   `json:"logged,omitempty"`
	Duration  int64  `json:"duration_us"`
}

// Stat describes one path.
type Stat struct {
	Path   Name   `json:"path"`
	Kind   string `json:"kind"`
	Size   int64  `json:"size"`
	Mode   uint32 `json:"mode"`
	Target Name   `json:"target,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// StatArgs names a path.
type StatArgs struct {
	Path Name `json:"path"`
}

// ReadArgs asks for bytes of a file. SHA256 of the result is of the whole file.
type ReadArgs struct {
	Path   Name  `json:"path"`
	Offset int64 `json:"offset"`
	Limit  int64 `json:"limit"`
	Max    int64 `json:"max"` // a file larger than this is hashed by nobody
}

// ReadResult follows the data.
type ReadResult struct {
	Stat Stat `json:"stat"`
	EOF  bool `json:"eof"`
}

// WriteArgs replaces or creates a file with the data that follows.
type WriteArgs struct {
	Path   Name   `json:"path"`
	Mode   uint32 `json:"mode"`
	Expect string `json:"expect,omitempty"`
	Max    int64  `json:"max"`
}

// ListArgs asks for one directory level.
type ListArgs struct {
	Path  Name `json:"path"`
	Limit int  `json:"limit"`
}

// ListResult is sorted by name.
type ListResult struct {
	Entries []Stat `json:"entries"`
	More    bool   `json:"more,omitempty"`
}

// FindArgs selects files by glob.
type FindArgs struct {
	Pattern Name `json:"pattern"`
	Path    Name `json:"path"`
	Limit   int  `json:"limit"`
}

// FindResult is sorted.
type FindResult struct {
	Paths []Name `json:"paths"`
	More  bool   `json:"more,omitempty"`
}

// SearchArgs selects lines.
type SearchArgs struct {
	Pattern    []byte `json:"pattern"`
	Path       Name   `json:"path"`
	Glob       Name   `json:"glob,omitempty"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Literal    bool   `json:"literal,omitempty"`
	Context    int    `json:"context,omitempty"`
	Limit      int    `json:"limit"`
}

// SearchLine is one line of a file.
type SearchLine struct {
	Number int    `json:"n"`
	Text   []byte `json:"t"`
	Match  bool   `json:"m,omitempty"`
	// Of a line of which Text is a piece: its characters, and the one at which the match begins.
	Length int `json:"l,omitempty"`
	Column int `json:"c,omitempty"`
}

// SearchFile holds the lines of one file.
type SearchFile struct {
	Path  Name         `json:"path"`
	Lines []SearchLine `json:"lines"`
}

// SearchResult is in path order.
type SearchResult struct {
	Files   []SearchFile `json:"files"`
	Matches int          `json:"matches"`
	More    bool         `json:"more,omitempty"`
	Ignored bool         `json:"ignored,omitempty"`
}

// SwitchArgs asks for a work tree on a branch.
type SwitchArgs struct {
	Branch string `json:"branch"`
}

// CheckoutArgs describes the repository to make from the data that follows.
type CheckoutArgs struct {
	BaseSHA   string `json:"base_sha"`
	Branch    string `json:"branch"`
	BaseRef   string `json:"base_ref"`
	RemoteURL string `json:"remote_url"`
	// The data is the shallow file, the index of the pack, and the pack. Bytes of the first two.
	ShallowSize int64 `json:"shallow_size,omitempty"`
	IndexSize   int64 `json:"index_size"`
	// The repository stays as it is; only the platform's copy of the base is made.
	BaseOnly bool `json:"base_only,omitempty"`
}

// GitState is what the repository says of itself.
type GitState struct {
	Branch string `json:"branch"`
	Head   string `json:"head"`
	Base   string `json:"base"`
	Dirty  bool   `json:"dirty"`
}

// SnapshotResult follows the pack.
type SnapshotResult struct {
	TreeSHA string `json:"tree_sha"`
	BaseSHA string `json:"base_sha"`
	Nested  []Name `json:"nested,omitempty"`
}

// CheckpointArgs bounds the archive. Bytes.
type CheckpointArgs struct {
	MaxBytes int64 `json:"max_bytes"`
}

// CheckpointResult follows the archive. Deleted and Missing are cut at a bound; the archive itself
// holds every deleted path.
type CheckpointResult struct {
	BaseSHA string `json:"base_sha"`
	Deleted []Name `json:"deleted,omitempty"`
	Missing []Name `json:"missing,omitempty"`
	Files   int    `json:"files"`
}

// RestoreArgs names the base that the archive belongs to.
type RestoreArgs struct {
	BaseSHA string `json:"base_sha"`
}

// KillResult counts processes.
type KillResult struct {
	Killed int `json:"killed"`
}

// NetworkArgs lets programs open connections, on these TCP ports, until the client is gone.
type NetworkArgs struct {
	Ports []uint16 `json:"ports"`
}

// SpaceResult is what the workspace's file system has left, in bytes.
type SpaceResult struct {
	Free int64 `json:"free"`
}
