package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

var errProtocol = errors.New("the client broke the protocol")

// maxSilence is how long a client may say nothing. It sends a ping every 5 s, so that it is gone then,
// and its commands with it: what held the stream may have died without closing it.
const maxSilence = time.Minute

// session is one client's requests.
type session struct {
	server *server
	seal   wire.Seal
	done   <-chan struct{} // closed by end
	end    context.CancelFunc
	alarm  *time.Timer     // ends it after maxSilence
	work   *sync.WaitGroup // of Serve, which waits for every handler

	mu     sync.Mutex
	calls  map[uint32]*call
	egress *egress // nil until the client lets programs out
}

// newSession also returns the context of its requests.
func (s *server) newSession(ctx context.Context, work *sync.WaitGroup, seal wire.Seal) (*session, context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	alarm := time.AfterFunc(maxSilence, cancel)
	return &session{
		server: s,
		seal:   seal,
		done:   ctx.Done(),
		end: func() {
			alarm.Stop()
			cancel()
		},
		alarm: alarm,
		work:  work,
		calls: map[uint32]*call{},
	}, ctx
}

// broken ends it because of what the client sent, and says so: there may be one that waits for answers.
func (s *session) broken() {
	if !s.ended() {
		s.end()
		s.server.out.answer(s, wire.Broken)
	}
}

func (s *session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// call is one request that is being answered.
type call struct {
	session *session
	id      uint32
	inbox   *wire.Inbox
	credit  *wire.Allowance
	cancel  context.CancelFunc
}

// accept takes one frame and never waits. An error ends the session.
func (s *session) accept(ctx context.Context, f wire.Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Stream >= wire.FirstEgress {
		if s.egress == nil {
			return errProtocol
		}
		return s.egress.accept(f)
	}
	c := s.calls[f.Stream]
	switch f.Type {
	case wire.Ping:
		s.server.out.answer(s, wire.Pong)
		return nil
	case wire.Request:
		return s.start(ctx, f)
	case wire.Data, wire.End, wire.Cancel, wire.Credit:
		if c == nil {
			return nil // its request is over
		}
	case wire.Hello, wire.HelloOK, wire.Result, wire.Finish, wire.Pong, wire.Broken, wire.EgressConnect, wire.EgressClose:
		return errProtocol
	default:
		return errProtocol
	}
	switch f.Type {
	case wire.Data:
		return c.inbox.Push(f.Payload)
	case wire.End:
		c.inbox.Close(io.EOF)
	case wire.Credit:
		return c.credit.Grant(f.Payload)
	default: // Cancel
		c.cancel()
	}
	return nil
}

// letOut makes e the session's way out; false when it has one.
func (s *session) letOut(e *egress) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.egress != nil {
		return false
	}
	s.egress = e
	return true
}

// start begins a request; the caller holds mu.
func (s *session) start(ctx context.Context, f wire.Frame) error {
	var head wire.Call[json.RawMessage]
	if s.calls[f.Stream] != nil || len(s.calls) >= wire.MaxStreams || json.Unmarshal(f.Payload, &head) != nil {
		return errProtocol
	}
	callCtx, cancel := context.WithCancel(ctx)
	c := &call{session: s, id: f.Stream, inbox: wire.NewInbox(wire.Window), credit: wire.NewAllowance(wire.Window), cancel: cancel}
	s.calls[c.id] = c
	s.work.Go(func() {
		defer cancel()
		result, err := s.server.answer(callCtx, head, c)
		s.finish(ctx, c, result, err)
	})
	return nil
}

// finish sends the result and the last frame. It runs on the session's context, because a request
// that was cancelled has an answer too.
func (s *session) finish(ctx context.Context, c *call, result any, err error) {
	var failure []byte
	if err != nil {
		failure = encodeError(err)
	}
	if result != nil {
		text, jsonErr := json.Marshal(result)
		if jsonErr != nil || len(text) > wire.MaxResult {
			text, failure = nil, encodeError(wire.Fail(wire.Failed, "result"))
		}
		for len(text) > 0 {
			n := min(len(text), wire.MaxPayload)
			if s.send(ctx, wire.Frame{Type: wire.Result, Stream: c.id, Payload: text[:n]}) != nil {
				break
			}
			text = text[n:]
		}
	}
	s.mu.Lock()
	delete(s.calls, c.id)
	s.mu.Unlock()
	_ = s.send(ctx, wire.Frame{Type: wire.Finish, Stream: c.id, Payload: failure})
}

func (s *session) send(ctx context.Context, f wire.Frame) error {
	return s.server.out.send(ctx, s, f)
}

func encodeError(err error) []byte {
	var known *wire.Error
	switch {
	case errors.As(err, &known):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		known = wire.Fail(wire.Cancelled, "")
	default:
		known = wire.Fail(wire.Failed, "")
	}
	text, _ := json.Marshal(known) // two strings
	return text
}

// body is what the client sends with a request. Close ends a read that waits.
type body struct {
	io.Reader
	cancel context.CancelFunc
}

func (b body) Close() error {
	b.cancel()
	return nil
}

func (c *call) body(ctx context.Context) body {
	ctx, cancel := context.WithCancel(ctx)
	return body{cancel: cancel, Reader: readerFunc(func(p []byte) (int, error) {
		n, grant, err := c.inbox.Read(ctx, p)
		if grant > 0 {
			f := wire.Frame{Type: wire.Credit, Stream: c.id, Payload: wire.CreditPayload(grant)}
			if serr := c.session.send(ctx, f); serr != nil && err == nil {
				err = serr
			}
		}
		return n, err
	})}
}

// writer is where the request's data goes.
func (c *call) writer(ctx context.Context) io.Writer {
	data := wire.Sender{Stream: c.id, Credit: c.credit, Send: c.session.send}
	return writerFunc(func(p []byte) (int, error) {
		if err := data.Write(ctx, p); err != nil {
			return 0, err
		}
		return len(p), nil
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
