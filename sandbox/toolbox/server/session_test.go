package server

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// endless are commands that run until they are ended, which they say.
type endless struct{ began, ended chan time.Time }

func (e endless) Run(ctx context.Context, _ Shell, _ io.Writer) (Exit, error) {
	e.began <- time.Now()
	<-ctx.Done()
	e.ended <- time.Now()
	return Exit{Interrupted: true}, nil
}

func (endless) Program(context.Context, Program) (Exit, error) { return Exit{}, nil }
func (endless) KillAll() int                                   { return 0 }

// A client that dies may leave the stream open. What it ran must not go on for ever.
func TestSession_ASilentClientsCommandsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		files, _ := newFiles(t)
		commands := endless{began: make(chan time.Time, 1), ended: make(chan time.Time, 1)}
		ours, theirs := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- Serve(t.Context(), theirs, files, commands, nil) }()
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		var nonce [wire.NonceSize]byte
		call, err := json.Marshal(wire.Call[wire.RunArgs]{Verb: wire.VerbRun, Args: wire.RunArgs{Shell: []byte("x"), Timeout: time.Hour.Milliseconds()}})
		if err != nil {
			t.Fatal(err)
		}
		seal := wire.SealOf(nonce)
		send := func(b []byte) {
			if _, err := ours.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		send(wire.Frame{Type: wire.Hello, Payload: wire.HelloPayload(nonce, wire.Version)}.Append(nil))
		send(seal.Append(nil, wire.Frame{Type: wire.Request, Stream: 1, Payload: call}))
		began := <-commands.began
		for range 10 {
			<-time.After(30 * time.Second)
			send(seal.Append(nil, wire.Frame{Type: wire.Ping}))
		}
		if ran := (<-commands.ended).Sub(began); ran != 5*time.Minute+maxSilence {
			t.Errorf("it ran for %s", ran)
		}
		_ = ours.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
