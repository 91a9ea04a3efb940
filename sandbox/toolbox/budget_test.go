package toolbox_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

const testBudget = 32 << 20

func dialWithin(t *testing.T, b *box, budget toolbox.Budget) *toolbox.Client {
	t.Helper()
	c, err := toolbox.Dial(t.Context(), b, toolbox.Options{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestBudget_EndsACommandThatFillsTheWorkspace(t *testing.T) {
	t.Parallel()
	for name, shell := range map[string]string{
		"files":                `for i in $(seq 2000); do head -c 1000000 /dev/zero > f$i; sleep 0.01; done`,
		"one file":             `yes | head -c 3000000000 > big`,
		"the home folder":      `cd ../home && for i in $(seq 2000); do head -c 1000000 /dev/zero > f$i; sleep 0.01; done`,
		"in the background":    `(for i in $(seq 2000); do head -c 1000000 /dev/zero > f$i; sleep 0.01; done) & wait`,
		"allocated, unwritten": `for i in $(seq 2000); do fallocate -l 1000000 f$i; sleep 0.01; done`,
		"a file without name":  `exec 3>f; rm f; yes | head -c 3000000000 >&3`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBox(t)
			c := dialWithin(t, b, toolbox.Budget{Bytes: testBudget})
			res, err := c.Run(t.Context(), core.Command{Shell: shell})
			if err != nil || !res.OverQuota || res.TimedOut || res.HostFull {
				t.Fatalf("%+v, %v", res, err)
			}
			// It shrinks again by the means at hand.
			res, err = c.Run(t.Context(), core.Command{Shell: "rm -f f* big ../home/f* && echo fine > small && cat small"})
			if err != nil || res.Exit != 0 || res.OverQuota || string(res.Head) != "fine\n" {
				t.Errorf("after it: %+v, %v", res, err)
			}
		})
	}
}

func TestBudget_CountsFilesAsWellAsBytes(t *testing.T) {
	t.Parallel()
	c := dialWithin(t, startBox(t), toolbox.Budget{Entries: 2000})
	res, err := c.Run(t.Context(), core.Command{Shell: `for i in $(seq 100000); do : > f$i; done`})
	if err != nil || !res.OverQuota {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err = c.Run(t.Context(), core.Command{Shell: "find . -name 'f*' -delete; ls | wc -l"}); err != nil || res.OverQuota || string(res.Head) != "0\n" {
		t.Errorf("after it: %+v, %v", res, err)
	}
}

func TestBudget_HardLinksAndSparseFilesCostWhatTheyTake(t *testing.T) {
	t.Parallel()
	c := dialWithin(t, startBox(t), toolbox.Budget{Bytes: testBudget})
	res, err := c.Run(t.Context(), core.Command{Shell: `head -c 12000000 /dev/zero > f0; for i in $(seq 200); do ln f0 l$i; done; truncate -s 50G sparse; sleep 0.8; echo ended`})
	if err != nil || res.OverQuota || !strings.HasSuffix(string(res.Head), "ended\n") {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestBudget_EndsACommandThatTakesTheHostsLastSpace(t *testing.T) {
	t.Parallel()
	b := startBox(t)
	var fs unix.Statfs_t
	if err := unix.Statfs(b.workspace, &fs); err != nil {
		t.Fatal(err)
	}
	c := dialWithin(t, b, toolbox.Budget{MinFree: int64(fs.Bavail)*fs.Bsize + 1<<40}) // the host is as good as full
	res, err := c.Run(t.Context(), core.Command{Shell: "yes | head -c 3000000000 > big"})
	if err != nil || !res.HostFull || res.OverQuota {
		t.Errorf("%+v, %v", res, err)
	}
}
