package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

const (
	headLines = 400 // kept of an output, whatever their length
	tailLines = 1600
	maxPiece  = 2 << 10 // bytes of a cut line that are left out with the rest
)

// output is what a command wrote, as the model sees it: clean text, cut in the middle when it is too
// much.
type output struct {
	head, tail string
	cut        bool
	shown      int64 // newlines in head and tail as they came
}

// cutOutput cuts by lines what the sandbox has cut by bytes. Both pieces end at a character, and at a
// line where there is one: half an escape sequence would be shown as text.
func cutOutput(done core.CommandResult) output {
	head, tail := string(done.Head), string(done.Tail)
	if done.Omitted == 0 {
		whole := head + tail
		lines := splitLines(whole)
		if len(lines) <= headLines+tailLines {
			return output{head: redact.Clean(whole), shown: int64(strings.Count(whole, "\n"))}
		}
		head, tail = strings.Join(lines[:headLines], ""), strings.Join(lines[headLines:], "")
	} else {
		head, tail = wholeRunes(head, tail)
		if i := strings.LastIndexByte(head, '\n'); i >= 0 && len(head)-i <= maxPiece {
			head = head[:i+1]
		}
		if i := strings.IndexByte(tail, '\n'); i >= 0 && i < maxPiece {
			tail = tail[i+1:]
		}
	}
	if lines := splitLines(head); len(lines) > headLines {
		head = strings.Join(lines[:headLines], "")
	}
	if lines := splitLines(tail); len(lines) > tailLines {
		tail = strings.Join(lines[len(lines)-tailLines:], "")
	}
	return output{
		head: redact.Clean(head), tail: redact.Clean(tail), cut: true,
		shown: int64(strings.Count(head, "\n") + strings.Count(tail, "\n")),
	}
}

// wholeRunes drops a character that the cut has split from the end of head and the beginning of tail.
func wholeRunes(head, tail string) (string, string) {
	for n := 1; n < utf8.UTFMax && n <= len(head); n++ {
		if b := head[len(head)-n]; utf8.RuneStart(b) {
			if !utf8.FullRuneInString(head[len(head)-n:]) {
				head = head[:len(head)-n]
			}
			break
		}
	}
	for n := 0; n < utf8.UTFMax-1 && tail != "" && !utf8.RuneStart(tail[0]); n++ {
		tail = tail[1:]
	}
	return head, tail
}

// note says how much is left out and where all of it is.
func (o output) note(done core.CommandResult, log string) string {
	left := redact.Size(done.Omitted)
	if lines := done.Lines - o.shown; lines > 0 {
		left = plural(int(lines), "line")
	}
	if log == "" {
		return fmt.Sprintf("[… %s omitted of %s. Narrow the output with head, tail or grep.]", left, redact.Size(done.Total))
	}
	return fmt.Sprintf("[… %s omitted. Full output (%s): %s — read it with offset/limit or grep it.]", left, redact.Size(done.Total), log)
}
