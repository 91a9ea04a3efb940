package toolbox_test

import (
	"context"
	"io"
	"testing"
	"time"

	"agent-sandboxing/sandbox/toolbox"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// checked serves connections as the proxy does, and checks what it is told of them.
type checked struct{ t *testing.T }

func (checked) Ports() []uint16 { return []uint16{443} }

func (c checked) Connect(_ context.Context, name string, port uint16, conn toolbox.EgressConn) {
	if !wire.IsHostName(name) || port == 0 {
		c.t.Errorf("asked for %q, port %d", name, port)
	}
	if n, _ := io.Copy(conn, io.LimitReader(conn, 1<<20)); n%2 == 0 {
		_ = conn.CloseWrite()
	}
}

// FuzzEgress plays arbitrary frames about connections: no panic, no hang, and the end of the client ends
// whatever serves them.
func FuzzEgress(f *testing.F) {
	target := string(wire.EgressTarget("site.example.com", 443))
	f.Add([]byte{byte(wire.EgressConnect), 0, 0, byte(len(target))}, target, []byte{byte(wire.Data), 0, 0, 1, 'x', byte(wire.End), 0, 0, 0})
	f.Add([]byte{byte(wire.EgressConnect), 1, 0, 3}, "\x01\xbbx", []byte{byte(wire.Cancel), 1, 0, 0, byte(wire.Credit), 1, 0, 4, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, head []byte, target string, rest []byte) {
		text := append(append(head, target...), rest...)
		end := append(make([]byte, wire.MaxFrame), "noise"...)
		c, err := toolbox.Dial(t.Context(), liar(t, func(f wire.Frame) []byte {
			return append(append(finished(f.Stream, nil, struct{}{}), script(wire.FirstEgress, text)...), end...)
		}), toolbox.Options{Heartbeat: time.Hour, Answer: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.ServeEgress(t.Context(), checked{t}) // the noise may come before its answer is read
		<-c.Done()
		_ = c.Close()
	})
}
