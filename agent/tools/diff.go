package tools

import (
	"fmt"
	"strings"

	"agent-sandboxing/core/redact"
)

const (
	diffContext = 3
	maxDiff     = 4 << 10 // bytes
)

// region is a run of whole lines that spans change: lines [from, to) of the old text become new.
type region struct {
	from, to int
	new      []string
}

// diffSpans shows sorted spans as a unified diff without file names, at most 4 KiB, and counts the
// lines. It needs no search, because it is known what was replaced.
func diffSpans(text string, spans []span) (diff string, added, removed int) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	regions := regionsOf(text, lines, spans)
	for _, r := range regions {
		added += len(r.new)
		removed += r.to - r.from
	}
	var b strings.Builder
	shift := 0
	for len(regions) > 0 {
		n := 1
		for n < len(regions) && regions[n].from-regions[n-1].to <= 2*diffContext {
			n++
		}
		shift += hunk(&b, lines, regions[:n], shift)
		regions = regions[n:]
	}
	diff = strings.TrimSuffix(b.String(), "\n")
	if len(diff) > maxDiff {
		diff = redact.Head(diff, maxDiff)
		diff = diff[:max(0, strings.LastIndexByte(diff, '\n'))] + "\n[the rest of the diff is not shown]"
	}
	return diff, added, removed
}

// regionsOf widens spans to whole lines of text and joins those that share one.
func regionsOf(text string, lines []string, spans []span) []region {
	starts := make([]int, len(lines)+1)
	for i, l := range lines {
		starts[i+1] = starts[i] + len(l)
	}
	var regions []region
	line := 0
	for i := 0; i < len(spans); {
		for line < len(lines) && starts[line+1] <= spans[i].start {
			line++
		}
		from, to, at := line, line, starts[line]
		var block strings.Builder
		take := func() {
			s := spans[i]
			block.WriteString(text[at:s.start])
			block.WriteString(s.new)
			for at = s.end; to < len(lines) && starts[to] < at; {
				to++
			}
			i++
		}
		take()
		// Take in lines until the block is whole: no span reaches out of it, and what it becomes ends
		// with a line ending or with the file.
		for {
			for i < len(spans) && spans[i].start < starts[to] {
				take()
			}
			block.WriteString(text[at:starts[to]])
			at = starts[to]
			if to == len(lines) || block.Len() == 0 || strings.HasSuffix(block.String(), "\n") {
				break
			}
			to++
		}
		regions = append(regions, trimRegion(lines, region{from: from, to: to, new: splitLines(block.String())}))
		line = to
	}
	return regions
}

// trimRegion leaves out equal lines at both ends.
func trimRegion(lines []string, r region) region {
	for r.from < r.to && len(r.new) > 0 && lines[r.from] == r.new[0] {
		r.from, r.new = r.from+1, r.new[1:]
	}
	for r.from < r.to && len(r.new) > 0 && lines[r.to-1] == r.new[len(r.new)-1] {
		r.to, r.new = r.to-1, r.new[:len(r.new)-1]
	}
	return r
}

// hunk writes neighbouring regions with their context and returns by how many lines what follows
// has moved. shift is how far this hunk has moved already.
func hunk(b *strings.Builder, lines []string, regions []region, shift int) int {
	first, last := regions[0], regions[len(regions)-1]
	from, to := max(0, first.from-diffContext), min(len(lines), last.to+diffContext)
	moved := 0
	for _, r := range regions {
		moved += len(r.new) - (r.to - r.from)
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", lineRange(from, to-from), lineRange(from+shift, to-from+moved))
	at := from
	for _, r := range regions {
		writeLines(b, " ", lines[at:r.from])
		writeLines(b, "-", lines[r.from:r.to])
		writeLines(b, "+", r.new)
		at = r.to
	}
	writeLines(b, " ", lines[at:to])
	return moved
}

// lineRange is how a hunk says which lines it covers; no lines count from the one before them.
func lineRange(from, count int) string {
	if count > 0 {
		from++
	}
	return fmt.Sprintf("%d,%d", from, count)
}

func writeLines(b *strings.Builder, sign string, lines []string) {
	for _, l := range lines {
		body, whole := strings.CutSuffix(l, "\n")
		b.WriteString(sign + body + "\n")
		if !whole {
			b.WriteString("\\ No newline at end of file\n")
		}
	}
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
