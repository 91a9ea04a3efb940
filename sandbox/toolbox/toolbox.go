// Package toolbox is the control plane's half of the toolbox: the client that speaks to the small
// program inside every sandbox over one byte stream, and the program itself, embedded.
//
// The other half is toolbox/server (what runs inside), with toolbox/wire between them. Everything
// that arrives is untrusted: this package bounds and checks each answer, words every message itself,
// and ends the connection when the other side breaks the protocol.
package toolbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// Options tune a connection; the zero value is right outside tests.
type Options struct {
	HelloTimeout time.Duration // until the toolbox has answered; 0 means 10 s
	WriteTimeout time.Duration // for each write to the stream; 0 means 10 s
	Heartbeat    time.Duration // a ping after so much silence, three unanswered end it; 0 means 5 s
	// Answer is how long any request may take, beside the time that a command is given; 0 means 60 s.
	// Work is what one that moves a whole work tree may take instead; 0 means 15 min.
	Answer, Work time.Duration
	Budget       Budget // of every command
	// OutOfMemory is asked when a command was killed and the toolbox cannot tell why: the memory limit, in
	// bytes, that the sandbox met within the last so long, 0 when it met none. Nil is never asked.
	OutOfMemory func(ctx context.Context, within time.Duration) (limit int64)
}

// Budget is what the workspace may hold; a command that lets it grow above that is ended. 0 is no bound.
type Budget struct {
	Bytes   int64
	Entries int64
	MinFree int64 // what the file system below it must have left, in bytes
}

func (o Options) withDefaults() Options {
	if o.HelloTimeout == 0 {
		o.HelloTimeout = 10 * time.Second
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 10 * time.Second
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 5 * time.Second
	}
	if o.Answer == 0 {
		o.Answer = time.Minute
	}
	if o.Work == 0 {
		o.Work = 15 * time.Minute
	}
	return o
}

// Client is one attach to one sandbox's toolbox. It is safe for concurrent use.
type Client struct {
	stream io.ReadWriteCloser
	opts   Options
	seal   wire.Seal
	out    chan []byte
	// programs is held (one token) by the request that runs programs. The toolbox serves them one
	// after the other; waiting here, none of them uses up its time.
	programs chan struct{}
	done     chan struct{} // closed with err set
	loops    sync.WaitGroup

	mu       sync.Mutex
	err      error
	calls    map[uint32]*call
	last     uint32 // newest stream number
	held     int    // bytes of results that have not finished
	pings    int    // unanswered
	received int64  // frames, for the heartbeat
	egress   egressStreams
}

var _ core.PlatformWorkspace = (*Client)(nil)

// Dial speaks the attach rules over stream and owns it from here on: it is closed by Close, and at
// once when Dial fails. Errors: sandbox_lost when the toolbox does not answer in time,
// toolbox_outdated when it speaks another version.
func Dial(ctx context.Context, stream io.ReadWriteCloser, opts Options) (*Client, error) {
	c := &Client{
		stream:   stream,
		opts:     opts.withDefaults(),
		out:      make(chan []byte),
		done:     make(chan struct{}),
		programs: make(chan struct{}, 1),
		calls:    map[uint32]*call{},
	}
	frames := wire.NewReader(stream)
	hello, cancel := context.WithTimeout(ctx, c.opts.HelloTimeout)
	defer cancel()
	// Only closing the stream ends a read or a write that hangs.
	stop := context.AfterFunc(hello, func() { _ = stream.Close() })
	version, err := handshake(stream, frames)
	if !stop() && err == nil {
		err = hello.Err()
	}
	if err != nil {
		_ = stream.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("attach to the toolbox: %w", ctx.Err())
		}
		return nil, lost(fmt.Errorf("attach to the toolbox: %w", err))
	}
	if version != wire.Version {
		_ = stream.Close()
		return nil, core.Fail(core.Unavailable, "toolbox_outdated",
			"The sandbox runs another version of the toolbox. It has to be made anew; the workspace is kept.")
	}
	c.seal = frames.Seal
	c.loops.Add(3)
	go c.readLoop(context.WithoutCancel(ctx), frames)
	go c.writeLoop()
	go c.heartbeat(context.WithoutCancel(ctx))
	return c, nil
}

func handshake(stream io.ReadWriter, frames *wire.Reader) (uint16, error) {
	var nonce [wire.NonceSize]byte
	_, _ = rand.Read(nonce[:]) // never fails
	hello := wire.Frame{Type: wire.Hello, Payload: wire.HelloPayload(nonce, wire.Version)}
	// The toolbox may be writing old output: reading must not wait until it has read the hello.
	written := make(chan error, 1)
	go func() {
		_, err := stream.Write(hello.Append(make([]byte, wire.Preamble)))
		written <- err
	}()
	version, err := frames.AwaitEcho(nonce)
	if err != nil {
		return 0, err // the caller closes the stream, which ends the write
	}
	return version, <-written
}

// Close ends the connection and what it was running. It waits for the client's goroutines.
func (c *Client) Close() error {
	c.fail(errClosed)
	c.loops.Wait()
	return nil
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Cut says that the connection ended because its stream did, and not because of what the toolbox sent
// or left out: what is at the other end may go on.
func (c *Client) Cut() bool {
	err := c.Err()
	for _, end := range []error{errGone, io.ErrUnexpectedEOF, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// Err says why the connection ended, nil while it stands.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
