package toolbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// daemon holds a box's streams as a container runtime does: clients come and go, and the output of a
// time without a client is lost.
type daemon struct {
	*box
	mu      sync.Mutex
	current net.Conn
	pumping sync.WaitGroup // input of the current client
}

func startDaemon(t *testing.T) *daemon {
	t.Helper()
	return hold(startBox(t))
}

func hold(b *box) *daemon {
	d := &daemon{box: b}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := d.out.Read(buf)
			if err != nil {
				if conn := d.client(nil); conn != nil {
					_ = conn.Close()
				}
				return
			}
			d.mu.Lock()
			conn := d.current
			d.mu.Unlock()
			if conn != nil {
				_, _ = conn.Write(buf[:n])
			}
		}
	}()
	return d
}

// client replaces the attached client and returns the one before.
func (d *daemon) client(next net.Conn) net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.current
	d.current = next
	return before
}

// attach gives a new client's stream and detaches the one before. Closing it leaves the box as it is.
func (d *daemon) attach(t *testing.T) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	if before := d.client(theirs); before != nil {
		_ = before.Close()
	}
	d.pumping.Wait() // two clients' input must not mix
	d.pumping.Go(func() {
		_, _ = io.Copy(d.in, theirs)
		_ = theirs.Close()
	})
	t.Cleanup(func() { _ = ours.Close() })
	return ours
}

func (d *daemon) dial(t *testing.T, opts toolbox.Options) *toolbox.Client {
	t.Helper()
	c, err := toolbox.Dial(t.Context(), d.attach(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAttach_AfterHalfAFrame(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	frame := wire.Frame{Type: wire.Data, Stream: 7, Payload: make([]byte, wire.MaxPayload)}.Append(nil)
	for i := range frame {
		frame[i] |= 1 // no zeros in it that could end it early
	}
	for _, cut := range []int{1, 2, 5, 7, 8, 9, 100, len(frame) / 2, len(frame) - 1} {
		raw := d.attach(t)
		if _, err := raw.Write(frame[:cut]); err != nil {
			t.Fatal(err)
		}
		_ = raw.Close()
		c := d.dial(t, toolbox.Options{})
		if res, err := c.Run(t.Context(), core.Command{Shell: "echo ok"}); err != nil || string(res.Head) != "ok\n" {
			t.Errorf("cut at %d: %q, %v", cut, res.Head, err)
		}
		_ = c.Close()
	}
}

func TestAttach_EndsWhatThePreviousClientRan(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	first := d.dial(t, toolbox.Options{})
	ended := make(chan error, 1)
	go func() {
		_, err := first.Run(t.Context(), core.Command{Shell: "touch started; sleep 3600"})
		ended <- err
	}()
	for {
		if _, err := first.Stat(t.Context(), "started"); err == nil {
			break
		}
	}
	second := d.dial(t, toolbox.Options{})
	// It can only run when the first command has ended.
	res, err := second.Run(t.Context(), core.Command{Shell: "echo mine; pgrep -P $PPID sleep || true"})
	if err != nil || string(res.Head) != "mine\n" {
		t.Errorf("%q, %v", res.Head, err)
	}
	_ = first.Close()
	if err := <-ended; core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("the first client's command: %v", err)
	}
}

func TestAttach_AfterAClientThatDidNotRead(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	c := d.dial(t, toolbox.Options{})
	if _, err := c.Run(t.Context(), core.Command{Shell: "head -c 10000000 /dev/zero > zeros"}); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	raw := d.attach(t)
	nonce := [wire.NonceSize]byte{1}
	request := wire.Frame{Type: wire.Hello, Payload: wire.HelloPayload(nonce, wire.Version)}.Append(make([]byte, wire.Preamble))
	for id := range uint32(wire.MaxStreams) {
		text := `{"verb":"read","args":{"path":"emVyb3M=","limit":10000000}}`
		request = wire.SealOf(nonce).Append(request, wire.Frame{Type: wire.Request, Stream: id + 1, Payload: []byte(text)})
	}
	if _, err := raw.Write(request); err != nil {
		t.Fatal(err)
	}
	frames := wire.NewReader(raw)
	if _, err := frames.AwaitEcho(nonce); err != nil {
		t.Fatal(err)
	}
	// Without credit only a window of each stream comes.
	got := map[uint32]int{}
	for total := 0; total < wire.MaxStreams*wire.Window; {
		f, err := frames.Next()
		if err != nil || f.Type != wire.Data {
			t.Fatalf("frame type %d, %v", f.Type, err)
		}
		total += len(f.Payload)
		if got[f.Stream] += len(f.Payload); got[f.Stream] > wire.Window {
			t.Fatalf("stream %d got %d bytes without credit", f.Stream, got[f.Stream])
		}
	}
	c = d.dial(t, toolbox.Options{})
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestClient_SlowConsumerHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	c := d.dial(t, toolbox.Options{})
	f := newPack(t, 3<<20)
	if err := c.Checkout(t.Context(), f.spec, f.pack()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), core.Command{Shell: "head -c 5000000 /dev/urandom > noise"}); err != nil {
		t.Fatal(err)
	}
	slow := &gatedWriter{open: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := c.Checkpoint(t.Context(), slow, 64<<20)
		done <- err
	}()
	for range 50 {
		if _, err := c.Stat(t.Context(), "noise"); err != nil {
			t.Fatal(err)
		}
	}
	close(slow.open)
	if err := <-done; err != nil || slow.n < 5_000_000 {
		t.Errorf("%d bytes, %v", slow.n, err)
	}
}

// gatedWriter takes nothing until it is open.
type gatedWriter struct {
	open chan struct{}
	n    int
}

func (g *gatedWriter) Write(p []byte) (int, error) {
	<-g.open
	g.n += len(p)
	return len(p), nil
}

func TestClient_LostToolboxEndsEveryRequest(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	c := d.dial(t, toolbox.Options{})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), core.Command{Shell: "sleep 3600"})
		ended <- err
	}()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; core.CodeOf(err) != "sandbox_lost" || core.KindOf(err) != core.Unavailable {
		t.Errorf("running command: %v", err)
	}
	if err := c.Ping(t.Context()); core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("next request: %v", err)
	}
	<-c.Done()
}

