package chat

import (
	"cmp"
	"log/slog"
	"time"

	"agent-sandboxing/core"
)

// Options is what a Service is made of.
type Options struct {
	Store    Store
	GitHub   GitHub
	Fixtures Fixtures // nil unless ENABLE_FIXTURES
	Gate     Gate
	Log      *slog.Logger

	// BashPolicy, or a stricter one of the repository, is frozen on each new session; "" means core.PolicySeed.
	BashPolicy core.BashPolicy
	// EgressMode is the loosest mode that a session may have; "" means core.EgressNone. EgressHosts are
	// the operator's hosts, which EgressAllowlist lets through in every repository.
	EgressMode  core.EgressMode
	EgressHosts []string
	// MaxActive bounds one person's unfinished messages; 0 means DefaultMaxActive.
	MaxActive int
	// MaxSteps is how many steps a message may ask for; 0 means DefaultMaxSteps.
	MaxSteps int
}

// DefaultMaxSteps is the ceiling of raised limits.
const DefaultMaxSteps = 240

// DefaultMaxActive is how many unfinished messages one person may have.
const DefaultMaxActive = 20

// listTTL is how long an answer of GitHub about what a person sees may be used again.
const listTTL = 60 * time.Second

// pagesTTL is how long it is remembered where in a list a repository was; it is only where to look first.
const pagesTTL = 12 * time.Hour

// workersTTL is how long what the workers say of themselves may be used again.
const workersTTL = 5 * time.Second

// auditEvery is how often one administrator's look at one session is written down.
const auditEvery = time.Minute

// Service is the use cases. It is safe for concurrent use.
type Service struct {
	store      Store
	github     GitHub
	fixtures   Fixtures
	gate       Gate
	log        *slog.Logger
	bashPolicy core.BashPolicy
	egressMode core.EgressMode
	hosts      []string
	maxActive  int
	maxSteps   int

	accounts     *recent[core.UserID, core.Accounts]
	repositories *recent[listKey, []core.Repository] // whole lists
	pulls        *recent[core.SessionID, time.Time]  // the mark that was seen when it was read
	located      *recent[repositoryKey, core.Repository]
	pages        *recent[repositoryKey, int] // of the list, on which a repository was last
	branches     *recent[repositoryKey, scan]
	audited      *recent[auditKey, bool]
	workers      *recent[string, []core.Worker]
	rotated      rotated
	renewals     renewals
}

// repositoryKey names one person's view of one repository.
type repositoryKey struct {
	listKey
	repository core.RepositoryID
}

// listKey names one person's view of one installation.
type listKey struct {
	user         core.UserID
	installation core.InstallationID
}

// auditKey names one administrator's way of looking at one session.
type auditKey struct {
	user    core.UserID
	session core.SessionID
	action  string
}

// New returns a Service.
func New(o Options) *Service {
	s := &Service{
		store:        o.Store,
		github:       o.GitHub,
		fixtures:     o.Fixtures,
		gate:         o.Gate,
		log:          o.Log,
		bashPolicy:   o.BashPolicy,
		egressMode:   cmp.Or(o.EgressMode, core.EgressNone),
		hosts:        o.EgressHosts,
		maxActive:    o.MaxActive,
		maxSteps:     o.MaxSteps,
		accounts:     newRecent[core.UserID, core.Accounts](listTTL),
		repositories: newRecent[listKey, []core.Repository](listTTL),
		pulls:        newRecent[core.SessionID, time.Time](listTTL),
		located:      newRecent[repositoryKey, core.Repository](listTTL),
		pages:        newRecent[repositoryKey, int](pagesTTL),
		branches:     newRecent[repositoryKey, scan](listTTL),
		audited:      newRecent[auditKey, bool](auditEvery),
		workers:      newRecent[string, []core.Worker](workersTTL),
		rotated:      rotated{pairs: map[core.UserID]pair{}},
		renewals:     renewals{slots: make(chan struct{}, maxRenewals)},
	}
	if s.bashPolicy == "" {
		s.bashPolicy = core.PolicySeed
	}
	if s.maxActive == 0 {
		s.maxActive = DefaultMaxActive
	}
	if s.maxSteps == 0 {
		s.maxSteps = DefaultMaxSteps
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// BashPolicy is the policy that new sessions get unless their repository has a stricter one.
func (s *Service) BashPolicy() core.BashPolicy { return s.bashPolicy }
