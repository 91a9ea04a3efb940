// Package config reads the environment, the only place that does. Load reports every problem at
// once, in sentences that name the variable and the remedy.
package config

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"

	"agent-sandboxing/core"
)

// Role is which planes a process serves; it decides which variables must be set and which secrets
// the process may hold at all.
type Role string

const (
	Serve   Role = "serve"   // web and worker in one process
	Web     Role = "web"     // pages, API, streams
	Worker  Role = "worker"  // agent, git, Docker
	Migrate Role = "migrate" // database only
	Doctor  Role = "doctor"  // reads everything, demands nothing
	Probe   Role = "probe"   // speaks to the model only
)

// Config is the whole configuration. Empty fields are documented defaults.
type Config struct {
	PublicURL         string `env:"PUBLIC_URL"`
	ListenAddr        string `env:"LISTEN_ADDR" envDefault:"127.0.0.1:8080"`
	AllowInsecureHTTP bool   `env:"ALLOW_INSECURE_HTTP"`
	DataDir           string `env:"DATA_DIR"`
	DatabaseURL       Secret `env:"DATABASE_URL"`
	EncryptionKeys    Secret `env:"ENCRYPTION_KEYS"`
	// DemoLogins are the stand-in's people, offered on the sign-in page of a demo.
	DemoLogins []string `env:"DEMO_LOGINS"`

	GitHub  GitHub `envPrefix:"GITHUB_"`
	Access  Access
	Model   Model
	Limits  Limits
	Sandbox Sandbox `envPrefix:"SANDBOX_"`
	Egress  Egress
	// DockerHost is the daemon's address; empty means the local socket.
	DockerHost string `env:"DOCKER_HOST"`

	// Fixtures are local folders used as repositories, for tests and evaluations.
	EnableFixtures bool   `env:"ENABLE_FIXTURES"`
	FixturesDir    string `env:"FIXTURES_DIR"`

	BashPolicy core.BashPolicy `env:"BASH_POLICY" envDefault:"seed"`
	CloneDepth int             `env:"CLONE_DEPTH" envDefault:"50"`
	CloneMax   int64           `env:"CLONE_MAX_MIB" envDefault:"4096"` // what one fetch may bring
}

// GitHub is the App's registration. BaseURL empty means github.com.
type GitHub struct {
	BaseURL           string `env:"BASE_URL"`
	ClientID          string `env:"CLIENT_ID"`
	ClientSecret      Secret `env:"CLIENT_SECRET"`
	AppID             int64  `env:"APP_ID"`
	AppPrivateKeyFile string `env:"APP_PRIVATE_KEY_FILE"`
	// WebhookSecret signs what GitHub delivers; empty takes no deliveries.
	WebhookSecret Secret `env:"WEBHOOK_SECRET"`
}

// minWebhookSecret is what a secret needs to be one, in bytes.
const minWebhookSecret = 16

// Access says who may sign in.
type Access struct {
	AllowedLogins []string `env:"ALLOWED_LOGINS"`
	AllowedOrgs   []string `env:"ALLOWED_ORGS"`
	AdminLogins   []string `env:"ADMIN_LOGINS"`
}

// Empty says that nobody may.
func (a Access) Empty() bool { return len(a.AllowedLogins)+len(a.AllowedOrgs)+len(a.AdminLogins) == 0 }

// Model is the OpenAI-compatible endpoint.
type Model struct {
	ModelBaseURL     string `env:"MODEL_BASE_URL" envDefault:"https://openrouter.ai/api/v1"`
	OpenRouterAPIKey Secret `env:"OPENROUTER_API_KEY"`
	AgentModel       string `env:"AGENT_MODEL" envDefault:"anthropic/claude-sonnet-4.5"`
	// AgentSummaryModel writes the summaries between turns; empty is AgentModel.
	AgentSummaryModel string `env:"AGENT_SUMMARY_MODEL"`
	// How this model works best with files.
	AgentLineNumbers bool `env:"AGENT_LINE_NUMBERS"` // in what read shows
	AgentExactEdits  bool `env:"AGENT_EXACT_EDITS"`  // no edit where only spaces, quotes or indentation differ
	// ContextWindow is how much the model takes, its answer included, in tokens.
	ContextWindow int `env:"MODEL_CONTEXT_WINDOW" envDefault:"128000"`
	// ModelLabel is shown on every page; a demo says with it that its model is scripted.
	ModelLabel string `env:"MODEL_LABEL"`

	// What the endpoint and the model understand. Empty follows from MODEL_BASE_URL and AGENT_MODEL.
	ModelDialect         string   `env:"MODEL_DIALECT"`
	ModelReasoningReplay string   `env:"MODEL_REASONING_REPLAY"`
	ModelReasoningEffort string   `env:"MODEL_REASONING_EFFORT"`
	ModelSchema          string   `env:"MODEL_SCHEMA" envDefault:"full"`
	ModelMaxOutput       int      `env:"MODEL_MAX_OUTPUT"` // tokens; 0 leaves it to the provider
	ModelOneCall         bool     `env:"MODEL_ONE_CALL"`
	ModelProviders       []string `env:"MODEL_PROVIDERS"`
	ModelAllowRetention  bool     `env:"MODEL_ALLOW_RETENTION"`
	ModelRetries         int      `env:"MODEL_RETRIES" envDefault:"2"`

	// Dollars for a million tokens, nil when not set; a cached token costs like any other by default.
	ModelPriceInput  *float64 `env:"MODEL_PRICE_INPUT"`
	ModelPriceOutput *float64 `env:"MODEL_PRICE_OUTPUT"`
	ModelPriceCached *float64 `env:"MODEL_PRICE_CACHED"`
}

