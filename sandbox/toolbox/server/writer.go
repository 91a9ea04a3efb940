package server

import (
	"context"
	"io"
	"sync"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// writer is the one goroutine that writes to the stream. Frames of a session that has ended are
// dropped; the reader's own answers (HelloOK, Pong, Broken) never wait.
type writer struct {
	to     io.Writer
	frames chan outgoing

	mu    sync.Mutex
	first []byte // a HelloOK to send before anything else
	last  []byte // what the session that it begins is answered then: a Pong, or that it is Broken
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
	b := append(w.first, w.last...)
	w.first, w.last = nil, nil
	return b
}

func (w *writer) hello(f wire.Frame) {
	w.mu.Lock()
	w.first, w.last = f.Append(nil), nil
	w.mu.Unlock()
	w.poke()
}

// answer sends one frame without content. Of several that wait, the newest counts: a Pong answers all
// Pings before it, and nothing follows Broken.
func (w *writer) answer(s *session, t wire.Type) {
	w.mu.Lock()
	w.last = s.seal.Append(nil, wire.Frame{Type: t})
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
	case w.frames <- outgoing{session: s, frame: s.seal.Append(nil, f)}:
		return nil
	case <-s.done:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}
