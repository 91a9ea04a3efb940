package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// cancelGrace is how long a cancelled request may take to end before the sandbox counts as lost.
const cancelGrace = 2 * time.Second

// request is one verb with what it sends and receives.
type request struct {
	verb   wire.Verb
	detail string    // the path or name that messages speak of
	body   io.Reader // sent as Data, nil for none
	sink   io.Writer // receives Data, nil when there must be none
}

// do performs r. result is what the toolbox answered, decoded but not yet checked. A cancelled ctx
// cancels the request in the sandbox too and waits, at most cancelGrace, until it has ended there:
// result then holds what it had to say, and the error is ctx's.
func do[A, R any](ctx context.Context, c *Client, r request, args A) (result R, err error) {
	payload, err := json.Marshal(wire.Call[A]{Verb: r.verb, Args: args})
	if err != nil {
		return result, fmt.Errorf("encode the toolbox request: %w", err)
	}
	if len(payload) > wire.MaxPayload {
		return result, tooLong(r.verb)
	}
	id, call, err := c.open()
	if err != nil {
		return result, err
	}
	defer c.abandon(id)
	if err := c.send(ctx, wire.Frame{Type: wire.Request, Stream: id, Payload: payload}); err != nil {
		return result, c.ended(ctx, err)
	}
	received, err := c.exchange(ctx, id, call, r)
	switch {
	case err == nil:
	case c.Err() != nil:
		return result, lost(c.Err())
	case ctx.Err() == nil: // the caller's reader or writer failed; the sandbox is well
		c.cancel(id, call)
		return result, err
	case !c.cancel(id, call):
		return result, lost(c.Err())
	default:
		if json.Unmarshal(call.result, &result) != nil {
			result = *new(R) // it was cut off before it could say anything
		}
		return result, fmt.Errorf("%s: %w", r.verb, ctx.Err())
	}
	if len(call.failure) > 0 {
		return result, failure(r, call.failure)
	}
	if err := json.Unmarshal(call.result, &result); err != nil || received && r.sink == nil {
		c.fail(errForged)
		return result, lost(errForged)
	}
	return result, nil
}

// exchange sends the body and receives the data until the request has finished. It waits for the
// body's reader, which has to end when ctx does.
func (c *Client) exchange(ctx context.Context, id uint32, call *call, r request) (received bool, err error) {
	sent := make(chan error, 1)
	sending, stop := context.WithCancel(ctx)
	go func() { sent <- c.sendBody(sending, id, call, r.body) }()
	received, err = c.receive(ctx, id, call, r.sink)
	stop()
	serr := <-sent
	if err == nil && len(call.failure) == 0 && serr != nil {
		err = serr
	}
	return received, err
}

func (c *Client) sendBody(ctx context.Context, id uint32, call *call, body io.Reader) error {
	if body == nil {
		return nil
	}
	data := wire.Sender{Stream: id, Credit: call.credit, Send: c.send}
	if err := data.Copy(ctx, body); err != nil {
		return err
	}
	return c.send(ctx, wire.Frame{Type: wire.End, Stream: id})
}

func (c *Client) receive(ctx context.Context, id uint32, call *call, sink io.Writer) (received bool, err error) {
	buf := make([]byte, 32<<10)
	for {
		n, grant, err := call.inbox.Read(ctx, buf)
		if errors.Is(err, io.EOF) {
			return received, nil
		}
		if err != nil {
			return received, err
		}
		received = true
		if sink != nil {
			if _, err := sink.Write(buf[:n]); err != nil {
				return received, err
			}
		}
		if grant > 0 {
			f := wire.Frame{Type: wire.Credit, Stream: id, Payload: wire.CreditPayload(grant)}
			if err := c.send(ctx, f); err != nil {
				return received, err
			}
		}
	}
}

// cancel ends a request in the sandbox and waits until it has ended there. false: it did not, and
// the connection is closed.
func (c *Client) cancel(id uint32, call *call) bool {
	ctx, done := context.WithTimeout(context.Background(), cancelGrace)
	defer done()
	if c.send(ctx, wire.Frame{Type: wire.Cancel, Stream: id}) != nil {
		c.fail(errSilent)
		return false
	}
	select {
	case <-call.finished:
		return true
	case <-c.done:
		return false
	case <-ctx.Done():
		c.fail(errSilent)
		return false
	}
}

// ended words the failure of a request that was not even sent.
func (c *Client) ended(ctx context.Context, err error) error {
	if cause := c.Err(); cause != nil {
		return lost(cause)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
