package localpg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"agent-sandboxing/core"
)

// installed is one Postgres of this machine.
type installed struct {
	dir   string // of postgres and initdb
	major int
}

// places are where distributions keep the server's programs; PATH is looked at too.
func places() []string {
	var dirs []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		dirs = append(dirs, found...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	return dirs
}

// newest picks the highest version of dirs, or exactly major when it is not 0.
func newest(ctx context.Context, dirs []string, major int) (installed, error) {
	var best installed
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			continue
		}
		v, err := version(ctx, dir)
		if err != nil || major != 0 && v != major {
			continue
		}
		if v > best.major {
			best = installed{dir: dir, major: v}
		}
	}
	switch {
	case best.major != 0:
		return best, nil
	case major != 0:
		return best, core.Fail(core.Unavailable, "postgres_version", fmt.Sprintf("The data folder was made by Postgres %d, which is not installed. Run: apt-get install --no-install-recommends postgresql-%d", major, major))
	}
	return best, core.Fail(core.Unavailable, "postgres_missing", "Postgres is not installed. Run: apt-get install --no-install-recommends postgresql. Or set DATABASE_URL to a database of your own.")
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func version(ctx context.Context, dir string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("ask for the version: %w", err)
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("unknown version text %q", out)
	}
	return strconv.Atoi(string(m[1]))
}
