package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"agent-sandboxing/sandbox/toolbox"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// chunk is what is carried at once: a frame of the toolbox. Bytes.
const chunk = wire.MaxPayload

// carry connects the program with its target, sends head first, and copies both ways.
func (c *connection) carry(ctx context.Context, head []byte) {
	upstream, err := c.reach(ctx)
	if err != nil {
		return
	}
	defer upstream.Close()
	if _, err := upstream.Write(head); err != nil {
		return
	}
	relay(ctx, c.program, halfCloser(upstream))
}

// relay copies both ways until both sides have ended, one has failed, nothing has moved for idleWithin
// or ctx is done. The end of one direction is passed on; a failure closes both ends, so that nobody
// takes half for all.
func relay(ctx context.Context, a, b toolbox.EgressConn) {
	closeBoth := func() {
		_ = a.Close()
		_ = b.Close()
	}
	stop := context.AfterFunc(ctx, closeBoth)
	defer stop()
	idle := time.AfterFunc(idleWithin, closeBoth)
	defer idle.Stop()
	var both sync.WaitGroup
	one := func(to, from toolbox.EgressConn) {
		if pass(to, from, idle) != nil || to.CloseWrite() != nil {
			closeBoth()
		}
	}
	both.Go(func() { one(b, a) })
	both.Go(func() { one(a, b) })
	both.Wait()
}

// pass copies to the end of from.
func pass(to io.Writer, from io.Reader, idle *time.Timer) error {
	buf := make([]byte, chunk)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			idle.Reset(idleWithin)
			if _, werr := to.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// halfCloser gives a connection the end of one direction, as TCP has; what has none is closed.
func halfCloser(conn net.Conn) toolbox.EgressConn {
	if half, ok := conn.(toolbox.EgressConn); ok {
		return half
	}
	return whole{conn}
}

type whole struct{ net.Conn }

func (w whole) CloseWrite() error { return w.Close() }
