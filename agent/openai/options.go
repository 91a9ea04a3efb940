package openai

import (
	"net/http"
	"strings"
	"time"
)

// Options say where the model is, what it understands and how patient to be. Zero fields take their
// defaults.
type Options struct {
	BaseURL string // up to /v1
	Key     string
	Model   string

	Dialect        Dialect         // by the host
	Replay         Replay          // by the dialect and the model's family
	Schema         Schema          // full
	Effort         string          // of reasoning, in the provider's words; "" leaves it alone
	MaxOutput      int             // tokens of one answer; 0 leaves it to the provider
	OneCall        bool            // ask for one tool call a response
	Providers      []string        // the router's upstreams, these and no others; openrouter only
	AllowRetention bool            // upstreams that keep texts are fine too; openrouter only
	Retries        *int            // of one request; 2
	RetryWait      time.Duration   // before the first retry, doubled for each further one; 1 s
	Timeouts       Timeouts        // of one request
	Transport      *http.Transport // for tests; the network
}

// Dialect is what an endpoint understands beyond the common protocol.
type Dialect string

const (
	DialectOpenAI     Dialect = "openai"
	DialectOpenRouter Dialect = "openrouter"
)

// Replay is the form in which a model wants its reasoning back within a turn.
type Replay string

const (
	ReplayNone    Replay = "none"
	ReplayDetails Replay = "details"           // reasoning_details: signed or encrypted blocks
	ReplayContent Replay = "reasoning_content" // a text
)

// Schema is how much of JSON Schema an endpoint bears in the parameters of tools.
type Schema string

const (
	SchemaFull    Schema = "full"
	SchemaMinimal Schema = "minimal" // type, required, properties, items and description
)

// Timeouts bound the parts of one request.
type Timeouts struct {
	Headers   time.Duration // until the response begins; 60 s
	FirstData time.Duration // from there to the first data line; 120 s
	Idle      time.Duration // between two lines, keep-alive comments included; 120 s
	Progress  time.Duration // between two data lines; 300 s
	Request   time.Duration // in all; 10 min
}

func (t Timeouts) orDefault() Timeouts {
	set := func(d *time.Duration, fallback time.Duration) {
		if *d == 0 {
			*d = fallback
		}
	}
	set(&t.Headers, time.Minute)
	set(&t.FirstData, 2*time.Minute)
	set(&t.Idle, 2*time.Minute)
	set(&t.Progress, 5*time.Minute)
	set(&t.Request, 10*time.Minute)
	return t
}

// orDefault fills what follows from the host and from the model's name.
func (o Options) orDefault() Options {
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	o.Timeouts = o.Timeouts.orDefault()
	if o.RetryWait == 0 {
		o.RetryWait = time.Second
	}
	if o.Retries == nil {
		o.Retries = new(defaultRetries)
	}
	if o.Dialect == "" {
		o.Dialect = DialectOpenAI
		if strings.Contains(o.BaseURL, "://openrouter.ai/") {
			o.Dialect = DialectOpenRouter
		}
	}
	if o.Schema == "" {
		o.Schema = SchemaFull
	}
	if o.Replay == "" {
		o.Replay = ReplayNone
		// Gemini behind the router refuses blocks that it no longer knows.
		if o.Dialect == DialectOpenRouter && !strings.HasPrefix(o.Model, "google/") {
			o.Replay = ReplayDetails
		}
	}
	return o
}

// marksCache: the model's family caches only what is marked.
func (o Options) marksCache() bool {
	return o.Dialect == DialectOpenRouter && strings.HasPrefix(o.Model, "anthropic/")
}

// countsReasoning: OpenAI's own reasoning models refuse max_tokens and want another field for it.
func (o Options) countsReasoning() bool {
	if o.Dialect != DialectOpenAI {
		return false
	}
	for _, family := range []string{"gpt-5", "gpt-6", "o1", "o3", "o4"} {
		if strings.HasPrefix(o.Model, family) {
			return true
		}
	}
	return false
}
