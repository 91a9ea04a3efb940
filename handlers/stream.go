package handlers

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/live"
)

// errStreamOver stops the follower of a stream that has said its last word.
var errStreamOver = errors.New("the stream has ended")

// frame puts a batch into the stream. It is called by the stream's goroutine alone.
type frame func(ctx context.Context, out *eventStream, b live.Batch) error

// stream holds one connection open: it relays what the follower hands out, pings, looks again
// whether the person may still be here, and ends with a word that the client understands. The
// answer is committed from the first byte, so failures end it and are logged, never returned.
func (h *Handlers) stream(c echo.Context, session core.ChatSession, after int64, write frame) error {
	out, err := openStream(c.Response(), after)
	if err != nil {
		return nil //nolint:nilerr // the client left before the first byte
	}
	if after > session.LastSequence {
		// A cursor of another log, after a restore of the database: the page must be read anew.
		out.add(-1, "reset", strconv.FormatInt(session.LastSequence, 10))
		_ = out.send() // the client is told, or it is gone
		return nil
	}
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	batches := make(chan live.Batch)
	follower := make(chan error, 1)
	go func() {
		defer close(batches)
		follower <- h.Hub.Follow(ctx, session.ID, after, func(b live.Batch) error {
			select {
			case batches <- b:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	err = h.relay(ctx, c, session.ID, out, batches, write)
	cancel(errStreamOver)
	if failed := <-follower; err == nil && !errors.Is(failed, errStreamOver) {
		err = failed
	}
	if err != nil && c.Request().Context().Err() == nil {
		h.Log.LogAttrs(ctx, slog.LevelInfo, "stream_ended",
			slog.String("session_id", string(session.ID)), slog.String("error", err.Error()))
	}
	return nil
}

// relay is the loop of one stream, until the client leaves, the follower ends or a last word is said.
func (h *Handlers) relay(ctx context.Context, c echo.Context, id core.SessionID, out *eventStream, batches <-chan live.Batch, write frame) error {
	times := h.Streams.orDefaults()
	ping, recheck := time.NewTicker(times.Ping), time.NewTicker(times.Recheck)
	defer ping.Stop()
	defer recheck.Stop()
	// Streams that began together must not all come back together.
	life := time.NewTimer(times.Lifetime + rand.N(times.Lifetime))
	defer life.Stop()
	for {
		select {
		case b, open := <-batches:
			if !open {
				return nil
			}
			if err := write(ctx, out, b); err != nil {
				return err
			}
		case <-ping.C:
			out.add(-1, "ping", strconv.FormatInt(out.last, 10))
		case <-recheck.C:
			if !h.mayStay(ctx, viewer(c), id) {
				out.add(-1, "auth", "")
				return out.send()
			}
		case <-h.Draining:
			out.add(-1, "restart", "")
			return out.send()
		case <-life.C:
			return nil
		}
		if err := out.send(); err != nil {
			return err
		}
		if out.over {
			return nil
		}
	}
}

// mayStay looks at login and access again. An answer that could not be had changes nothing.
func (h *Handlers) mayStay(ctx context.Context, v Viewer, id core.SessionID) bool {
	_, u, err := h.Chat.Login(ctx, v.Login)
	if err == nil {
		_, _, err = h.Chat.Open(ctx, u, id, "session_view")
	}
	return !isKind(err, core.Unauthenticated, core.Forbidden, core.NotFound)
}

// Stream is the live half of the session's page: each message replaces parts of it by what one
// snapshot of the records says, so that a message seen twice changes nothing.
func (h *Handlers) Stream(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	after, err := cursorOf(c.Request())
	if err != nil {
		return err
	}
	session, rights, err := h.Chat.Open(c.Request().Context(), user(c), id, "session_view")
	if err != nil {
		return err
	}
	f := &fragments{h: h, id: id, rights: rights, shown: after}
	return h.stream(c, session, after, f.write)
}
