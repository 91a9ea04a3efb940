package toolbox

import (
	"cmp"
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
	// within is how long it may take; 0 means Options.Answer.
	within time.Duration
	// shape bounds the result; the zero value means that of one small object.
	shape shape
	// program says that it runs programs, which the toolbox does one request after the other.
	program bool
}

// do performs r. result is what the toolbox answered, decoded but not yet checked. A cancelled ctx
// cancels the request in the sandbox too and waits, at most cancelGrace, until it has ended there:
// result then holds what it had to say, and the error is ctx's. One that takes longer than it may ends
// the connection.
func do[A, R any](ctx context.Context, c *Client, r request, args A) (result R, err error) {
	payload, err := json.Marshal(wire.Call[A]{Verb: r.verb, Args: args})
	if err != nil {
		return result, fmt.Errorf("encode the toolbox request: %w", err)
	}
	if len(payload) > wire.MaxPayload {
		return result, tooLong(r.verb)
	}
	if r.program {
		if err := c.lockPrograms(ctx); err != nil {
			return result, c.ended(ctx, err)
		}
		defer func() { <-c.programs }()
	}
	r.shape = cmp.Or(r.shape, shape{bytes: 64 << 10, values: 64})
	id, call, err := c.open(r.shape.bytes)
	if err != nil {
		return result, err
	}
	defer c.abandon(id)
	late := time.AfterFunc(cmp.Or(r.within, c.opts.Answer), func() { c.fail(errLate) })
	defer late.Stop()
	if err := c.send(ctx, wire.Frame{Type: wire.Request, Stream: id, Payload: payload}); err != nil {
		return result, c.ended(ctx, err)
	}
	err = c.exchange(ctx, id, call, r)
	switch {
	case err == nil:
	case errors.Is(err, errForged):
		return result, c.forged()
	case c.Err() != nil:
		return result, lost(c.Err())
	case ctx.Err() == nil: // the caller's reader or writer failed; the sandbox is well
		c.cancel(ctx, id, call)
		return result, err
	case !c.cancel(ctx, id, call):
		return result, lost(c.Err())
	default:
		if !r.shape.decode(call.result, &result) {
			result = *new(R) // it was cut off before it could say anything
		}
		return result, fmt.Errorf("%s: %w", r.verb, ctx.Err())
	}
	if len(call.failure) > 0 {
		return result, failure(r, call.failure)
	}
	if !r.shape.decode(call.result, &result) {
		return result, c.forged()
	}
	return result, nil
}

// lockPrograms waits until no other request of this client runs programs.
func (c *Client) lockPrograms(ctx context.Context) error {
	select {
	case c.programs <- struct{}{}:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// exchange sends the body and receives the data until the request has finished, or the body cannot be
// read. It waits for the body's reader, which has to end when ctx does.
func (c *Client) exchange(ctx context.Context, id uint32, call *call, r request) error {
	sending, stop := context.WithCancel(ctx)
	receiving, abort := context.WithCancel(ctx)
	defer abort()
	sent := make(chan error, 1)
	go func() {
		err := c.sendBody(sending, id, call, r.body)
		if err != nil && !errors.Is(err, errFinished) {
			abort()
		}
		sent <- err
	}()
	err := c.receive(receiving, id, call, r.sink)
	stop()
	unsent := <-sent
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return unsent
	}
	return err // a request that has finished needed no more of the body
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

// receive passes the data on. Data that the request cannot have is forged.
func (c *Client) receive(ctx context.Context, id uint32, call *call, sink io.Writer) error {
	buf := make([]byte, 32<<10)
	for {
		n, grant, err := call.inbox.Read(ctx, buf)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case sink == nil:
			return errForged
		}
		if _, err := sink.Write(buf[:n]); err != nil {
			return err
		}
		if grant > 0 {
			f := wire.Frame{Type: wire.Credit, Stream: id, Payload: wire.CreditPayload(grant)}
			if err := c.send(ctx, f); err != nil {
				return err
			}
		}
	}
}

// cancel ends a request in the sandbox and waits until it has ended there. false: it did not, and
// the connection is closed.
func (c *Client) cancel(ctx context.Context, id uint32, call *call) bool {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelGrace)
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
