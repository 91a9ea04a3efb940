// Package openai speaks to an OpenAI-compatible endpoint: one streamed chat completion a request.
//
// The HTTP request and the stream reader are go-openai's; the body is written and the chunks are
// read here, because the library's types are too narrow for both. What its reader would lose or
// read as a clean end is caught before it: a filter passes on data lines only, and an answer counts
// only when its stream has said why it finished. Provider text never gets into an error, a log or
// an event.
package openai

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	api "github.com/sashabaranov/go-openai"

	"agent-sandboxing/agent"
)

// Client is an agent.Model. It is safe for concurrent use.
type Client struct {
	options Options
	http    *http.Client
}

var _ agent.Model = (*Client)(nil)

// New makes a client.
func New(o Options) *Client {
	c := &Client{options: o.orDefault()}
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
		}
	}
	c.http = &http.Client{
		Transport: transport,
		// A redirect would take the key to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Name is the model as configured.
func (c *Client) Name() string { return c.options.Model }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// once is one HTTP request.
func (c *Client) once(ctx context.Context, body []byte, on agent.Listener) (agent.Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Timeouts.Request, errTooSlow)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x := &exchange{client: c, body: body, watch: newWatch(c.options.Timeouts, stop)}
	defer x.watch.end()

	config := api.DefaultConfig(c.options.Key)
	config.BaseURL = c.options.BaseURL
	config.HTTPClient = x
	// The exchange sends the body; an empty one keeps the library from judging models by name.
	stream, err := api.NewClientWithConfig(config).CreateChatCompletionStream(ctx, api.ChatCompletionRequest{})
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
	return answer.response(c.options.Replay)
}
