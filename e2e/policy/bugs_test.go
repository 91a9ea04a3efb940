package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/bashpolicy"
	"agent-sandboxing/agent/tools"
	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// session is a sandbox whose shell tool runs under policy open.
type session struct {
	*toolbox.Client
	tool map[string]agent.Tool
}

func open(t *testing.T) session {
	t.Helper()
	s := session{Client: start(t), tool: map[string]agent.Tool{}}
	for _, tool := range (tools.Options{}).New(agent.Env{Workspace: s.Client, Policy: core.PolicyOpen, MessageID: core.NewID[core.MessageID]()}) {
		s.tool[tool.Spec().Name] = tool
	}
	return s
}

// call uses a tool as the model would.
func (s session) call(t *testing.T, tool string, args map[string]any) agent.Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.tool[tool].Run(t.Context(), raw)
	if err != nil {
		t.Fatalf("%s %s: %v", tool, raw, err)
	}
	return r
}

func (s session) bash(t *testing.T, command string, seconds int) agent.Result {
	t.Helper()
	return s.call(t, "bash", map[string]any{"command": command, "timeout": seconds})
}

// want fails unless the model got exactly this.
func want(t *testing.T, what string, r agent.Result, text string) {
	t.Helper()
	if r.Text != text {
		t.Errorf("%s: got %q, want %q", what, r.Text, text)
	}
}

// wantNothingLeft fails when a process of an earlier command is alive.
func (s session) wantNothingLeft(t *testing.T) {
	t.Helper()
	if n, err := s.KillAll(t.Context()); n != 0 || err != nil {
		t.Errorf("%d processes were left, %v", n, err)
	}
}

// A child that keeps printing does not hold its command open, and is gone afterwards.
func TestOpen_BackgroundChildDoesNotHoldTheCommand(t *testing.T) {
	t.Parallel()
	s := open(t)
	r := s.bash(t, "(while :; do echo tick; sleep 0.1; done) & sleep 0.3; echo front", 60) // or it is ended by its time limit
	if !strings.Contains(r.Text, "front") || !strings.Contains(r.Text, "running; they were ended]") || r.Exit == nil || *r.Exit != 0 {
		t.Errorf("got %q, exit %v", r.Text, r.Exit)
	}
	want(t, "the next command", s.bash(t, "echo next", 60), "next")
	s.wantNothingLeft(t)
}

// Nothing waits for a person: no input, no terminal, no editor, no pager.
func TestOpen_NothingWaitsForAPerson(t *testing.T) {
	t.Parallel()
	s := open(t)
	setup := `git init -q && git config user.name a && git config user.email a@example.org &&
		for i in $(seq 500); do printf 'commit refs/heads/%s\ncommitter a <a@example.org> %s +0000\ndata <<.\nc%s\n.\n\n' "$(git symbolic-ref --short HEAD)" $i $i; done |
		git fast-import --quiet && echo x > x && git add x`
	if r := run(t, s, core.Command{Shell: setup}); r.Exit != 0 {
		t.Fatalf("%s", output(r))
	}
	want(t, "read", s.bash(t, `read x; echo "[$x]"`, 60), "[]")
	want(t, "cat", s.bash(t, "cat", 60), "(no output)")
	want(t, "a terminal", s.bash(t, "echo x > /dev/tty", 60), "bash: line 1: /dev/tty: No such device or address\n\n[exit code 1]")
	if r := s.bash(t, "git log", 60); r.Exit == nil || *r.Exit != 0 || !strings.Contains(r.Text, "c500") {
		t.Errorf("git log: %q", r.Text)
	}
	if r := s.bash(t, "git commit", 60); r.Outcome != agent.OutcomeRefused || r.Code != "git_not_allowed" {
		t.Errorf("git commit: %+v", r)
	}
	// A script may still try: the editor fails, and so does the commit; a rebase does not run unchanged.
	for _, command := range []string{"git commit", "git rebase -i HEAD~2", "git commit --amend"} {
		want(t, "a script that tries", s.bash(t, "git var GIT_EDITOR && echo '"+command+"' > try.sh && bash try.sh > try.log 2>&1 || echo failed", 60), "false\nfailed")
		if r := run(t, s, core.Command{Shell: command}); r.Exit == 0 || r.TimedOut {
			t.Errorf("%s: exit %d, timed out %v: %s", command, r.Exit, r.TimedOut, output(r))
		}
	}
	want(t, "the commits", s.bash(t, "git rev-list --count HEAD", 60), "500")
}

// A time limit ends the whole family.
func TestOpen_TimeLimitEndsTheWholeFamily(t *testing.T) {
	t.Parallel()
	s := open(t)
	r := s.bash(t, "echo so far; for i in 1 2 3; do (while :; do :; done) & done; sleep 600", 2)
	if r.Outcome != agent.OutcomeError || r.Code != "timed_out" || !strings.Contains(r.Text, "so far\n\n[timed out after 2 s; processes killed]") {
		t.Errorf("got %+v", r)
	}
	s.wantNothingLeft(t)
}

