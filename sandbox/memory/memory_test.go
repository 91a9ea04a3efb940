package memory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/memory"
)

func setup(t *testing.T, files map[string]string) *memory.Workspace {
	t.Helper()
	ws, err := memory.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ws.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if err := ws.Seed(files); err != nil {
		t.Fatal(err)
	}
	return ws
}

func TestRun_TableOfPrograms(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"README.md":   "# Title\n\nalpha\nbeta\ngamma\n",
		"src/a.go":    "package a\n\nfunc A() {}\n",
		"src/b.go":    "package a\n\nfunc B() { A() }\n",
		"src/deep/":   "",
		"numbers.txt": "10\n9\n2\n9\n",
		".hidden":     "x\n",
	}
	for _, c := range []struct {
		shell string
		want  string
		exit  int
	}{
		{"pwd", "/workspace/repo\n", 0},
		{"echo $HOME $TMPDIR", "/workspace/home /tmp\n", 0},
		{"cat README.md | head -n 1", "# Title\n", 0},
		{"head -2 README.md", "# Title\n\n", 0},
		{"tail -n 2 README.md", "beta\ngamma\n", 0},
		{"tail -n +4 README.md", "beta\ngamma\n", 0},
		{"sed -n '3,4p' README.md", "alpha\nbeta\n", 0},
		{"sed 's/a/A/g; 1d' numbers.txt", "9\n2\n9\n", 0},
		{"echo 'x1y' | sed -E 's/x([0-9])/<\\1&>/'", "<1x1>y\n", 0},
		{"wc -l README.md", "5 README.md\n", 0},
		{"sort -n -u numbers.txt", "2\n9\n10\n", 0},
		{"ls", "README.md\nnumbers.txt\nsrc\n", 0},
		{"ls -a src", "a.go\nb.go\ndeep\n", 0},
		{"grep -rn 'func' src", "src/a.go:3:func A() {}\nsrc/b.go:3:func B() { A() }\n", 0},
		{"grep -l 'A()' src/*.go", "src/a.go\nsrc/b.go\n", 0},
		{"grep -c nothing README.md", "0\n", 1},
		{"grep -A1 alpha README.md", "alpha\nbeta\n", 0},
		{"grep -E 'alp|gam' README.md", "alpha\ngamma\n", 0},
		{"mkdir -p x/y && echo hi > x/y/f && mv x/y/f x/g && cp -r x z && cat z/g && rm -r x && ls z", "hi\ng\ny\n", 0},
		{"cat missing", "cat: missing: no such file or directory\n", 1},
		{"cat /etc/passwd", "cat: /etc/passwd: no such file or directory\n", 1},
		{"cat < /etc/passwd", "open /etc/passwd: no such file or directory\n", 1},
		{"git status", "bash: git: not available in this environment\n", 127},
		{"./script.sh", "bash: ./script.sh: not available in this environment\n", 127},
		{"cat <(ls)", "bash: process substitution is not available in this environment\n", 2},
		{"test -f README.md && [ -d src ] && printf '%s\\n' ok", "ok\n", 0},
		{"cd src && pwd && ls", "/workspace/repo/src\na.go\nb.go\ndeep\n", 0},
		{"echo one; echo two >&2; exit 3", "one\ntwo\n", 3},
		{"rm -rf /workspace/repo", "rm: /workspace/repo: refusing to remove the workspace\n", 1},
		{"if true", "bash:1:1: `if <cond>` must be followed by `then`\n", 2},
	} {
		t.Run(c.shell, func(t *testing.T) {
			t.Parallel()
			ws := setup(t, files)
			res, err := ws.Run(t.Context(), core.Command{Shell: c.shell})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(res.Head); got != c.want || res.Exit != c.exit {
				t.Errorf("output %q, exit %d, want %q, exit %d", got, res.Exit, c.want, c.exit)
			}
		})
	}
}

func TestRun_NoCommandReachesTheHost(t *testing.T) {
	t.Parallel()
	ws := setup(t, nil)
	for _, shell := range []string{
		"cat /etc/hostname", "ls /", "cat ../../../../../../etc/hostname", "echo x > /var/tmp/x",
		"source /etc/profile", "cd /etc", "test -e /etc/hostname",
		"cp /etc/hostname x", "mv x /etc/x", "touch /etc/x", "mkdir /x", "bash -c ls", "sh", "env", "exec ls /",
	} {
		res, err := ws.Run(t.Context(), core.Command{Shell: shell})
		if err != nil {
			t.Fatal(err)
		}
		if res.Exit == 0 {
			t.Errorf("%s: exit 0, output %q", shell, res.Head)
		}
	}
}

func TestRun_CancelEndsALoop(t *testing.T) {
	t.Parallel()
	ws := setup(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := ws.Run(ctx, core.Command{Shell: "while true; do echo x; done"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the context's", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v, want at most 2 s", took)
	}
	res, err := ws.Run(t.Context(), core.Command{Shell: "echo again"})
	if err != nil || strings.TrimSpace(string(res.Head)) != "again" {
		t.Errorf("next command: %q, %v", res.Head, err)
	}
}
