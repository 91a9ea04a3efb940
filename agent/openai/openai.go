// Package openai speaks to an OpenAI-compatible endpoint: one streamed chat completion a request.
//
// The types and the stream reader are go-openai's. What that reader would lose or read as a clean
// end is caught before it: a filter passes on data lines only, and an answer counts only when its
// stream has said why it finished. Provider text never gets into an error, a log or an event.
package openai

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

// Options say where the model is and how patient to be. Zero fields take their defaults.
type Options struct {
	BaseURL   string // up to /v1
	Key       string
	Model     string
	Dialect   Dialect
	Timeouts  Timeouts
	RetryWait time.Duration // before the first retry, doubled for the second; 1 s
}

// Dialect is what an endpoint understands beyond the common protocol.
type Dialect string

const (
	DialectOpenAI     Dialect = "openai"
	DialectOpenRouter Dialect = "openrouter"
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

const (
	maxRetries    = 2
	maxRetryAfter = 30 * time.Second
)

// Client is an agent.Model. It is safe for concurrent use.
type Client struct {
	baseURL   string
	key       string
	model     string
	dialect   Dialect
	timeouts  Timeouts
	retryWait time.Duration
	http      *http.Client
}

var _ agent.Model = (*Client)(nil)

// New makes a client. Without a dialect the host of the base URL decides.
func New(o Options) *Client {
	c := &Client{
		baseURL:   strings.TrimRight(o.BaseURL, "/"),
		key:       o.Key,
		model:     o.Model,
		dialect:   o.Dialect,
		timeouts:  o.Timeouts.orDefault(),
		retryWait: o.RetryWait,
	}
	if c.retryWait == 0 {
		c.retryWait = time.Second
	}
	if c.dialect == "" {
		c.dialect = DialectOpenAI
		if strings.Contains(c.baseURL, "://openrouter.ai/") {
			c.dialect = DialectOpenRouter
		}
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
		},
		// A redirect would take the key to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Name is the model as configured.
func (c *Client) Name() string { return c.model }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Stream sends req. A failure before the first data line that another attempt may cure is retried
// at most twice, each time announced to on.Retry.
func (c *Client) Stream(ctx context.Context, req agent.Request, on agent.Listener) (agent.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, err := c.once(ctx, req, on)
		if ctx.Err() != nil {
			return agent.Response{}, context.Cause(ctx)
		}
		if err == nil {
			return resp, nil
		}
		f, ok := errors.AsType[*failure](err)
		if !ok {
			return agent.Response{}, err
		}
		wait := max(c.retryWait<<(attempt-1), f.after)
		if !f.retry || attempt > maxRetries || f.after > maxRetryAfter {
			return agent.Response{}, f.err
		}
		if on.Retry != nil {
			event := core.ModelRequestRetry{Attempt: attempt, Reason: f.reason, WaitMs: wait.Milliseconds()}
			if err := on.Retry(ctx, event); err != nil {
				return agent.Response{}, err
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return agent.Response{}, context.Cause(ctx)
		}
	}
}

// once is one HTTP request.
func (c *Client) once(ctx context.Context, req agent.Request, on agent.Listener) (agent.Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeouts.Request, errTooSlow)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x := &exchange{client: c, watch: newWatch(c.timeouts, stop)}
	defer x.watch.end()

	config := api.DefaultConfig(c.key)
	config.BaseURL = c.baseURL
	config.HTTPClient = x
	stream, err := api.NewClientWithConfig(config).CreateChatCompletionStream(ctx, c.request(req))
	if err != nil {
		return agent.Response{}, x.explain(ctx, err)
	}
	defer func() { _ = stream.Close() }() // the answer is read or given up by then

	var answer answer
	for {
		raw, err := stream.RecvRaw()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = answer.add(raw, on.Text)
		}
		if err != nil {
			// What came after the reason for finishing was only the usage.
			if _, said := errors.AsType[*failure](err); answer.finish != "" && !said {
				break
			}
			return agent.Response{}, x.explain(ctx, err)
		}
	}
	return answer.response()
}
