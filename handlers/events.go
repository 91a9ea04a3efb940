package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/live"
)

// Bounds of one JSON list of events.
const (
	defaultEvents = 200
	maxEvents     = 1000
)

type eventsAnswer struct {
	Events       []eventAnswer `json:"events"`
	LastSequence int64         `json:"last_sequence"` // of the session, when it was read before the list
}

// Events is the session's log: a stream that goes on, or a list for who asks for JSON or with a browser.
func (h *Handlers) Events(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	after, err := cursorOf(c.Request())
	if err != nil {
		return err
	}
	if WantsStream(c.Request()) {
		return h.streamEvents(c, id, after)
	}
	limit, err := limitOf(c)
	if err != nil {
		return err
	}
	events, last, err := h.Chat.Events(c.Request().Context(), user(c), id, after, limit)
	if err != nil {
		return err
	}
	a := eventsAnswer{Events: make([]eventAnswer, 0, len(events)), LastSequence: last}
	for _, e := range events {
		a.Events = append(a.Events, eventJSON(e))
		a.LastSequence = max(a.LastSequence, e.Sequence)
	}
	noStore(c)
	return c.JSON(http.StatusOK, a)
}

func limitOf(c echo.Context) (int, error) {
	s := c.QueryParam("limit")
	if s == "" {
		return defaultEvents, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxEvents {
		return 0, core.Fail(core.BadRequest, "limit_invalid", "limit must be a whole number from 1 to 1000.")
	}
	return n, nil
}

// streamEvents sends each event of the log once and in order, as JSON.
func (h *Handlers) streamEvents(c echo.Context, id core.SessionID, after int64) error {
	session, _, err := h.Chat.Open(c.Request().Context(), user(c), id, "events_view")
	if err != nil {
		return err
	}
	return h.stream(c, session, after, func(_ context.Context, out *eventStream, b live.Batch) error {
		for _, e := range b.Events {
			data, err := json.Marshal(eventJSON(e))
			if err != nil {
				return err
			}
			out.add(e.Sequence, "", string(data))
		}
		return nil
	})
}