// minContextWindow is what the agent needs for its prompt, its tools and a request, in tokens.
const minContextWindow = 16_000

// ReportsCost says that the endpoint tells the cost of each request.
func (m Model) ReportsCost() bool {
	if m.ModelDialect != "" {
		return m.ModelDialect == "openrouter"
	}
	return strings.Contains(m.ModelBaseURL, "://openrouter.ai/")
}

// Sandbox bounds each session's container. Memory, Disk and DiskReserve are MiB, MaxAge is hours; Disk,
// Inodes and DiskReserve 0 are no bound.
type Sandbox struct {
	Image      string  `env:"IMAGE"`
	Runtime    string  `env:"RUNTIME" envDefault:"runc"`
	MaxRunning int     `env:"MAX_RUNNING" envDefault:"8"`
	Warm       int     `env:"WARM" envDefault:"2"` // sandboxes that run ahead of sessions
	Memory     int64   `env:"MEMORY" envDefault:"2048"`
	CPUs       float64 `env:"CPUS" envDefault:"2"`
	PIDs       int64   `env:"PIDS" envDefault:"512"`
	// CAFile is the bundle of authorities that sandboxes, the GitHub clients and git trust; empty means
	// the host's.
	CAFile string `env:"CA_FILE"`

	Disk        int64 `env:"DISK" envDefault:"10240"`        // of one session's workspace
	Inodes      int64 `env:"INODES" envDefault:"1000000"`    // of one session's workspace
	DiskReserve int64 `env:"DISK_RESERVE" envDefault:"2048"` // that the host keeps free
	MaxAge      int   `env:"MAX_AGE" envDefault:"24"`
}

// Load reads the process's environment for a role.
func Load(role Role) (Config, error) {
	return Parse(role, env.ToMap(os.Environ()))
}

// Parse reads a configuration from the given variables. The error joins one line per problem.
func Parse(role Role, vars map[string]string) (Config, error) {
	var c Config
	var unreadable []error
	if err := env.ParseWithOptions(&c, env.Options{Environment: vars}); err != nil {
		unreadable = parseProblems(err)
	}
	c.fill(vars)
	if err := errors.Join(append(unreadable, readable(c.check(role), unreadable)...)...); err != nil {
		return Config{}, err
	}
	c.strip(role)
	return c, nil
}

