package core

import "context"

// TurnRequest is all that the agent is given for one message. It holds no credential and no handle
// of the platform but the workspace and the publisher.
type TurnRequest struct {
	SessionID SessionID
	MessageID MessageID
	Profile   string // a profile of prompts/profiles.yaml: "main"
	Policy    BashPolicy

	Summary      string         // the compacted session so far, "" at first
	Conversation []TurnText     // oldest first
	Activity     []ToolActivity // recent tool calls, oldest first
	Workspace    WorkspaceState
	Request      string     // what the person asks, verbatim
	Limits       TurnLimits // of this message; zero fields take the agent's own
}

// TurnText is one text of the conversation.
type TurnText struct {
	Role Role
	Text string
}

// ToolActivity is one earlier tool call in a line: `edit src/a.ts ok +3 −1`.
type ToolActivity struct {
	Tool, Object, Outcome string
}

// WorkspaceState describes the checkout in the platform's own words.
type WorkspaceState struct {
	Repository  string // owner/name
	Branch      string
	BaseBranch  string
	BaseSHA     string
	Changed     []ChangedFile
	PullRequest string // "#12 open", "" when there is none
	Guidance    string // of GuidanceFile at the base SHA, hostile text
	// GuidanceFile is AGENTS.md or CLAUDE.md, "" without either.
	GuidanceFile string
	Network      EgressPolicy // what programs in the sandbox may reach; no Mode: not known
}

// TurnResult is how the loop ended when it did not fail.
type TurnResult struct {
	Answer     string
	Model      string // as the provider names it
	PromptHash string
	Steps      int
	Usage      Usage
	Context    ContextUse
	Limits     TurnLimits // that it ran under
}

// ContextUse is how full the context window was at the turn's last request, in tokens. Tokens is 0
// when nobody counted.
type ContextUse struct {
	Tokens int64 `json:"tokens"`
	Window int64 `json:"window"`
}

// CompactionRequest is what a session's next summary is made from, after a turn has ended.
type CompactionRequest struct {
	Previous  string // the summary until now
	Request   string // what the person asked
	Activity  []ToolActivity
	Finish    Finish
	Workspace WorkspaceState // after the turn, as the platform knows it
	// LineOnly asks for the line that says how the turn ended, and no model.
	LineOnly bool
}

// EndedTurn is a turn that no summary knows of, because its worker was gone before it could write one.
type EndedTurn struct {
	Request string
	Finish  Finish // without its changed files
}

// Compaction is a session's next summary. Code says why the model's own was not taken, "" when it
// was or when none was asked.
type Compaction struct {
	Summary string
	ByModel bool
	Code    string
	Usage   Usage
}

// Usage counts tokens and money of model requests; CostUSD is nil when no part of it is known
// or has to be estimated.
type Usage struct {
	PromptTokens     int64    `json:"prompt_tokens"`
	CachedTokens     int64    `json:"cached_tokens"` // inside PromptTokens
	CompletionTokens int64    `json:"completion_tokens"`
	CostUSD          *float64 `json:"cost_usd,omitempty"`
	// CostSource is "" while nothing was used.
	CostSource CostSource `json:"cost_source,omitempty"`
}

// TurnRecorder receives what happens while it happens. Its methods write durable events; an error
// from it ends the turn. Text given to it is already redacted and cut.
type TurnRecorder interface {
	ToolCall(ctx context.Context, e AgentToolCall) error
	ToolResult(ctx context.Context, e AgentToolResult, full []byte) error
	PolicyRefused(ctx context.Context, e PolicyRefused) error
	ModelRetry(ctx context.Context, e ModelRequestRetry) error
	// Spent adds what one model request used, of the turn itself or of a part of it, as soon as it is
	// known. Conflict session_budget_reached or month_budget_reached says that no further request
	// may be sent. A zero usage only asks.
	Spent(ctx context.Context, u Usage) error
	// Partial takes the whole answer so far. It never blocks on the database.
	Partial(text string)
}

// Publisher is the agent's whole power over GitHub: ask for the session's pull request.
type Publisher interface {
	PublishPullRequest(ctx context.Context, title, body string) (PublishResult, error)
}

// PublishResult is what a publish did.
type PublishResult struct {
	Outcome   PublishOutcome
	Number    int
	URL       string
	Files     int
	Additions int
	Deletions int
	Draft     bool
	LeftOut   []string // paths that the publish set excluded, with the rule
	Merged    int      // commits of others on the branch that were merged with the session's work
}

// Codes of a summary that the model did not make.
const (
	CodeSummaryInvalid = "summary_invalid" // its text did not keep to the outline
	CodeSummaryTimeout = "summary_timeout"
)

// TurnFailure codes that the agent loop itself ends with; each is a core.Error code too.
const (
	CodeLimitReached       = "agent_limit_reached"
	CodeModelUnauthorized  = "model_unauthorized"
	CodeModelRateLimited   = "model_rate_limited"
	CodeModelUnavailable   = "model_unavailable"
	CodeModelTimeout       = "model_timeout"
	CodeModelStreamError   = "model_stream_error"
	CodeModelEmptyResponse = "model_empty_response"
	CodeModelMalformed     = "model_malformed_calls"
	CodeModelTruncated     = "model_output_truncated"
	CodeModelRefused       = "model_refused_by_provider"
	CodeModelRejected      = "model_request_rejected" // the provider does not take the request as it is: no such model, bad settings
	CodeContextOverflow    = "context_overflow"
	CodeCostUnknown        = "cost_unknown" // a cap is set and a request's cost is not known
)
