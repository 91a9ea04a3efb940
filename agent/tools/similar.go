package tools

import (
	"path"
	"slices"
	"strings"

	"agent-sandboxing/core"
)

// similar picks at most three entries whose names are close to name, the closest first.
func similar(name string, entries []core.FileStat) []string {
	type candidate struct {
		name     string
		distance int
	}
	var close []candidate
	low := strings.ToLower(name)
	stem := strings.TrimSuffix(low, path.Ext(low))
	for _, e := range entries {
		base := path.Base(e.Path)
		other := strings.ToLower(base)
		d := distance(low, other)
		if stem != "" && strings.TrimSuffix(other, path.Ext(other)) == stem {
			d = min(d, 1)
		}
		if d <= max(1, len(low)/3) {
			close = append(close, candidate{base, d})
		}
	}
	slices.SortStableFunc(close, func(a, b candidate) int { return a.distance - b.distance })
	var names []string
	for _, c := range close[:min(3, len(close))] {
		names = append(names, c.name)
	}
	return names
}

// distance is how many single bytes have to be changed, added or removed to turn a into b.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
