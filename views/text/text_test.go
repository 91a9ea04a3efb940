package text_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/views/text"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, in string
		want     []text.Piece
	}{
		{"plain", "a\tb\n", []text.Piece{{Text: "a\tb\n"}}},
		{"empty", "", nil},
		{"bidi", "a\u202eb", []text.Piece{{Text: "a"}, {Code: "U+202E", Name: "RIGHT-TO-LEFT OVERRIDE"}, {Text: "b"}}},
		{"control", "\x1b[31m", []text.Piece{{Code: "U+001B", Name: "CONTROL CHARACTER"}, {Text: "[31m"}}},
		{"tag", "\U000E0041", []text.Piece{{Code: "U+E0041", Name: "TAG CHARACTER"}}},
		{"broken", "a\xffb", []text.Piece{{Text: "a"}, {Code: "0xFF", Name: "not UTF-8"}, {Text: "b"}}},
		{"other scripts stay", "привет 你好 שלום é", []text.Piece{{Text: "привет 你好 שלום é"}}},
		{"a replacement character is a character", "\uFFFD", []text.Piece{{Text: "\uFFFD"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, text.Visible(test.in)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "a", "\u202e", "\xff", "\x00\x1b", "\U000E0041x", "\u200d👩"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, p := range text.Visible(in) {
			if (p.Text == "") == (p.Code == "") {
				t.Fatalf("a piece must be text or a code: %+v", p)
			}
			if !utf8.ValidString(p.Text) || text.HiddenCount(p.Text) != 0 {
				t.Fatalf("hidden characters are left in %q", p.Text)
			}
		}
	})
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, in, want string }{
		{"plain", "a\n\tb\n", "a\n\tb\n"},
		{"colours", "\x1b[31mred\x1b[0m", "red"},
		{"a link of a terminal", "\x1b]8;;https://evil.example\x07text\x1b]8;;\x07", "text"},
		{"a write to the clipboard", "a\x1b]52;c;ZXZpbA==\x07b", "ab"},
		{"a line drawn over", "10 %\r50 %\r100 %\nnext", "100 %\nnext"},
		{"line ends of another system", "a\r\nb\r\n", "a\nb\n"},
		{"a return at the end keeps the line", "done\r\nlast\r", "done\nlast"},
		{"bell and null", "a\x07\x00b", "ab"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := text.Terminal(test.in); got != test.want {
				t.Errorf("Terminal(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func FuzzTerminal(f *testing.F) {
	for _, s := range []string{"", "\x1b[31mred", "a\rb", "\x9b1mx", "\x1b]8;;x\x07", "\r\r\n\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if out := text.Terminal(in); strings.ContainsAny(out, "\x1b\r\x00\x07") {
			t.Fatalf("control characters are left in %q", out)
		}
	})
}

func TestElapsed(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second:                   "0 s",
		0:                              "0 ms",
		44 * time.Millisecond:          "44 ms",
		449 * time.Millisecond:         "0.4 s",
		3200 * time.Millisecond:        "3.2 s",
		12 * time.Second:               "12 s",
		192 * time.Second:              "3m 12s",
		time.Hour + 4*time.Minute:      "1h 04m",
		59*time.Second + 999999999 - 1: "59 s",
	} {
		if got := text.Elapsed(d); got != want {
			t.Errorf("Elapsed(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 2, 14, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{
		"":           {},
		"just now":   now.Add(10 * time.Second),
		"5 min ago":  now.Add(-5 * time.Minute),
		"3 h ago":    now.Add(-3 * time.Hour),
		"yesterday":  now.Add(-30 * time.Hour),
		"4 days ago": now.Add(-4 * 24 * time.Hour),
		"2 Feb":      time.Date(2026, 2, 2, 1, 0, 0, 0, time.FixedZone("", 3600)),
		"1 Dec 2025": time.Date(2025, 12, 1, 12, 0, 0, 0, time.UTC),
	} {
		if got := text.Ago(at, now); got != want {
			t.Errorf("Ago(%v) = %q, want %q", at, got, want)
		}
	}
}
