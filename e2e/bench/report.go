package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report is what a run prints.
type report struct {
	out    io.Writer
	within int
	over   []string
}

// judge prints a figure that has a budget.
func (r *report) judge(within bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if within {
		r.within++
	} else {
		r.over = append(r.over, text)
		text += " OVER"
	}
	fmt.Fprintln(r.out, "bench: "+text)
}

// note prints a figure that has none.
func (r *report) note(format string, args ...any) {
	fmt.Fprintln(r.out, "bench: "+fmt.Sprintf(format, args...))
}

func (r *report) end() {
	for _, text := range r.over {
		fmt.Fprintln(r.out, "bench: over budget: "+text)
	}
	fmt.Fprintf(r.out, "bench: %d of %d within budget\n", r.within, r.within+len(r.over))
}

func percentile(all []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)*p/100]
}

// ratio is a to b, as 1/n when a is much the smaller.
func ratio(a, b time.Duration) string {
	if a > 0 && 4*a < b {
		return fmt.Sprintf("1/%.0f", float64(b)/float64(a))
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// micros reads what a program printed: numbers of microseconds.
func micros(out string) ([]time.Duration, error) {
	var all []time.Duration
	for word := range strings.FieldsSeq(out) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, time.Duration(n)*time.Microsecond)
	}
	return all, nil
}

func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}
