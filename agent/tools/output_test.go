package tools

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// captured is what the sandbox gives of an output when it keeps so many bytes of both ends.
func captured(written string, head, tail int) core.CommandResult {
	done := core.CommandResult{Total: int64(len(written)), Lines: int64(strings.Count(written, "\n"))}
	if len(written) <= head+tail {
		head = min(head, len(written))
		tail = len(written) - head
	}
	done.Head, done.Tail = []byte(written[:head]), []byte(written[len(written)-tail:])
	done.Omitted = int64(len(written) - head - tail)
	return done
}

func TestCutOutput_KeepsBothEndsAndSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	var numbers strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&numbers, "%d\n", i)
	}
	const log = "/tmp/agent-out/17.log"
	tests := map[string]struct {
		written           string
		begins, ends, say string
	}{
		"many lines":       {numbers.String(), "0\n1\n", "\n99998\n99999\n", "[… 98,000 lines omitted. Full output (575.1 KiB): " + log + " — read it with offset/limit or grep it.]"},
		"one line":         {strings.Repeat("x", 1<<20), "xxx", "xxx", "[… 974.0 KiB omitted. Full output (1.0 MiB)"},
		"split characters": {strings.Repeat("错", 30_000), "错", "错", "KiB omitted"},
		"four bytes each":  {"ab" + strings.Repeat("🙂", 30_000) + "c", "ab🙂", "🙂c", "KiB omitted"},
		"progress": {
			"start\n" + strings.Repeat("\x1b[2K\rWorking 10%\rWorking 20%", 9_000) + "\nend\n",
			"start\n", "\nend\n", "omitted",
		},
		"colours at the cut": {strings.Repeat("\x1b[31mred\x1b[0m text here\n", 9_000), "red text here\n", "red text here\n", "lines omitted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := captured(test.written, 10<<10, 40<<10)
			out := cutOutput(done)
			if !out.cut || !strings.HasPrefix(out.head, test.begins) || !strings.HasSuffix(out.tail, test.ends) {
				t.Errorf("cut %t: begins %.40q, ends %q", out.cut, out.head, redact.Tail(out.tail, 40))
			}
			if note := out.note(done, log); !strings.Contains(note, test.say) {
				t.Errorf("the note is %q, want %q", note, test.say)
			}
			text := out.head + out.tail
			if strings.Contains(text, "\uFFFD") || strings.ContainsAny(text, "\x1b\r") || strings.Contains(text, "[2K") || strings.Contains(text, "[31m") {
				t.Errorf("the cut shows: %.60q … %q", out.head, redact.Tail(out.head, 60)+" | "+redact.Head(out.tail, 60))
			}
		})
	}
}

func TestCutOutput_ShowsTheLastStateOfALine(t *testing.T) {
	t.Parallel()
	out := cutOutput(captured("Work\rWorking 50%\rWorking 100%\n\x1b[?25l\x1b]0;title\a\x1b[31mred\x1b[0m\r\nend\n", 10<<10, 40<<10))
	if want := "Working 100%\nred\nend\n"; out.cut || out.head != want {
		t.Errorf("got %q, want %q", out.head, want)
	}
	if out := cutOutput(captured("a\x00b\n", 10, 10)); out.head != "a\uFFFDb\n" {
		t.Errorf("a NUL is not seen in %q", out.head)
	}
}

// Whatever a command writes and wherever it is cut: the text is valid, bounded, free of control
// characters, and what is left out and what is shown add up to all of it.
func FuzzCutOutput(f *testing.F) {
	f.Add("plain\ntext\n", 3, 4)
	f.Add("错误🙂\x1b[31mred\x1b[0m\r\n10%\r20%\r", 5, 9)
	f.Add(strings.Repeat("\n", 5000), 300, 4000)
	f.Add(strings.Repeat("line\xff\xfe\x00\n", 900), 1000, 3000)
	f.Fuzz(func(t *testing.T, written string, head, tail int) {
		head, tail = min(max(head, 0), 10<<10), min(max(tail, 1), 40<<10)
		done := captured(written, head, tail)
		out := cutOutput(done)
		text := out.head + out.tail
		if !utf8.ValidString(text) || redact.Clean(text) != text {
			t.Fatalf("%q is not clean", text)
		}
		if len(text) > 3*(head+tail) {
			t.Fatalf("%d bytes were kept as %d", head+tail, len(text))
		}
		if lines := len(splitLines(out.head)) + len(splitLines(out.tail)); lines > headLines+tailLines {
			t.Fatalf("%d lines", lines)
		}
		if out.shown > done.Lines || !out.cut && out.shown != done.Lines {
			t.Fatalf("%d of %d lines shown, cut %t", out.shown, done.Lines, out.cut)
		}
		if redact.Clean(written) == written && (!strings.HasPrefix(written, out.head) || !strings.HasSuffix(written, out.tail)) {
			t.Fatalf("%q and %q are not the ends of %q", out.head, out.tail, written)
		}
		if note := out.note(done, ""); out.cut && !strings.Contains(note, " omitted") {
			t.Fatalf("the note is %q", note)
		}
	})
}
