package tools

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/agent"
)

// places finds old at every byte of text, one after the other.
func places(text, old string) []int {
	var found []int
	for i := range len(text) {
		if strings.HasPrefix(text[i:], old) {
			found = append(found, i)
		}
	}
	return found
}

// judge says what is wrong with a result, "" when nothing is.
func (t trial) judge(edits []replacement, got string, r *agent.Result) string {
	if !utf8.ValidString(t.file) {
		if r == nil || r.Code != "not_utf8" {
			return "a file that is not UTF-8 was edited"
		}
		return ""
	}
	if r != nil {
		return t.judgeRefusal(edits, r)
	}
	if got == t.file {
		return "the file is as it was, but the edit counts as made"
	}
	var ranges [][3]int // start, end, and which edit
	for i, e := range edits {
		found := places(t.text, e.old)
		switch {
		case len(found) == 0:
			return t.judgeLoose(got)
		case e.all:
			for last, j := 0, 0; j < len(found); j++ {
				if found[j] >= last {
					last = found[j] + len(e.old)
					ranges = append(ranges, [3]int{found[j], last, i})
				}
			}
		case len(found) > 1:
			return fmt.Sprintf("text that occurs %d times was edited", len(found))
		default:
			ranges = append(ranges, [3]int{found[0], found[0] + len(e.old), i})
		}
	}
	slices.SortFunc(ranges, func(a, b [3]int) int { return a[0] - b[0] })
	return t.judgeExact(edits, ranges, got)
}

// judgeExact demands the file's own bytes between the ranges, and in each range the new text, where a
// newline may be of either kind.
func (t trial) judgeExact(edits []replacement, ranges [][3]int, got string) string {
	from := 0
	for _, r := range append(ranges, [3]int{len(t.text), len(t.text), -1}) {
		kept := t.file[from:t.at[r[0]]]
		if !strings.HasPrefix(got, kept) {
			return fmt.Sprintf("%q before the match at %d is gone", kept, r[0])
		}
		got, from = got[len(kept):], t.at[r[1]]
		if r[2] < 0 {
			break
		}
		for _, b := range []byte(edits[r[2]].new) {
			if b == '\n' {
				got = strings.TrimPrefix(got, "\r")
			}
			if got == "" || got[0] != b {
				return fmt.Sprintf("the new text is not at %d", r[0])
			}
			got = got[1:]
		}
	}
	if got != "" {
		return fmt.Sprintf("%q follows the end", got)
	}
	return ""
}

// judgeLoose is for text that is not there literally: only the place that it was made from may change.
func (t trial) judgeLoose(got string) string {
	if t.want == "" && t.kind != "folded" {
		return "text that is not there was edited"
	}
	before, after := t.file[:t.at[t.start]], t.file[t.at[t.end]:]
	if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || len(got) < len(before)+len(after) {
		return "bytes outside the match changed"
	}
	middle := lf(got[len(before) : len(got)-len(after)])
	if foldLine(middle) != foldLine(t.want) {
		return fmt.Sprintf("the match became %q, want %q", middle, t.want)
	}
	return ""
}

func (t trial) judgeRefusal(edits []replacement, r *agent.Result) string {
	times := 0
	for _, e := range edits {
		times = max(times, len(places(t.text, e.old)))
	}
	ok := false
	switch r.Code {
	case "not_unique":
		ok = times != 1 || t.want != ""
	case "overlap":
		ok = len(edits) > 1
	case "no_change":
		ok = t.kind == "same" || edits[0].old == edits[0].new || len(edits) > 1 || t.want != ""
	case "not_found":
		ok = times == 0 && (t.text == "" || t.want != "")
	}
	if !ok || !strings.HasPrefix(r.Text, "Error (") {
		return fmt.Sprintf("refused with %q, and the text occurs %d times", r.Text, times)
	}
	return ""
}

// changedOutside counts the bytes before the first and after the last match that are not in got.
func (t trial) changedOutside(edits []replacement, got string) int {
	start, end := len(t.text), 0
	for _, e := range edits {
		found := places(t.text, e.old)
		if len(found) == 0 {
			start, end = t.start, t.end
			break
		}
		start = min(start, found[0])
		end = max(end, found[len(found)-1]+len(e.old))
	}
	before, after := t.file[:t.at[start]], t.file[t.at[end]:]
	return differing(before, got[:min(len(got), len(before))]) + differing(reversed(after), reversed(got[max(0, len(got)-len(after)):]))
}

func differing(want, got string) int {
	n := len(want) - len(got)
	for i := range got {
		if got[i] != want[i] {
			n++
		}
	}
	return n
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
