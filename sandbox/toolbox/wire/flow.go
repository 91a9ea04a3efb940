package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// ErrOverrun is a peer that sends more than it has credit for, or grants more than a window.
var ErrOverrun = errors.New("the peer broke the flow control")

// Inbox holds what has arrived on one direction of a stream and was not read yet, at most a window.
// One goroutine pushes and never waits; one reads.
type Inbox struct {
	window int
	mu     sync.Mutex
	buf    []byte
	room   int // credit that the peer still has
	owed   int // read, but not granted again yet
	err    error
	ready  chan struct{}
}

// NewInbox is empty and has granted the window, in bytes.
func NewInbox(window int) *Inbox {
	return &Inbox{window: window, room: window, ready: make(chan struct{}, 1)}
}

// Push appends p, or fails with ErrOverrun. A frame without data is one too: it costs the peer nothing.
func (b *Inbox) Push(p []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(p) == 0 || len(p) > b.room {
		return ErrOverrun
	}
	b.room -= len(p)
	if b.err != nil {
		return nil // late data of a stream that is over
	}
	b.buf = append(b.buf, p...)
	b.wake()
	return nil
}

// Close ends the data: reads return what is left and then err. The first call counts.
func (b *Inbox) Close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.wake()
}

// Read waits for data. grant is the credit to send to the peer now, usually 0.
func (b *Inbox) Read(ctx context.Context, p []byte) (n int, grant uint32, err error) {
	for {
		b.mu.Lock()
		if len(b.buf) > 0 {
			n = copy(p, b.buf)
			b.buf = b.buf[n:]
			if len(b.buf) == 0 {
				b.buf = nil
			}
			b.owed += n
			if b.owed >= b.window/4 {
				grant = uint32(b.owed)
				b.room += b.owed
				b.owed = 0
			}
			b.mu.Unlock()
			return n, grant, nil
		}
		err = b.err
		b.mu.Unlock()
		if err != nil {
			return 0, 0, err
		}
		select {
		case <-b.ready:
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
}

func (b *Inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Allowance is the credit that the peer has granted for one direction of a stream. One goroutine
// grants and never waits; one takes.
type Allowance struct {
	window int
	mu     sync.Mutex
	credit int
	closed error
	ready  chan struct{}
}

// NewAllowance begins with the window, in bytes.
func NewAllowance(window int) *Allowance {
	return &Allowance{window: window, credit: window, ready: make(chan struct{}, 1)}
}

// Grant adds the credit of a Credit frame's payload.
func (a *Allowance) Grant(payload []byte) error {
	if len(payload) != 4 {
		return ErrCorrupt
	}
	n := binary.BigEndian.Uint32(payload)
	a.mu.Lock()
	defer a.mu.Unlock()
	if n == 0 || int64(n) > int64(a.window) || a.credit+int(n) > a.window {
		return ErrOverrun
	}
	a.credit += int(n)
	a.wake()
	return nil
}

// Close makes every Take fail with err.
func (a *Allowance) Close(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed == nil {
		a.closed = err
	}
	a.wake()
}

// Take waits for credit and takes up to want bytes of it.
func (a *Allowance) Take(ctx context.Context, want int) (int, error) {
	for {
		a.mu.Lock()
		n, err := min(want, a.credit), a.closed
		if err == nil {
			a.credit -= n
		}
		a.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if n > 0 {
			return n, nil
		}
		select {
		case <-a.ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (a *Allowance) wake() {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// CreditPayload is what a Credit frame carries.
func CreditPayload(n uint32) []byte {
	return binary.BigEndian.AppendUint32(nil, n)
}

// Sender writes Data frames of one stream within an Allowance.
type Sender struct {
	Stream uint32
	Credit *Allowance
	Send   func(ctx context.Context, f Frame) error
}

// Copy sends everything that r gives. It does not send End.
func (s Sender) Copy(ctx context.Context, r io.Reader) error {
	buf := make([]byte, MaxPayload)
	for {
		n, err := r.Read(buf)
		if werr := s.Write(ctx, buf[:n]); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Write sends all of p.
func (s Sender) Write(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		n, err := s.Credit.Take(ctx, min(len(p), MaxPayload))
		if err != nil {
			return err
		}
		if err := s.Send(ctx, Frame{Type: Data, Stream: s.Stream, Payload: p[:n]}); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