func (c *Config) fill(vars map[string]string) {
	if c.PublicURL == "" {
		c.PublicURL = "http://" + c.ListenAddr
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	c.GitHub.BaseURL = strings.TrimRight(c.GitHub.BaseURL, "/")
	c.Egress.fill()
	if vars["SANDBOX_WARM"] == "" { // the default leaves room for a session on small hosts too
		c.Sandbox.Warm = max(min(c.Sandbox.Warm, c.Sandbox.MaxRunning-1), 0)
	}
	if c.DataDir == "" {
		c.DataDir = defaultDataDir(os.Getuid(), vars)
	}
	for _, list := range []*[]string{&c.Access.AllowedLogins, &c.Access.AllowedOrgs, &c.Access.AdminLogins} {
		*list = slices.DeleteFunc(*list, func(s string) bool { return strings.TrimSpace(s) == "" })
		for i := range *list {
			(*list)[i] = strings.TrimSpace((*list)[i])
		}
	}
}

// defaultDataDir is a system folder for root, because the database then runs as another user, who
// could not enter a folder below root's home.
func defaultDataDir(uid int, vars map[string]string) string {
	if uid == 0 {
		return "/var/lib/agent-sandboxing"
	}
	if x := vars["XDG_DATA_HOME"]; x != "" {
		return filepath.Join(x, "agent-sandboxing")
	}
	return filepath.Join(vars["HOME"], ".local", "share", "agent-sandboxing")
}

func (c *Config) check(role Role) []error {
	var p []error
	add := func(format string, args ...any) { p = append(p, fmt.Errorf(format, args...)) }
	if !filepath.IsAbs(c.DataDir) {
		add("DATA_DIR must be an absolute path")
	}
	if role == Migrate || role == Doctor {
		return p
	}
	if role == Probe {
		return append(p, c.Model.check()...)
	}
	p = append(p, c.checkAddress()...)
	if role != Serve {
		if c.DatabaseURL.Empty() {
			add("DATABASE_URL is not set: %s needs the database that it shares with the other processes", role)
		}
		if c.EncryptionKeys.Empty() {
			add("ENCRYPTION_KEYS is not set: give every process the same comma list of id:base64 of 32 random bytes")
		}
	}
	if c.GitHub.ClientID == "" {
		add("GITHUB_CLIENT_ID is not set: register a GitHub App and copy its client id")
	}
	if c.GitHub.ClientSecret.Empty() {
		add("GITHUB_CLIENT_SECRET is not set: generate one on the GitHub App's page")
	}
	if n := len(c.GitHub.WebhookSecret.Reveal()); n > 0 && n < minWebhookSecret {
		add("GITHUB_WEBHOOK_SECRET is shorter than %d characters: make one with openssl rand -hex 32, and enter the same on the GitHub App's page", minWebhookSecret)
	}
	if c.GitHub.BaseURL != "" {
		if u, err := url.Parse(c.GitHub.BaseURL); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil {
			add("GITHUB_BASE_URL must be an http or https address without user information")
		}
	}
	switch c.BashPolicy { // web freezes it on each new session
	case core.PolicySeed, core.PolicyBuild, core.PolicyReadonly, core.PolicyOpen:
	default:
		add("BASH_POLICY must be seed, build, readonly or open")
	}
	if err := checkCAFile(c.Sandbox.CAFile); err != nil { // web asks GitHub, too
		p = append(p, err)
	}
	p = append(p, c.Egress.check()...) // web freezes the mode on each new session
	p = append(p, c.Limits.checkWork()...)
	if c.EnableFixtures && !filepath.IsAbs(c.FixturesDir) {
		add("ENABLE_FIXTURES needs FIXTURES_DIR, an absolute path")
	}
	if role != Worker && c.Access.Empty() {
		add("ALLOWED_LOGINS, ALLOWED_ORGS and ADMIN_LOGINS are not set: nobody could sign in; set at least one")
	}
	if role == Serve || role == Worker {
		p = append(p, c.checkWorker()...)
	}
	return p
}

func (c *Config) checkAddress() []error {
	var p []error
	if _, _, err := net.SplitHostPort(c.ListenAddr); err != nil {
		p = append(p, errors.New("LISTEN_ADDR must be host:port, for example 127.0.0.1:8080"))
	}
	u, err := url.Parse(c.PublicURL)
	switch {
	case err != nil || u.Host == "" || u.Path != "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https"):
		p = append(p, errors.New("PUBLIC_URL must be the http or https address people open, without a path"))
	case u.Scheme == "http" && !c.AllowInsecureHTTP && !loopback(u.Hostname()):
		p = append(p, errors.New("PUBLIC_URL is plain http on an address that is not loopback: use https, or set ALLOW_INSECURE_HTTP=true on a network you trust"))
	}
	return p
}

