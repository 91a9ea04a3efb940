package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

var (
	errClosed    = errors.New("the connection was closed")
	errSilent    = errors.New("the toolbox does not answer")
	errForged    = errors.New("the toolbox sent a frame that makes no sense")
	errFinished  = errors.New("the request has finished")
	errWriteHang = errors.New("the toolbox does not read")
	errBroken    = errors.New("the toolbox read something that was not sent to it")
	errGone      = errors.New("the stream ended")
	errLate      = errors.New("the toolbox did not answer in time")
)

// maxHeld bounds the results of all requests that have not finished. Bytes.
const maxHeld = 2 * wire.MaxResult

// call is one request that waits for its Finish.
type call struct {
	inbox    *wire.Inbox
	credit   *wire.Allowance
	room     int // bytes that result may still grow
	result   []byte
	finished chan struct{} // closed with result and failure set
	failure  []byte        // payload of Finish
}

// fail ends the connection; the first cause counts.
func (c *Client) fail(cause error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = cause
	calls := c.calls
	c.calls = nil
	for _, conn := range c.egress.open {
		conn.end(cause)
	}
	close(c.done)
	c.mu.Unlock()
	for _, call := range calls {
		call.inbox.Close(cause)
		call.credit.Close(cause)
	}
	_ = c.stream.Close()
}

// readLoop never waits for a consumer: what has no room ends the connection.
func (c *Client) readLoop(ctx context.Context, frames *wire.Reader) {
	defer c.loops.Done()
	for {
		f, err := frames.Next()
		if err == nil {
			err = c.accept(ctx, f)
		}
		if errors.Is(err, io.EOF) {
			err = errGone // EOF is how a request's data ends, when all is well
		}
		if err != nil {
			c.fail(fmt.Errorf("read from the toolbox: %w", err))
			return
		}
	}
}

func (c *Client) accept(ctx context.Context, f wire.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received++
	switch f.Type {
	case wire.Pong:
		if c.pings == 0 {
			return errForged
		}
		c.pings--
		return nil
	case wire.Broken:
		return errBroken
	default:
	}
	if f.Stream >= wire.FirstEgress {
		return c.acceptEgress(ctx, f)
	}
	call := c.calls[f.Stream]
	if call == nil {
		return errForged // never opened, or finished: nothing of it is late
	}
	switch f.Type {
	case wire.Data:
		return call.inbox.Push(f.Payload)
	case wire.Credit:
		return call.credit.Grant(f.Payload)
	case wire.Result:
		n := len(f.Payload)
		if n == 0 || n > call.room || n > maxHeld-c.held {
			return wire.ErrOverrun
		}
		call.room, c.held = call.room-n, c.held+n
		call.result = append(call.result, f.Payload...)
		return nil
	case wire.Finish:
		call.failure = append([]byte(nil), f.Payload...)
		c.held -= len(call.result)
		delete(c.calls, f.Stream)
		call.inbox.Close(io.EOF)
		call.credit.Close(errFinished)
		close(call.finished)
		return nil
	default:
		return errForged
	}
}

func (c *Client) writeLoop() {
	defer c.loops.Done()
	for {
		var b []byte
		select {
		case <-c.done:
			return
		case b = <-c.out:
		}
		// Not every stream has deadlines; closing ends a write on all of them.
		hang := time.AfterFunc(c.opts.WriteTimeout, func() { c.fail(errWriteHang) })
		_, err := c.stream.Write(b)
		hang.Stop()
		if err != nil {
			c.fail(fmt.Errorf("write to the toolbox: %w", err))
			return
		}
	}
}

// heartbeat finds a toolbox that has stopped, whatever is waiting for it.
func (c *Client) heartbeat(ctx context.Context) {
	defer c.loops.Done()
	tick := time.NewTicker(c.opts.Heartbeat)
	defer tick.Stop()
	var seen int64
	for silent := 0; ; silent++ {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		if c.received != seen {
			seen, silent = c.received, 0
		}
		c.pings++
		c.mu.Unlock()
		if silent >= 3 {
			c.fail(errSilent)
			return
		}
		if c.send(ctx, wire.Frame{Type: wire.Ping}) != nil {
			return
		}
	}
}

// send hands one frame to the writer.
func (c *Client) send(ctx context.Context, f wire.Frame) error {
	select {
	case c.out <- c.seal.Append(nil, f):
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open registers a new stream whose result has at most room bytes.
func (c *Client) open(room int) (uint32, *call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, lost(c.err)
	}
	if len(c.calls) >= wire.MaxStreams {
		return 0, nil, busy()
	}
	c.last++
	call := &call{inbox: wire.NewInbox(wire.Window), credit: wire.NewAllowance(wire.Window), room: room, finished: make(chan struct{})}
	c.calls[c.last] = call
	return c.last, call, nil
}

// abandon forgets a stream: one that has finished, was never sent, or whose connection has ended.
func (c *Client) abandon(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}
