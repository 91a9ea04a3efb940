package openai

import (
	"context"
	"errors"
	"time"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

const (
	maxRetryAfter = 30 * time.Second // that a provider is waited for once
	maxRetryTime  = time.Minute      // that one request waits in all

	defaultRetries = 2
)

// Stream sends req. A failure before the first data line that another attempt may cure is retried,
// each time announced to on.Retry. Nothing is ever sent again after a first data line.
func (c *Client) Stream(ctx context.Context, req agent.Request, on agent.Listener) (agent.Response, error) {
	body, err := c.body(req)
	if err != nil {
		return agent.Response{}, err
	}
	waited := time.Duration(0)
	for attempt := 1; ; attempt++ {
		resp, err := c.once(ctx, body, on)
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
		wait := max(c.options.RetryWait<<(attempt-1), f.after)
		waited += wait
		if !f.retry || attempt > *c.options.Retries || f.after > maxRetryAfter || waited > maxRetryTime {
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
