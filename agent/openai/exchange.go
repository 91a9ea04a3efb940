package openai

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxErrorBody is how much of an error answer is read, in bytes. It is matched and then forgotten.
const maxErrorBody = 64 << 10

// exchange is the HTTP client that the library gets for one request. It turns every answer that is
// no event stream into a failure, and filters the stream.
type exchange struct {
	client *Client
	watch  *watch
}

// Do sends the request.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if err := addDialect(req, x.client.dialect); err != nil {
		return nil, err
	}
	resp, err := x.client.http.Do(req)
	if err != nil {
		return nil, err
	}
	x.watch.headers()
	if resp.StatusCode == http.StatusOK {
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if kind == "text/event-stream" {
			resp.Body = newFilter(resp.Body, x.watch)
			return resp, nil
		}
	}
	defer func() { _ = resp.Body.Close() }()                       // it was read as far as it is wanted
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what is missing only makes the match less sharp
	if resp.StatusCode == http.StatusOK {
		return nil, notAStream(body)
	}
	return nil, statusFailure(resp.StatusCode, body, retryAfter(resp.Header))
}

// explain says why a request failed. A watchdog's reason comes before what it led to.
func (x *exchange) explain(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if errors.Is(context.Cause(ctx), errTooSlow) {
		return tooSlow()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !x.watch.answered() {
		return unreachable(err)
	}
	return streamBroken(err)
}

// retryAfter reads how long the provider wants to be left alone; 0 when it did not say.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
