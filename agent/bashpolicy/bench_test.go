package bashpolicy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"agent-sandboxing/core"
)

// BenchmarkCheck: judging and rendering every line of the corpus, against only parsing the same texts.
func BenchmarkCheck(b *testing.B) {
	var texts []string
	for _, line := range append(allowed(b), denied(b)...) {
		texts = append(texts, line.Command)
	}
	check := func() {
		for _, text := range texts {
			Check(core.PolicySeed, text)
		}
	}
	parse := func() {
		for _, text := range texts {
			_, _ = syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "") // some are no shell syntax
		}
	}
	check()
	parse()
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, timed(check))
		theirs = append(theirs, timed(parse))
	}
	own, base := median(ours), median(theirs)
	ratio := float64(own) / float64(base)
	b.ReportMetric(ratio, "ratio")
	each := time.Duration(len(texts))
	b.Logf("bench: policy check %v a command, syntax.Parse %v, ratio %.2f over %d commands", own/each, base/each, ratio, len(texts))
}

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
