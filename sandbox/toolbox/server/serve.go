package server

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// Serve answers requests on stream until it ends or ctx does, then kills what still runs and closes
// the stream. It serves one client at a time: a Hello ends the previous client's requests. The end of
// the stream is no error. network may be nil: then nothing can be let out.
func Serve(ctx context.Context, stream io.ReadWriteCloser, files *Files, commands Commands, network *Network) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{files: files, commands: commands, network: network, out: newWriter(stream), programs: make(chan struct{}, 1)}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() }) // nothing else ends a read
	defer stop()
	var work sync.WaitGroup
	work.Go(func() { s.out.run(ctx) })
	err := s.readLoop(ctx, wire.NewReader(stream), &work)
	cancel()
	commands.KillAll()
	_ = stream.Close()
	work.Wait()
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrClosed} {
		if errors.Is(err, end) {
			return nil
		}
	}
	return err
}

type server struct {
	files    *Files
	commands Commands
	network  *Network
	out      *writer
	// programs is held (one token) by whatever runs programs: a tree is killed by killing everything.
	programs chan struct{}
	budget   budget // of who holds programs
}

func (s *server) readLoop(ctx context.Context, frames *wire.Reader, work *sync.WaitGroup) error {
	// Before the first Hello, and behind a client that broke the protocol, frames mean nothing.
	client, requests := s.newSession(ctx, work, 0)
	client.end()
	defer func() { client.end() }()
	for {
		f, err := frames.Next()
		switch {
		case errors.Is(err, wire.ErrCorrupt):
			// A client that died in the middle of a frame, or a second one that mixes in. What follows is
			// noise until the next client's preamble.
			client.broken()
			if err := frames.Resync(); err != nil {
				return err
			}
		case err != nil:
			return err
		case f.Type == wire.Hello:
			if nonce, _, ok := wire.ParseHello(f.Payload); ok {
				// The old client's requests end on their own; the new one's programs wait for them.
				client.end()
				frames.Seal = wire.SealOf(nonce)
				client, requests = s.newSession(ctx, work, frames.Seal)
				s.out.hello(wire.Frame{Type: wire.HelloOK, Payload: wire.HelloPayload(nonce, wire.Version)})
			}
		case !client.ended():
			client.alarm.Reset(maxSilence)
			if client.accept(requests, f) != nil {
				client.broken()
			}
		}
	}
}
