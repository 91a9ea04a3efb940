package gittrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agent-sandboxing/core/mirror/gittrap"
)

// A corpus of traps that git steps over would prove nothing.
func TestTraps_PlainGitSpringsEveryOne(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, trap := range gittrap.All() {
		if seen[trap.Name] {
			t.Errorf("%s is there twice", trap.Name)
		}
		seen[trap.Name] = true
		t.Run(trap.Name, func(t *testing.T) {
			t.Parallel()
			home, repo, dir := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "traps")
			sh := func(text string) string {
				cmd := exec.CommandContext(t.Context(), "bash", "-c", text)
				cmd.Dir = repo
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "EMAIL=octo-dev@example.com"}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s\n%s", err, text, out)
				}
				return string(out)
			}
			sh(`git init -q -b main . && echo one > README.md && git add . && git commit -qm one && echo two > README.md && git commit -qam two`)
			sh(trap.Plant(dir))
			if sprung := canaries(t, dir); len(sprung) > 0 {
				t.Errorf("planting it sprang %v", sprung)
			}
			said := sh(trap.Spring(dir))
			if sprung := canaries(t, dir); len(sprung) == 0 {
				t.Errorf("nothing sprang; git said:\n%s", said)
			}
		})
	}
	t.Cleanup(func() {
		if !t.Failed() {
			t.Logf("git traps: %d planted, %d sprung by plain git", len(seen), len(seen))
		}
	})
}

func canaries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(gittrap.Sprung(dir), "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
