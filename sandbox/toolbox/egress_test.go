package toolbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
	"agent-sandboxing/sandbox/toolbox/server"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// idle runs nothing.
type idle struct{}

func (idle) Run(context.Context, server.Shell, io.Writer) (server.Exit, error) {
	return server.Exit{}, nil
}

func (idle) Program(context.Context, server.Program) (server.Exit, error) { return server.Exit{}, nil }
func (idle) KillAll() int                                                 { return 0 }

// inside is a toolbox in this process with a network of its own; this test is its programs.
type inside struct {
	*daemon
	dns  string
	port uint16
}

func startInside(t *testing.T) inside {
	t.Helper()
	var in inside
	var network *server.Network
	for network == nil {
		free, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		in.dns, in.port = free.Addr().String(), uint16(free.Addr().(*net.TCPAddr).Port)
		if err := free.Close(); err != nil {
			t.Fatal(err)
		}
		network, err = server.OpenNetwork(t.Context(), in.dns)
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) { // another was quicker
			t.Fatal(err)
		}
	}
	files, err := server.OpenFiles(server.Layout{Workspace: t.TempDir(), Tmp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	stdin, toBox := io.Pipe()
	fromBox, stdout := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(context.Background(), standard{stdin, stdout}, files, idle{}, network)
	}()
	in.daemon = hold(&box{in: toBox, out: fromBox})
	t.Cleanup(func() {
		_ = toBox.Close()
		_ = fromBox.Close()
		if err := errors.Join(<-served, network.Close(), files.Close()); err != nil {
			t.Error(err)
		}
	})
	return in
}

// standard joins a program's input and output.
type standard struct {
	io.ReadCloser
	out io.WriteCloser
}

func (s standard) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s standard) Close() error                { return errors.Join(s.ReadCloser.Close(), s.out.Close()) }

// let attaches a client that serves connections with serve.
func (in inside) let(t *testing.T, serve func(name string, port uint16, conn toolbox.EgressConn)) *toolbox.Client {
	t.Helper()
	c := in.dial(t, toolbox.Options{})
	if err := c.ServeEgress(t.Context(), served{ports: []uint16{in.port}, serve: serve}); err != nil {
		t.Fatal(err)
	}
	return c
}

type served struct {
	ports []uint16
	serve func(name string, port uint16, conn toolbox.EgressConn)
}

func (s served) Ports() []uint16 { return s.ports }
func (s served) Connect(_ context.Context, name string, port uint16, conn toolbox.EgressConn) {
	s.serve(name, port, conn)
}

// lookup asks the sandbox's name server.
func (in inside) lookup(t *testing.T, name string) (string, error) {
	t.Helper()
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, in.dns)
	}}
	addrs, err := resolver.LookupNetIP(t.Context(), "ip4", name+".")
	if err != nil {
		return "", err
	}
	return addrs[0].String(), nil
}

