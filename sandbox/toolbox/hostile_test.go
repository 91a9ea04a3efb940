package toolbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// hostile is a toolbox that shakes hands, reads whatever comes, and answers its first request with what
// attack writes, for as long as it is listened to.
func hostile(t *testing.T, attack func(w io.Writer, seal wire.Seal, stream uint32) error) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	requests := make(chan wire.Frame, 1)
	go func() {
		frames := wire.NewReader(theirs)
		for {
			f, err := frames.Next()
			if err != nil {
				return
			}
			switch f.Type {
			case wire.Hello:
				nonce, _, _ := wire.ParseHello(f.Payload)
				frames.Seal = wire.SealOf(nonce)
				go func() {
					defer theirs.Close()
					if _, err := theirs.Write(wire.Frame{Type: wire.HelloOK, Payload: wire.HelloPayload(nonce, wire.Version)}.Append(nil)); err != nil {
						return
					}
					select {
					case first := <-requests:
						_ = attack(theirs, wire.SealOf(nonce), first.Stream) // it ends when nobody listens any more
					case <-t.Context().Done():
						return
					}
					<-t.Context().Done()
				}()
			case wire.Request:
				select {
				case requests <- wire.Frame{Stream: f.Stream}:
				default:
				}
			default:
			}
		}
	}()
	t.Cleanup(func() { _ = ours.Close() })
	return ours
}