// pause stops every thread of the daemon. The signal alone returns before they have stopped.
func (d *daemon) pause(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for running := true; running; {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", d.cmd.Process.Pid))
		if err != nil || len(threads) == 0 {
			t.Fatalf("no threads to pause: %v", err)
		}
		running = slices.ContainsFunc(threads, func(path string) bool {
			stat, err := os.ReadFile(path)
			return err == nil && !bytes.Contains(stat, []byte(") T "))
		})
	}
}

func TestClient_HungToolboxIsFound(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	c := d.dial(t, toolbox.Options{Heartbeat: 20 * time.Millisecond})
	d.pause(t)
	t.Cleanup(func() { _ = d.cmd.Process.Signal(syscall.SIGCONT) })
	if _, err := c.Read(t.Context(), "x", 0, 0); core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("err = %v, want sandbox_lost", err)
	}
}

func TestClient_CancelOfAHungToolboxIsBounded(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	c := d.dial(t, toolbox.Options{})
	d.pause(t)
	t.Cleanup(func() { _ = d.cmd.Process.Signal(syscall.SIGCONT) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := c.Run(ctx, core.Command{Shell: "true"})
	if core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("err = %v, want sandbox_lost", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestToolboxd_EndsWithItsInputAndLeavesNothing(t *testing.T) {
	t.Parallel()
	b := startBox(t)
	c := dial(t, b)
	go func() {
		_, _ = c.Run(t.Context(), core.Command{Shell: "touch started; setsid sleep 3600.77 & sleep 3600"})
	}()
	for {
		if _, err := c.Stat(t.Context(), "started"); err == nil {
			break
		}
	}
	_ = c.Close()
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
}
