package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/core"
)

// writeTimeout ends a stream whose client has stopped reading; it resumes from the log.
const writeTimeout = 10 * time.Second

// appendSSE is the only place that frames a message. Framing is a security boundary: what is sent
// holds text from repositories, and a bare CR would end a line in every client. So line ends are
// normalised, NUL is dropped, and each line gets its own prefix. id < 0 sends no id line; event is
// a constant of ours, "" for an unnamed message.
func appendSSE(b []byte, id int64, event, data string) []byte {
	if id >= 0 {
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, id, 10)
		b = append(b, '\n')
	}
	if event != "" {
		b = append(b, "event: "...)
		b = append(b, event...)
		b = append(b, '\n')
	}
	for line := range strings.SplitSeq(oneLineEnd(data), "\n") {
		b = append(b, "data: "...)
		b = append(b, line...)
		b = append(b, '\n')
	}
	return append(b, '\n')
}

// oneLineEnd leaves LF as the only line end and drops NUL.
func oneLineEnd(s string) string {
	return lineEnds.Replace(s)
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "")

// eventStream is one open answer of type text/event-stream. It is used by one goroutine.
type eventStream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	buf  []byte
	last int64 // the newest sequence that was added, or that the client came with
	over bool  // nothing follows what was added
}

// openStream sends the headers and the first bytes at once, so that no proxy waits for them.
func openStream(w http.ResponseWriter, after int64) (*eventStream, error) {
	s := &eventStream{w: w, rc: http.NewResponseController(w), last: after}
	// The server's own deadlines are for ordinary answers.
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return s, s.flush([]byte(": ok\n\n"))
}

// add frames a message; send writes what was added.
func (s *eventStream) add(id int64, event, data string) {
	s.buf = appendSSE(s.buf, id, event, data)
	s.last = max(s.last, id)
}

func (s *eventStream) send() error {
	if len(s.buf) == 0 {
		return nil
	}
	err := s.flush(s.buf)
	if cap(s.buf) > 64<<10 {
		s.buf = nil // a large replay must not be held for the life of the stream
	}
	s.buf = s.buf[:0]
	return err
}

func (s *eventStream) flush(b []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}

// cursorOf is the sequence after which a stream continues: the larger of ?after= and
// Last-Event-ID, because a reconnect repeats the page's old address. Both must be whole numbers.
func cursorOf(r *http.Request) (int64, error) {
	after, err := sequence(r.URL.Query().Get("after"))
	if err != nil {
		return 0, err
	}
	last, err := sequence(r.Header.Get("Last-Event-ID"))
	if err != nil {
		return 0, err
	}
	return max(after, last), nil
}

func sequence(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, core.Fail(core.BadRequest, "cursor_invalid",
			"after and Last-Event-ID must be whole numbers, 0 or larger.")
	}
	return int64(n), nil
}
