package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Benchmarks that print a line of their own. least is the share of the baseline's rate that they must
// reach, in percent; 0 is no budget.
var goBenchmarks = []struct {
	name, dir, benchmark, times string
	least                       float64
}{
	{"agent step", "./e2e/policy", "Step$", "30x", 0},
	{"event append", "./core/store", "Append$/sessions=1$", "20x", 50},
	{"event append at once", "./core/store", "Append$/sessions=8$", "20x", 50},
	{"policy check", "./agent/bashpolicy", "Check$", "200x", 0},
}

var (
	benchLine = regexp.MustCompile(`bench: (.*)`)
	percent   = regexp.MustCompile(`([\d.]+) %`)
)

func goParts() []part {
	var parts []part
	for _, b := range goBenchmarks {
		parts = append(parts, part{b.name, func(ctx context.Context, r *report) error {
			out, err := exec.CommandContext(ctx, "go", "test", "-v", "-run", "^$", "-bench", b.benchmark, "-benchtime", b.times, b.dir).CombinedOutput()
			lines := benchLine.FindAllStringSubmatch(string(out), -1)
			if err != nil || len(lines) == 0 {
				return fmt.Errorf("go test %s: %w\n%s", b.dir, err, out)
			}
			text := strings.TrimSpace(lines[len(lines)-1][1])
			if b.least == 0 {
				r.note("%s", text)
				return nil
			}
			reached := percent.FindStringSubmatch(text)
			if reached == nil {
				return fmt.Errorf("%s does not say how many %% it reached: %s", b.name, text)
			}
			share, err := strconv.ParseFloat(reached[1], 64)
			r.judge(share >= b.least, "%s", text)
			return err
		}})
	}
	return parts
}
