package store

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"agent-sandboxing/core"
)

const (
	listenProbe    = 30 * time.Second // silence after which the connection must prove that it lives
	listenTimeout  = 10 * time.Second // for connecting and for the proof
	reconnectFirst = 100 * time.Millisecond
	reconnectMost  = 5 * time.Second
)

// Handler is told what other processes, and this one, have committed. Its functions run one at a
// time on the listener's goroutine and must not block. All are required.
type Handler struct {
	Session func(core.SessionID)                 // new events
	Partial func(core.SessionID, core.MessageID) // the growing answer has grown
	Work    func()                               // a claim may succeed; also after each (re)connect
	Access  func(core.InstallationID)            // who may see what may have changed there
}

// Listen hears notifications on a connection of its own until ctx ends, and connects again when
// it is lost. What was sent meanwhile is lost: followers and workers also poll.
func (s *Store) Listen(ctx context.Context, handler Handler) error {
	wait := reconnectFirst
	for {
		connected, err := s.listenOnce(ctx, handler)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if connected {
			wait = reconnectFirst
		}
		s.log.WarnContext(ctx, "listen_connection_lost", slog.Any("error", err), slog.Duration("retry_in", wait))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, reconnectMost)
	}
}

func (s *Store) listenOnce(ctx context.Context, handler Handler) (connected bool, err error) {
	config := s.pool.Config().ConnConfig
	config.ConnectTimeout = listenTimeout
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(end) // it may be broken already
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channelSession+"; LISTEN "+channelPartial+"; LISTEN "+channelWork+"; LISTEN "+channelAccess); err != nil {
		return false, err
	}
	handler.Work()
	for {
		n, err := next(ctx, conn)
		if err != nil {
			return true, err
		}
		if n != nil {
			handler.dispatch(n)
		}
	}
}

// next waits for a notification; nil, nil means that there was none for a while and the connection lives.
func next(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	quiet, cancel := context.WithTimeout(ctx, listenProbe)
	defer cancel()
	n, err := conn.WaitForNotification(quiet)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return n, err
	}
	probe, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	return nil, conn.Ping(probe)
}

func (h Handler) dispatch(n *pgconn.Notification) {
	switch n.Channel {
	case channelSession:
		h.Session(core.SessionID(n.Payload))
	case channelPartial:
		if ids := strings.Fields(n.Payload); len(ids) == 3 {
			h.Partial(core.SessionID(ids[0]), core.MessageID(ids[1]))
		}
	case channelWork:
		h.Work()
	case channelAccess:
		if id, err := strconv.ParseInt(n.Payload, 10, 64); err == nil {
			h.Access(core.InstallationID(id))
		}
	}
}