// connect does what a program does.
func (in inside) connect(t *testing.T, name string) *net.TCPConn {
	t.Helper()
	addr, err := in.lookup(t, name)
	if err != nil {
		t.Fatal(err)
	}
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp4", net.JoinHostPort(addr, strconv.Itoa(int(in.port))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

func echo(_ string, _ uint16, conn toolbox.EgressConn) {
	_, _ = io.Copy(conn, conn)
	_ = conn.CloseWrite()
}

func TestEgress_CarriesAConnectionByItsName(t *testing.T) {
	t.Parallel()
	in := startInside(t)
	in.let(t, func(name string, port uint16, conn toolbox.EgressConn) {
		all, err := io.ReadAll(conn)
		if err == nil {
			_, err = conn.Write([]byte(name + " said " + string(all)))
		}
		if err == nil {
			err = conn.CloseWrite()
		}
		if err != nil || port != in.port {
			t.Errorf("port %d, %v", port, err)
		}
	})
	for _, name := range []string{"one.example.com", "two.example.com", "one.example.com", "ONE.Example.com"} {
		conn := in.connect(t, name)
		if _, err := conn.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if want := string(bytes.ToLower([]byte(name))) + " said hello"; err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

func TestEgress_LargeTransfersArriveWhole(t *testing.T) {
	t.Parallel()
	in := startInside(t)
	in.let(t, echo)
	conn := in.connect(t, "example.com")
	data := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // many windows
	var sending sync.WaitGroup
	sending.Go(func() {
		_, _ = conn.Write(data)
		_ = conn.CloseWrite()
	})
	got, err := io.ReadAll(conn)
	sending.Wait()
	if err != nil || sha256.Sum256(got) != sha256.Sum256(data) {
		t.Errorf("%d bytes of %d, %v", len(got), len(data), err)
	}
}

func TestEgress_AnEndIsAnEndAndAFailureAReset(t *testing.T) {
	t.Parallel()
	in := startInside(t)
	in.let(t, func(name string, _ uint16, conn toolbox.EgressConn) {
		_, _ = io.ReadFull(conn, make([]byte, 1))
		_, _ = conn.Write([]byte("part"))
		if name == "end.example.com" {
			_ = conn.CloseWrite()
		}
	})
	ask := func(name string) (string, error) {
		conn := in.connect(t, name)
		if _, err := conn.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		return string(got), err
	}
	if got, err := ask("end.example.com"); got != "part" || err != nil {
		t.Errorf("%q, %v, want part and the end", got, err)
	}
	if _, err := ask("failure.example.com"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("err = %v, want a reset", err)
	}
}

func TestEgress_ConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	in := startInside(t)
	release := make(chan struct{})
	in.let(t, func(_ string, _ uint16, conn toolbox.EgressConn) {
		_, _ = conn.Write([]byte("x"))
		<-release
	})
	var accepted, refused atomic.Int64
	var programs sync.WaitGroup
	for i := range wire.MaxEgress + 20 { // at once, to two names
		addr, err := in.lookup(t, strconv.Itoa(i%2)+".example.com")
		if err != nil {
			t.Fatal(err)
		}
		programs.Go(func() {
			conn, err := net.Dial("tcp4", net.JoinHostPort(addr, strconv.Itoa(int(in.port))))
			if err == nil {
				t.Cleanup(func() { _ = conn.Close() })
				_, err = conn.Read(make([]byte, 1))
			}
			if err == nil {
				accepted.Add(1)
			} else {
				refused.Add(1)
			}
		})
	}
	programs.Wait()
	if accepted.Load() != wire.MaxEgress || refused.Load() != 20 {
		t.Errorf("%d were carried and %d refused", accepted.Load(), refused.Load())
	}
	close(release)
}

func TestEgress_WithNobodyThereNothingIsHeld(t *testing.T) {
	t.Parallel()
	in := startInside(t)
	if _, err := in.lookup(t, "example.com"); err == nil {
		t.Error("a name had an address with no client")
	}
	c := in.let(t, echo)
	addr, err := in.lookup(t, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	held := in.connect(t, "example.com")
	if _, err := held.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(held, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	in.dial(t, toolbox.Options{}) // a client that lets nothing out
	if _, err := held.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the old client's connection: %v, want a reset", err)
	}
	late, err := net.Dial("tcp4", net.JoinHostPort(addr, strconv.Itoa(int(in.port))))
	if err == nil { // the listener was still on its way out
		defer late.Close()
		_, err = late.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a new one: %v, want it refused", err)
	}
	if _, err := in.lookup(t, "example.com"); err == nil {
		t.Error("a name had an address for a client that lets nothing out")
	}
	in.let(t, echo)
	conn := in.connect(t, "example.com")
	if _, err := conn.Write([]byte("y")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Errorf("the next client's connection: %v", err)
	}
}

func TestEgress_KillAllEndsConnections(t *testing.T) {
	t.Parallel()
	in := startInside(t)
	connected, ended := make(chan struct{}), make(chan error, 1)
	c := in.let(t, func(_ string, _ uint16, conn toolbox.EgressConn) {
		close(connected)
		_, err := io.Copy(io.Discard, conn)
		ended <- err
	})
	conn := in.connect(t, "example.com")
	<-connected
	if _, err := c.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the control plane's half saw an orderly end")
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the program's half: %v, want a reset", err)
	}
}

func TestEgress_AHandlerThatDoesNotReadStallsNothingElse(t *testing.T) {
	t.Parallel()
	in := startInside(t)
	release := make(chan struct{})
	c := in.let(t, func(string, uint16, toolbox.EgressConn) { <-release })
	conn := in.connect(t, "example.com")
	var flood sync.WaitGroup
	flood.Go(func() { _, _ = conn.Write(make([]byte, 64<<20)) }) // until the connection ends
	for range 20 {
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Stat(t.Context(), "."); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	flood.Wait()
}

func TestServeEgress_SaysWhenTheSandboxCannotListen(t *testing.T) {
	t.Parallel()
	c := dial(t, startBox(t)) // no PID 1, so it takes over nobody's name server
	err := c.ServeEgress(t.Context(), served{ports: []uint16{443}, serve: echo})
	if core.CodeOf(err) != "network_unavailable" {
		t.Errorf("err = %v, want network_unavailable", err)
	}
}

// A toolbox that lies about connections is ended, and never makes the client hold more than windows.
func TestClient_ForgedEgressEndsTheConnection(t *testing.T) {
	t.Parallel()
	const id = wire.FirstEgress + 1
	frame := func(typ wire.Type, stream uint32, payload []byte) []byte {
		return wire.Frame{Type: typ, Stream: stream, Payload: payload}.Append(nil)
	}
	open := frame(wire.EgressConnect, id, wire.EgressTarget("example.com", 443))
	var tooMany []byte
	for i := range uint32(wire.MaxEgress + 1) {
		tooMany = append(tooMany, frame(wire.EgressConnect, id+i, wire.EgressTarget("example.com", 443))...)
	}
	half := make([]byte, wire.UpWindow/2+1)
	for name, lie := range map[string][]byte{
		"no target":                frame(wire.EgressConnect, id, nil),
		"port zero":                frame(wire.EgressConnect, id, wire.EgressTarget("example.com", 0)),
		"no name":                  frame(wire.EgressConnect, id, wire.EgressTarget("", 443)),
		"a long name":              frame(wire.EgressConnect, id, wire.EgressTarget(string(bytes.Repeat([]byte("a."), 127))+"a", 443)),
		"an escape in the name":    frame(wire.EgressConnect, id, wire.EgressTarget("a\x1b[0m.com", 443)),
		"upper case":               frame(wire.EgressConnect, id, wire.EgressTarget("Example.com", 443)),
		"a number used twice":      append(bytes.Clone(open), open...),
		"a falling number":         append(bytes.Clone(open), frame(wire.EgressConnect, id-1, wire.EgressTarget("example.com", 443))...),
		"too many":                 tooMany,
		"a stream never opened":    frame(wire.Data, id, []byte("x")),
		"data beyond the window":   bytes.Join([][]byte{open, frame(wire.Data, id, half), frame(wire.Data, id, half)}, nil),
		"credit beyond the window": append(bytes.Clone(open), frame(wire.Credit, id, wire.CreditPayload(1))...),
		"a result":                 append(bytes.Clone(open), frame(wire.Result, id, []byte("{}"))...),
		"a close":                  append(bytes.Clone(open), frame(wire.EgressClose, id, nil)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dialLiar(t, func(f wire.Frame) []byte { return append(finished(f.Stream, nil, struct{}{}), lie...) })
			release := make(chan struct{})
			defer close(release)
			_ = c.ServeEgress(t.Context(), served{ports: []uint16{443}, serve: func(string, uint16, toolbox.EgressConn) { <-release }})
			<-c.Done()
		})
	}
	t.Run("before anything may be let out", func(t *testing.T) {
		t.Parallel()
		c := dialLiar(t, func(f wire.Frame) []byte { return append(finished(f.Stream, nil, wire.Stat{}), open...) })
		_, _ = c.Stat(t.Context(), "x")
		<-c.Done()
	})
}

func TestClient_TheEndOfTheSandboxEndsItsConnections(t *testing.T) {
	t.Parallel()
	open := wire.Frame{Type: wire.EgressConnect, Stream: wire.FirstEgress + 1, Payload: wire.EgressTarget("example.com", 443)}.Append(nil)
	c := dialLiar(t, func(f wire.Frame) []byte { return append(finished(f.Stream, nil, struct{}{}), open...) })
	connected, ended := make(chan struct{}), make(chan error, 1)
	if err := c.ServeEgress(t.Context(), served{ports: []uint16{443}, serve: func(_ string, _ uint16, conn toolbox.EgressConn) {
		close(connected)
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}}); err != nil {
		t.Fatal(err)
	}
	<-connected
	_ = c.Close() // waits for what serves them
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a read gave data that nobody sent")
		}
	default:
		t.Error("Close did not wait")
	}
}