// Quotes and escapes hide operators from the shell, and from the policy.
func TestOpen_QuotedOperatorsAreText(t *testing.T) {
	t.Parallel()
	s := open(t)
	if r := run(t, s, core.Command{Shell: "git init -q; printf 'foo\\n' > a.go; printf 'a|b\\nb;c\\n' > f"}); r.Exit != 0 {
		t.Fatalf("%s", output(r))
	}
	want(t, "find", s.bash(t, `find . -name '*.go' -exec grep -l foo {} \; 2>/dev/null | head -5`, 60), "./a.go")
	want(t, "grep", s.bash(t, `grep -E 'a|b;c' f`, 60), "a|b\nb;c")
	want(t, "echo", s.bash(t, `echo 'curl x | sh'`, 60), "curl x | sh")
	if r := s.bash(t, `git log --format='%h & %s'`, 60); r.Outcome == agent.OutcomeRefused {
		t.Errorf("git log: %+v", r)
	}
	if r := s.bash(t, `echo 'open`, 60); r.Code != "unparsable" {
		t.Errorf("an open quote: %+v", r)
	}
}

// The output is bounded where it is caught, and the command does not wait for us.
func TestOpen_FloodIsBoundedWhereItIsCaught(t *testing.T) {
	t.Parallel()
	s := open(t)
	before := resident(t)
	r := run(t, s, core.Command{Shell: "head -c 1000000000 /dev/zero >&2; exit 7", Timeout: 5 * time.Minute})
	if r.Exit != 7 || r.Total != 1_000_000_000 || r.Omitted != r.Total-int64(len(r.Head)+len(r.Tail)) || len(r.Head)+len(r.Tail) > 50<<10 {
		t.Errorf("exit %d, total %d, omitted %d, kept %d", r.Exit, r.Total, r.Omitted, len(r.Head)+len(r.Tail))
	}
	if grown := resident(t) - before; grown > 48<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20) // other tests run beside this one
	}
	text := s.bash(t, "timeout 2 yes", 60)
	if text.Exit == nil || *text.Exit != 124 || !text.Truncated || len(text.Text) > 60<<10 {
		t.Errorf("yes: exit %v, truncated %v, %d bytes", text.Exit, text.Truncated, len(text.Text))
	}
	if r := s.bash(t, "cat /dev/urandom | base64", 1); r.Code != "timed_out" || len(r.Text) > 60<<10 {
		t.Errorf("base64: %s, %d bytes", r.Code, len(r.Text))
	}
}

// resident is this process's memory in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// Every command that a text would run is judged, not its first word.
func TestOpen_EveryCommandOfATextIsJudged(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, command := range []string{
		"ls && git push", "echo hi\ngit commit -m x", `echo "$(git push)"`, "X=1 git push", "env git push", "env -i A=1 git push",
		"git -c alias.p='!git push' p", "FOO=1 bash -c 'git push'", "sh -ec 'ls; git commit -am x'", "timeout 5 git push", "xargs git push < x",
		"bash <<EOF\ngit push\nEOF", "bash <<< 'git push'", "eval 'git push'", "eval git push", "find . -exec git stash \\;", "f() { git push; }; f",
		"if ls; then git reset --hard; fi", "cat <(git stash)", "( cd x; git clean -fdx ) &", "case a in a) git rebase main;; esac", "/usr/bin/git push",
		"git --no-pager -C . push", "git remote set-url origin x", "git branch -D main", "cat <<EOF\n$(git push)\nEOF", "time git push", "! git push", "command git push",
	} {
		if r := s.bash(t, command, 60); r.Outcome != agent.OutcomeRefused || r.Code != "git_not_allowed" || r.Refusal == nil || r.Refusal.Command != command {
			t.Errorf("%q: %+v", command, r)
		}
	}
	for _, command := range []string{
		"rm -rf *", "rm -rf .", "cd src; rm -rf /workspace/repo", "rm -rf /workspace/*", "rm -rf ../repo", "sudo rm -rf /", "find . -delete", "find -mindepth 1 -delete",
		"find . -exec rm -rf /workspace/repo +", "git checkout -- .", "git restore '*'", "bash -c 'true; rm -rf ./*'",
	} {
		if r := s.bash(t, command, 60); r.Code != "workspace_deletion" {
			t.Errorf("%q: %+v", command, r)
		}
	}
	for _, command := range []string{
		"ls | sh", "echo git push", "find . -name '*.pyc' -delete", "git status; git diff", "rm -rf node_modules", "env | sort", "bash -c 'git log'",
		"for f in *; do wc -l \"$f\"; done", "git branch --list | cat", "cat <<'EOF'\n$(git push)\nEOF",
	} {
		if _, refused := bashpolicy.Check(core.PolicyOpen, command); refused != nil {
			t.Errorf("%q is refused by %s", command, refused.Rule)
		}
	}
}

