package server

import (
	"context"
	"io"
	"sync"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// writer is the one goroutine that writes to the stream. Frames of a session that has ended are
// dropped; the reader's own answers (HelloOK, Pong) never wait.
type writer struct {
	to     io.Writer
	frames chan outgoing

	mu    sync.Mutex
	first []byte // a HelloOK to send before anything else
	pong  bool
	wake  chan struct{}
}

type outgoing struct {
	session *session
	frame   []byte
}

func newWriter(to io.Writer) *writer {
	return &writer{to: to, frames: make(chan outgoing), wake: make(chan struct{}, 1)}
}

func (w *writer) run(ctx context.Context) {
	broken := false
	for {
		var b []byte
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			b = w.control()
		case o := <-w.frames:
			b = w.control() // a HelloOK goes before the new session's frames
			if !o.session.ended() {
				b = append(b, o.frame...)
			}
		}
		if len(b) > 0 && !broken {
			// After a failed write nobody reads us, but the requests still have to end.
			_, err := w.to.Write(b)
			broken = err != nil
		}
	}
}

// control takes the pending answers of the reader.
func (w *writer) control() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.first
	if w.pong {
		b = wire.Frame{Type: wire.Pong}.Append(b)
	}
	w.first, w.pong = nil, false
	return b
}

func (w *writer) hello(f wire.Frame) {
	w.mu.Lock()
	w.first, w.pong = f.Append(nil), false
	w.mu.Unlock()
	w.poke()
}

func (w *writer) ping() {
	w.mu.Lock()
	w.pong = true
	w.mu.Unlock()
	w.poke()
}

func (w *writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// send hands over one frame of a session.
func (w *writer) send(ctx context.Context, s *session, f wire.Frame) error {
	select {
	case w.frames <- outgoing{session: s, frame: f.Append(nil)}:
		return nil
	case <-s.done:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}
