package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxErrorBody is how much of an error answer is read, in bytes. It is matched and then forgotten.
const maxErrorBody = 64 << 10

// exchange is the HTTP client that the library gets for one request. It sends the body that was
// written here, turns every answer that is no event stream into a failure, and filters the stream.
type exchange struct {
	client *Client
	body   []byte
	watch  *watch
}

// Do sends the request.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	req.ContentLength = int64(len(x.body))
	req.Body = io.NopCloser(bytes.NewReader(x.body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	if x.client.options.Dialect == DialectOpenRouter {
		req.Header.Set("X-Title", "Agent Sandboxing")
	}
	resp, err := x.client.http.Do(req)
	if err != nil {
		return nil, err
	}
	x.watch.headers()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	ok := resp.StatusCode == http.StatusOK
	switch {
	case ok && kind == "text/event-stream":
		resp.Body = newFilter(resp.Body, x.watch)
		return resp, nil
	case ok && kind == "application/json":
		return x.whole(resp)
	}
	defer func() { _ = resp.Body.Close() }()                       // it was read as far as it is wanted
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what is missing only makes the match less sharp
	if ok {
		return nil, notAStream(body)
	}
	return nil, statusFailure(resp.StatusCode, body, retryAfter(resp.Header))
}

// whole makes one data line of a completion from a server that does not stream.
func (x *exchange) whole(resp *http.Response) (*http.Response, error) {
	defer func() { _ = resp.Body.Close() }() // it was read as far as it is wanted
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxLine))
	if err != nil {
		return nil, err
	}
	var completion struct {
		Choices []struct {
			Message json.RawMessage `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &completion) != nil || len(completion.Choices) == 0 || !isSet(completion.Choices[0].Message) {
		return nil, notAStream(body)
	}
	line := bytes.NewBufferString("data: ")
	if err := json.Compact(line, body); err != nil {
		return nil, notAStream(body)
	}
	line.WriteByte('\n')
	resp.Body = newFilter(io.NopCloser(line), x.watch)
	return resp, nil
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
	f := streamBroken(err)
	if !x.watch.spoke() && isReset(err) {
		f.retry, f.reason = true, "the connection broke before the answer began"
	}
	return f
}

// isReset: the connection went away, and not in the way in which an answer ends.
func isReset(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// maxPatience is the longest wait that is told apart from others, in seconds.
const maxPatience = 30 * 24 * 3600

// retryAfter reads how long the provider wants to be left alone; 0 when it did not say.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, maxPatience) * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