// forever writes the same frames again and again.
func forever(frames ...wire.Frame) func(io.Writer, wire.Seal, uint32) error {
	return func(w io.Writer, seal wire.Seal, stream uint32) error {
		var b []byte
		for _, f := range frames {
			f.Stream += stream
			b = seal.Append(b, f)
		}
		for {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
}

// result answers with a text in frames of the right size, and the end.
func result(text []byte) func(io.Writer, wire.Seal, uint32) error {
	return func(w io.Writer, seal wire.Seal, stream uint32) error {
		for len(text) > 0 {
			n := min(len(text), wire.MaxPayload)
			if _, err := w.Write(seal.Append(nil, wire.Frame{Type: wire.Result, Stream: stream, Payload: text[:n]})); err != nil {
				return err
			}
			text = text[n:]
		}
		_, err := w.Write(seal.Append(nil, wire.Frame{Type: wire.Finish, Stream: stream}))
		return err
	}
}

// drip writes bytes one by one, slower than anybody would.
func drip(of func(seal wire.Seal, stream uint32) []byte) func(io.Writer, wire.Seal, uint32) error {
	return func(w io.Writer, seal wire.Seal, stream uint32) error {
		for pause := time.NewTicker(5 * time.Millisecond); ; <-pause.C {
			for _, b := range of(seal, stream) {
				if _, err := w.Write([]byte{b}); err != nil {
					return err
				}
				<-pause.C
			}
		}
	}
}

// Whatever a toolbox sends: the call ends with its code by itself, and the worker has not grown by more
// than a fixed amount meanwhile. It runs alone, because it measures the process.
func TestClient_HostileToolboxCostsAFixedAmount(t *testing.T) { //nolint:paralleltest // see above
	const most = 24 << 20 // bytes
	full := make([]byte, wire.MaxPayload)
	window := bytes.Repeat([]byte{1}, wire.MaxPayload)
	list := func(ctx context.Context, c *toolbox.Client) error { _, err := c.List(ctx, "", 5000); return err }
	read := func(ctx context.Context, c *toolbox.Client) error { _, err := c.Read(ctx, "f", 0, 0); return err }
	snapshot := func(ctx context.Context, c *toolbox.Client) error { _, err := c.Snapshot(ctx, io.Discard); return err }
	search := func(ctx context.Context, c *toolbox.Client) error {
		_, err := c.Search(ctx, core.SearchQuery{Pattern: "x", Limit: 5000, Context: 5})
		return err
	}
	run := func(ctx context.Context, c *toolbox.Client) error {
		_, err := c.Run(ctx, core.Command{Shell: "true", Timeout: time.Millisecond})
		return err
	}
	for name, c := range map[string]struct {
		call   func(context.Context, *toolbox.Client) error
		attack func(io.Writer, wire.Seal, uint32) error
	}{
		"endless data":                  {snapshot, forever(wire.Frame{Type: wire.Data, Payload: full})},
		"endless data of a file":        {read, forever(wire.Frame{Type: wire.Data, Payload: full})},
		"endless data without content":  {snapshot, forever(wire.Frame{Type: wire.Data})},
		"endless result":                {list, forever(wire.Frame{Type: wire.Result, Payload: window})},
		"endless result, none in it":    {list, forever(wire.Frame{Type: wire.Result})},
		"endless result of a command":   {run, forever(wire.Frame{Type: wire.Result, Payload: window})},
		"endless credit":                {snapshot, forever(wire.Frame{Type: wire.Credit, Payload: wire.CreditPayload(1)})},
		"endless credit of nothing":     {snapshot, forever(wire.Frame{Type: wire.Credit, Payload: wire.CreditPayload(0)})},
		"endless pongs":                 {list, forever(wire.Frame{Type: wire.Pong})},
		"endless ends of other streams": {list, forever(wire.Frame{Type: wire.Finish, Stream: 1})},
		"endless connections":           {list, forever(wire.Frame{Type: wire.EgressConnect, Payload: full})},
		"endless echoes":                {list, forever(wire.Frame{Type: wire.HelloOK, Payload: make([]byte, wire.NonceSize+2)})},
		"endless zeros": {list, func(w io.Writer, _ wire.Seal, _ uint32) error {
			for {
				if _, err := w.Write(full); err != nil {
					return err
				}
			}
		}},
		"a frame of the largest length": {list, func(w io.Writer, _ wire.Seal, _ uint32) error {
			_, err := w.Write([]byte{0xF5, byte(wire.Data), 0, 0, 0, 1, 0xff, 0xff})
			return err
		}},
		"half a frame": {list, func(w io.Writer, seal wire.Seal, stream uint32) error {
			_, err := w.Write(seal.Append(nil, wire.Frame{Type: wire.Result, Stream: stream, Payload: full})[:9])
			return err
		}},
		"a slow frame": {list, drip(func(seal wire.Seal, stream uint32) []byte {
			return seal.Append(nil, wire.Frame{Type: wire.Result, Stream: stream, Payload: full})
		})},
		"slow data": {snapshot, drip(func(seal wire.Seal, stream uint32) []byte {
			return seal.Append(nil, wire.Frame{Type: wire.Data, Stream: stream, Payload: []byte("x")})
		})},
		"a command that never ends":   {run, func(io.Writer, wire.Seal, uint32) error { return nil }},
		"a list of empty entries":     {list, result(append([]byte(`{"entries":[{}`), bytes.Repeat([]byte(",{}"), wire.MaxResult/3-10)...))},
		"a search of empty files":     {search, result([]byte(`{"files":[` + string(bytes.Repeat([]byte("{},"), wire.MaxResult/3-10)) + `{}]}`))},
		"a search of empty lines":     {search, result([]byte(`{"files":[{"lines":[` + string(bytes.Repeat([]byte("{},"), wire.MaxResult/3-10)) + `{}]}]}`))},
		"nested ever deeper":          {list, result(bytes.Repeat([]byte("["), wire.MaxResult))},
		"nested in a field":           {list, result([]byte(`{"x":` + string(bytes.Repeat([]byte(`{"x":`), wire.MaxResult/8)) + `1`))},
		"quotes that hide the commas": {list, result([]byte(`{"entries":[` + string(bytes.Repeat([]byte(`{"path":"\\"},`), wire.MaxResult/16)) + `{}]}`))},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := toolbox.Dial(t.Context(), hostile(t, c.attack), toolbox.Options{
				Heartbeat: time.Hour, Answer: time.Second, Work: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			ended := make(chan error, 1)
			grown := growth(t, func() { ended <- c.call(t.Context(), client) }, ended)
			if err := <-ended; core.CodeOf(err) != "sandbox_lost" {
				t.Errorf("err = %v, want sandbox_lost", err)
			}
			<-client.Done()
			if grown > most {
				t.Errorf("the worker grew by %d KiB", grown>>10)
			}
		})
	}
}

// growth runs do in the background until it has put something into ended, and returns by how many
// bytes the heap was larger meanwhile than before.
func growth(t *testing.T, do func(), ended chan error) int64 {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // little but what is in use
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := int64(m.HeapAlloc), int64(0)
	go do()
	for tick := time.NewTicker(2 * time.Millisecond); len(ended) == 0; <-tick.C {
		runtime.ReadMemStats(&m)
		most = max(most, int64(m.HeapAlloc)-before)
	}
	return most
}

// Every result at once: the sum has a bound, not only each.
func TestClient_HoldsTwoResultsAtMost(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	sent := make(chan int, 1)
	go func() {
		frames := wire.NewReader(theirs)
		var streams []uint32
		for len(streams) < 4 {
			f, err := frames.Next()
			if err != nil {
				return
			}
			switch f.Type {
			case wire.Hello:
				nonce, _, _ := wire.ParseHello(f.Payload)
				frames.Seal = wire.SealOf(nonce)
				if _, err := theirs.Write(wire.Frame{Type: wire.HelloOK, Payload: wire.HelloPayload(nonce, wire.Version)}.Append(nil)); err != nil {
					return
				}
			case wire.Request:
				streams = append(streams, f.Stream)
			default:
			}
		}
		total := 0
		for size := wire.MaxResult; size >= wire.MaxPayload; size -= wire.MaxPayload {
			for _, stream := range streams {
				if _, err := theirs.Write(frames.Seal.Append(nil, wire.Frame{Type: wire.Result, Stream: stream, Payload: make([]byte, wire.MaxPayload)})); err != nil {
					sent <- total
					return
				}
				total += wire.MaxPayload
			}
		}
		sent <- total
	}()
	c, err := toolbox.Dial(t.Context(), ours, toolbox.Options{Heartbeat: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ended := make(chan error, 4)
	for range 4 {
		go func() { _, err := c.List(t.Context(), "", 5000); ended <- err }()
	}
	for range 4 {
		if err := <-ended; core.CodeOf(err) != "sandbox_lost" {
			t.Errorf("err = %v, want sandbox_lost", err)
		}
	}
	if got := <-sent; got > 2*wire.MaxResult+wire.MaxPayload {
		t.Errorf("took %d bytes of results", got)
	}
}

// A reply that comes when its request has ended belongs to nothing.
func TestClient_ReplyAfterTheEndEndsTheConnection(t *testing.T) {
	t.Parallel()
	for _, typ := range []wire.Type{wire.Data, wire.Result, wire.Finish, wire.Credit} {
		c := dialLiar(t, func(f wire.Frame) []byte {
			answer := finished(f.Stream, nil, wire.Stat{Path: wire.Name("f"), Kind: "file"})
			return wire.Frame{Type: typ, Stream: f.Stream, Payload: wire.CreditPayload(1)}.Append(answer)
		})
		if _, err := c.Stat(t.Context(), "f"); err != nil {
			t.Errorf("the request itself: %v", err)
		}
		<-c.Done()
		if _, err := c.Stat(t.Context(), "f"); core.CodeOf(err) != "sandbox_lost" {
			t.Errorf("type %d: err = %v, want sandbox_lost", typ, err)
		}
	}
}

// Two clients on one toolbox: the older is found out, and nothing that it sends is ever done.
func TestAttach_SecondClientFencesTheFirst(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	nonce := [wire.NonceSize]byte{1}
	stale := d.attach(t)
	if _, err := stale.Write(wire.Frame{Type: wire.Hello, Payload: wire.HelloPayload(nonce, wire.Version)}.Append(make([]byte, wire.Preamble))); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.NewReader(stale).AwaitEcho(nonce); err != nil {
		t.Fatal(err)
	}
	// The second attach, while the first one's input still goes to the same pipe.
	d.client(theirs)
	go func() { _, _ = io.Copy(d.in, theirs) }()
	c, err := toolbox.Dial(t.Context(), ours, toolbox.Options{Heartbeat: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	command, err := json.Marshal(wire.Call[wire.RunArgs]{Verb: wire.VerbRun, Args: wire.RunArgs{Shell: []byte("touch stale"), Timeout: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), core.Command{Shell: "echo mine"}); err != nil {
		t.Fatal(err)
	}
	if _, err := stale.Write(wire.SealOf(nonce).Append(nil, wire.Frame{Type: wire.Request, Stream: 9, Payload: command})); err != nil {
		t.Fatal(err)
	}
	<-c.Done() // it is told at once that somebody mixes in
	_ = stale.Close()
	next := d.dial(t, toolbox.Options{})
	if _, err := next.Stat(t.Context(), "stale"); core.CodeOf(err) != "not_found" {
		t.Errorf("the stale client's command was run: %v", err)
	}
	if err := c.Err(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the connection ended with %v", err)
	}
}

// What the daemon hands to every attached client ends the one that it is not meant for.
func TestClient_AnotherClientsEchoEndsIt(t *testing.T) {
	t.Parallel()
	c := dialLiar(t, func(wire.Frame) []byte {
		return wire.Frame{Type: wire.HelloOK, Payload: wire.HelloPayload([wire.NonceSize]byte{7}, wire.Version)}.Append(nil)
	})
	if err := c.Ping(t.Context()); core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("err = %v, want sandbox_lost", err)
	}
}