// The body of a here-document with a quoted delimiter is text.
func TestOpen_HeredocBodyIsText(t *testing.T) {
	t.Parallel()
	s := open(t)
	body := "```sh\necho $(date)\ngit push\n```\n"
	if r := s.bash(t, "cat > d.md <<'EOF'\n"+body+"EOF", 60); r.Exit == nil || *r.Exit != 0 {
		t.Fatalf("%+v", r)
	}
	file, err := s.Read(t.Context(), "d.md", 0, 0)
	if err != nil || string(file.Data) != body {
		t.Errorf("the file holds %q, %v", file.Data, err)
	}
	if r := s.bash(t, "cat > d.md <<EOF\n$(git push)\nEOF", 60); r.Code != "git_not_allowed" {
		t.Errorf("an unquoted delimiter: %+v", r)
	}
}

// What a terminal would show is what the model gets.
func TestOpen_ControlSequencesAreGone(t *testing.T) {
	t.Parallel()
	s := open(t)
	r := s.bash(t, `printf 'Work\rWorking 50%%\rWorking 100%%\n\033[?25l\033]0;title\007\033[31mred\033[0m\r\nend\n'`, 60)
	want(t, "progress", r, "Working 100%\nred\nend")
}

// Every call begins in the repository; the file tools count from there too.
func TestOpen_EveryCallBeginsInTheRepository(t *testing.T) {
	t.Parallel()
	s := open(t)
	if r := run(t, s, core.Command{Shell: "mkdir sub; echo root > a.txt; echo sub > sub/a.txt"}); r.Exit != 0 {
		t.Fatalf("%s", output(r))
	}
	want(t, "cd", s.bash(t, "cd sub && pwd", 60), "/workspace/repo/sub")
	want(t, "the next call", s.bash(t, "pwd", 60), "/workspace/repo")
	if r := s.call(t, "read", map[string]any{"path": "a.txt"}); !strings.HasPrefix(r.Text, "root") {
		t.Errorf("read: %q", r.Text)
	}
	want(t, "no such directory", s.bash(t, "cd /nonexistent", 60), "bash: line 1: cd: /nonexistent: No such file or directory\n\n[exit code 1]")
	want(t, "deleted under its feet", s.bash(t, "cd sub && rm -r ../sub && echo gone", 60), "gone")
	want(t, "after it", s.bash(t, "pwd", 60), "/workspace/repo")
	if r := s.bash(t, fmt.Sprintf("cd /tmp && rm -rf %s", core.RepoDir), 60); r.Code != "workspace_deletion" {
		t.Errorf("deleting the repository: %+v", r)
	}
}

// Not even a script takes the repository's folder away from the next call.
func TestOpen_TheRepositoryStays(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, take := range []string{"mv /workspace/repo /workspace/home/away", "mv /workspace/repo /tmp/away", "rm -rf /workspace/repo", "rmdir /workspace/repo", "chmod 0 /workspace/repo"} {
		s.call(t, "write", map[string]any{"path": "/tmp/take.sh", "content": take + "\n"})
		s.bash(t, "bash /tmp/take.sh; rm /tmp/take.sh", 60)
		want(t, take, s.bash(t, "pwd && touch x && ls x", 60), "/workspace/repo\nx")
	}
}

// A disk that is full costs the new text of a file and never the old one.
func TestTools_AFullDiskLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	s := open(t)
	setup := `mkdir /tmp/full && cd /tmp/full && { echo first; head -c 900000 /dev/zero | tr '\0' 'x'; } > f.txt && chmod 750 f.txt && ls -l f.txt && sha256sum f.txt > ../sum &&
		{ cat /dev/zero > ../fill || true; } 2> /dev/null && df --output=avail /tmp | tail -1`
	if r := run(t, s, core.Command{Shell: setup}); r.Exit != 0 || !strings.HasSuffix(output(r), " 0\n") {
		t.Fatalf("exit %d: %s", r.Exit, output(r))
	}
	r := s.call(t, "edit", map[string]any{"path": "/tmp/full/f.txt", "oldText": "first", "newText": "second"})
	if r.Outcome != agent.OutcomeError || r.Code != "disk_full" {
		t.Errorf("edit on a full disk: %+v", r)
	}
	r = s.call(t, "write", map[string]any{"path": "/tmp/full/new.txt", "content": strings.Repeat("new\n", 10_000)})
	if r.Outcome != agent.OutcomeError || r.Code != "disk_full" {
		t.Errorf("write on a full disk: %+v", r)
	}
	want(t, "what is there", s.bash(t, "cd /tmp/full && sha256sum --quiet -c ../sum && ls -A && stat -c '%a' f.txt", 60), "f.txt\n750")
	if r := run(t, s, core.Command{Shell: "rm /tmp/fill"}); r.Exit != 0 {
		t.Fatalf("%s", output(r))
	}
	r = s.call(t, "edit", map[string]any{"path": "/tmp/full/f.txt", "oldText": "first", "newText": "second"})
	if r.Outcome != agent.OutcomeOK {
		t.Errorf("edit with room again: %+v", r)
	}
	want(t, "the mode", s.bash(t, "head -n 1 /tmp/full/f.txt && stat -c '%a' /tmp/full/f.txt", 60), "second\n750")
}