func (c *Config) checkWorker() []error {
	var p []error
	if c.GitHub.AppID == 0 {
		p = append(p, errors.New("GITHUB_APP_ID is not set: copy the App id from the GitHub App's page"))
	}
	if err := checkKeyFile(c.GitHub.AppPrivateKeyFile); err != nil {
		p = append(p, err)
	}
	p = append(p, c.Model.check()...)
	p = append(p, c.checkMoney()...)
	if c.Sandbox.Runtime != "runc" && c.Sandbox.Runtime != "runsc" {
		p = append(p, errors.New("SANDBOX_RUNTIME must be runc or runsc"))
	}
	if c.Sandbox.MaxRunning < 1 {
		p = append(p, errors.New("SANDBOX_MAX_RUNNING must be at least 1"))
	}
	switch {
	case c.Sandbox.Warm < 0:
		p = append(p, errors.New("SANDBOX_WARM must be 0 (none) or a number of sandboxes"))
	case c.Sandbox.Warm > 0 && c.Sandbox.Warm >= c.Sandbox.MaxRunning:
		p = append(p, fmt.Errorf("SANDBOX_WARM is %d and must be below SANDBOX_MAX_RUNNING, which is %d: those that run ahead count in it, and sessions need a place too", c.Sandbox.Warm, c.Sandbox.MaxRunning))
	}
	if c.Sandbox.Memory < 128 {
		p = append(p, errors.New("SANDBOX_MEMORY must be at least 128; it is in MiB"))
	}
	if c.Sandbox.CPUs <= 0 {
		p = append(p, errors.New("SANDBOX_CPUS must be above 0"))
	}
	if c.Sandbox.PIDs < 32 {
		p = append(p, errors.New("SANDBOX_PIDS must be at least 32"))
	}
	if c.Sandbox.Disk != 0 && c.Sandbox.Disk < minDisk {
		p = append(p, fmt.Errorf("SANDBOX_DISK must be 0 (no bound) or at least %d; it is in MiB", minDisk))
	}
	if c.Sandbox.Inodes != 0 && c.Sandbox.Inodes < minInodes {
		p = append(p, fmt.Errorf("SANDBOX_INODES must be 0 (no bound) or at least %d", minInodes))
	}
	if c.Sandbox.DiskReserve < 0 {
		p = append(p, errors.New("SANDBOX_DISK_RESERVE must be 0 (no reserve) or a number of MiB"))
	}
	if c.Sandbox.MaxAge < 1 {
		p = append(p, errors.New("SANDBOX_MAX_AGE must be at least 1; it is in hours"))
	}
	if c.CloneDepth < 0 {
		p = append(p, errors.New("CLONE_DEPTH must be 0 (everything) or a number of commits"))
	}
	if c.CloneMax < 1 {
		p = append(p, errors.New("CLONE_MAX_MIB must be at least 1"))
	}
	return p
}

// What a checkout and a few tools need: MiB, files.
const (
	minDisk   = 64
	minInodes = 1000
)

// checkKeyFile looks at the file now, because the worker reads it when the pages are up already.
func checkKeyFile(path string) error {
	if path == "" {
		return errors.New("GITHUB_APP_PRIVATE_KEY_FILE is not set: generate a private key on the GitHub App's page")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("GITHUB_APP_PRIVATE_KEY_FILE cannot be read: %w", err)
	}
	if block, _ := pem.Decode(b); block == nil {
		return errors.New("GITHUB_APP_PRIVATE_KEY_FILE is no PEM file: use the one that GitHub made, unchanged")
	}
	return nil
}

// maxRetries keeps a busy provider from holding up a turn.
const maxRetries = 5

func (m Model) check() []error {
	var p []error
	if m.OpenRouterAPIKey.Empty() {
		p = append(p, errors.New("OPENROUTER_API_KEY is not set: the agent needs a key for MODEL_BASE_URL"))
	}
	for _, setting := range []struct {
		name, value string
		allowed     []string
	}{
		{"MODEL_DIALECT", m.ModelDialect, []string{"", "openai", "openrouter"}},
		{"MODEL_REASONING_REPLAY", m.ModelReasoningReplay, []string{"", "none", "details", "reasoning_content"}},
		{"MODEL_SCHEMA", m.ModelSchema, []string{"full", "minimal"}},
	} {
		if !slices.Contains(setting.allowed, setting.value) {
			p = append(p, fmt.Errorf("%s must be one of %s", setting.name, strings.TrimPrefix(strings.Join(setting.allowed, ", "), ", ")))
		}
	}
	if m.ContextWindow < minContextWindow {
		p = append(p, fmt.Errorf("MODEL_CONTEXT_WINDOW must be a number of tokens, at least %d", minContextWindow))
	}
	if m.ModelMaxOutput < 0 {
		p = append(p, errors.New("MODEL_MAX_OUTPUT must be 0 (the provider's own) or a number of tokens"))
	}
	if m.ModelRetries < 0 || m.ModelRetries > maxRetries {
		p = append(p, fmt.Errorf("MODEL_RETRIES must be 0 to %d", maxRetries))
	}
	return p
}

// strip drops the secrets that a role has no business holding.
func (c *Config) strip(role Role) {
	if role == Web {
		c.Model.OpenRouterAPIKey = Secret{}
		c.GitHub.AppPrivateKeyFile = ""
	}
	if role == Worker {
		c.GitHub.WebhookSecret = Secret{}
	}
}

// Secrets lists every secret value that the process holds, for the redactor. The database's password
// counts only inside its URL: alone it may be a word that texts are full of.
func (c *Config) Secrets() []string {
	all := []string{c.DatabaseURL.Reveal(), c.GitHub.ClientSecret.Reveal(), c.GitHub.WebhookSecret.Reveal(), c.Model.OpenRouterAPIKey.Reveal()}
	all = append(all, EncryptionSecrets(c.EncryptionKeys.Reveal())...)
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// EncryptionSecrets are the keys of a comma list of id:key.
func EncryptionSecrets(list string) []string {
	var keys []string
	for pair := range strings.SplitSeq(list, ",") {
		if _, key, ok := strings.Cut(pair, ":"); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
