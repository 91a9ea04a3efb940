package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A suite that goes through a report fails with its tests, whatever the report filters.
func TestReport_FailsWithItsTests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ said, exit, want string }{
		{"--- PASS: TestA (0.00s)\n    a_test.go:7: attacks: 48 run, 2 need memory\nok  \tx\t0.1s", "0", "x: attacks: 48 run, 2 need memory\nx: 1 passed, 0 failed, 0 skipped\n"},
		{"--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL", "1", "x: 1 passed, 1 failed, 0 skipped\n"},
		{"--- PASS: TestA (0.00s)", "1", "x: 1 passed, 0 failed, 0 skipped\n"}, // nothing that the filter lets through
		{"./a.go:1:1: does not compile\nFAIL\tx [build failed]", "2", "x: 0 passed, 0 failed, 0 skipped\n"},
	} {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\ncat <<'E'\n"+test.said+"\nE\nexit "+test.exit+"\n"), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "scripts/test-report", "x", "./...")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.Output()
		if (err != nil) != (test.exit != "0") || !strings.HasSuffix(string(out), test.want) {
			t.Errorf("%q: %v\n%s", test.said, err, out)
		}
	}
}
