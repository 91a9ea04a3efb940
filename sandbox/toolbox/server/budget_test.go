package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A workspace that is over its budget must not be filled further, and must be emptied by any means.
func TestBudget_OnlyGrowthEndsACommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, mib int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, mib<<20), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := &budget{dir: dir, bytes: 4 << 20}
	look := func() error {
		t.Helper()
		now, err := space(dir)
		if err != nil {
			t.Fatal(err)
		}
		b.began, b.latest, b.next = now, time.Time{}, time.Time{} // due now
		return b.look(t.Context())
	}
	write("a", 2)
	if err := look(); err != nil || b.last.bytes < 2<<20 || b.last.entries != 1 {
		t.Fatalf("within: %v, %+v", err, b.last)
	}
	write("b", 2)
	write("c", 2)
	if err := look(); !errors.Is(err, errOverBudget) {
		t.Errorf("grown above: %v, %+v", err, b.last)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	write("b", 3)
	if err := look(); err != nil {
		t.Errorf("above but less than before: %v, %+v", err, b.last)
	}
	write("d", 2)
	if err := look(); !errors.Is(err, errOverBudget) {
		t.Errorf("grown again: %v, %+v", err, b.last)
	}
}

func TestMeasure_EndsInTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := measure(t.Context(), dir, time.Now().Add(time.Minute)); got.entries != 3 {
		t.Errorf("counted %+v, want 3 folders", got)
	}
	if got := measure(t.Context(), dir, time.Now()); got.entries != 0 {
		t.Errorf("counted %+v after its time", got)
	}
}
