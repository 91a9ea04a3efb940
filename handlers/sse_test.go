package handlers

import (
	"bufio"
	"net/http/httptest"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// parsed is one message as the HTML standard's event stream parser reads it.
type parsed struct{ id, event, data string }

// parseSSE is that parser: CR, LF and CRLF each end a line.
func parseSSE(stream string) (messages []parsed, cursor string) {
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	var m parsed
	var data []string
	sc := bufio.NewScanner(strings.NewReader(stream))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := sc.Text()
		if line == "" {
			if data != nil {
				m.data, m.id = strings.Join(data, "\n"), cursor
				messages = append(messages, m)
			}
			m, data = parsed{}, nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			m.event = value
		case "id":
			if !strings.Contains(value, "\x00") {
				cursor = value
			}
		}
	}
	return messages, cursor
}

func FuzzAppendSSE(f *testing.F) {
	for _, s := range []string{
		"", "plain", "a\rid: 999\r\r", "a\r\nid: 999\r\n\r\n", "x\n\nevent: restart\ndata: y", "\x00id: 1\x00\r",
		"<b>tool</b>\r\rretry: 1\r", "data: nested", "\u2028id: 5\u2029", strings.Repeat("\r", 50),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		wire := string(appendSSE(nil, 7, "", data)) + string(appendSSE(nil, 8, "ping", "8"))
		got, cursor := parseSSE(wire)
		if len(got) != 2 || cursor != "8" {
			t.Fatalf("%d messages, cursor %q from %q; want 2 and 8", len(got), cursor, wire)
		}
		want := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(data, "\r\n", "\n"), "\r", "\n"), "\x00", "")
		if got[0].data != want || got[0].id != "7" || got[0].event != "" {
			t.Errorf("message = %+v, want id 7, no event, data %q", got[0], want)
		}
		if got[1] != (parsed{id: "8", event: "ping", data: "8"}) {
			t.Errorf("second message = %+v", got[1])
		}
	})
}

func TestAppendSSE_PartialLeavesTheCursor(t *testing.T) {
	t.Parallel()
	wire := string(appendSSE(nil, 3, "", "event")) + string(appendSSE(nil, -1, "", "growing answer"))
	got, cursor := parseSSE(wire)
	if len(got) != 2 || cursor != "3" {
		t.Errorf("%d messages and cursor %q, want 2 and 3", len(got), cursor)
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		after, last string
		want        int64
		bad         bool
	}{
		{"", "", 0, false},
		{"5", "", 5, false},
		{"", "7", 7, false},
		{"5", "7", 7, false}, // the reconnect of a page that was loaded at 5
		{"9", "7", 9, false},
		{"9223372036854775807", "", 9223372036854775807, false},
		{"9223372036854775808", "", 0, true},
		{"-1", "", 0, true},
		{"+1", "", 0, true},
		{"1.5", "", 0, true},
		{"0x10", "", 0, true},
		{"", "abc", 0, true},
		{"3", "3 ", 0, true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		q := r.URL.Query()
		q.Set("after", tt.after)
		r.URL.RawQuery = q.Encode()
		r.Header.Set("Last-Event-ID", tt.last)
		got, err := cursorOf(r)
		if tt.bad {
			if core.KindOf(err) != core.BadRequest || core.CodeOf(err) != "cursor_invalid" {
				t.Errorf("after=%q Last-Event-ID=%q: err = %v, want cursor_invalid", tt.after, tt.last, err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("after=%q Last-Event-ID=%q: %d, %v; want %d", tt.after, tt.last, got, err, tt.want)
		}
	}
}
