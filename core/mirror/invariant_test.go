package mirror_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/mirror/gittrap"
	"agent-sandboxing/core/mirror/mirrortest"
)

// everything makes the mirror do all that it can for one session, and returns what it said.
func (b *bundle) everything(t *testing.T, plant func(*mirrortest.Workspace)) []error {
	t.Helper()
	ctx := t.Context()
	ws, _ := b.checkout(t, b.session)
	plant(ws)
	var said []error
	check := func(err error) {
		t.Helper()
		said = append(said, err)
		if err != nil {
			t.Error(err)
		}
	}
	_, err := b.mirror.Capture(ctx, b.session, ws)
	check(err)
	_, err = b.mirror.ReadBase(ctx, b.session, "README.md", 1000)
	check(err)
	q, err := b.mirror.Import(ctx, b.session, ws)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	changes, err := q.Changes(ctx, q.Base, q.Tree)
	check(err)
	tree, err := q.Without(ctx, q.Tree, changes[:1])
	check(err)
	commit, err := q.Commit(ctx, mirror.Commit{Tree: tree, Parent: q.Base, Message: "Change", Name: "bot", Email: "bot@example.com", When: time.Unix(1_700_000_000, 0)})
	check(err)
	_, err = q.IsAncestor(ctx, q.Base, commit)
	check(err)
	token, err := b.server.Mint(ctx, b.repo, core.TokenPublish)
	check(err)
	check(b.mirror.Push(ctx, b.repo, token, q, commit, b.session.Branch, ""))
	_, err = b.mirror.FetchBranch(ctx, b.repo, token, q, b.session.Branch)
	check(err)
	_, err = b.mirror.RemoteHead(ctx, b.repo, token, b.session.Branch)
	check(err)
	// Refusals and failures speak too.
	said = append(said, b.mirror.Push(ctx, b.repo, token, q, q.Base, b.session.Branch, ""))
	b.server.Fault(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true })
	said = append(said, b.mirror.Push(ctx, b.repo, token, q, commit, b.session.Branch, commit))
	_, _, err = b.mirror.Checkout(ctx, newSession(b.repo, b.session.BaseSHA), false)
	said = append(said, err)
	b.server.Fault(nil)
	return said
}

func TestInvariant2_TheTokenIsInNoArgvFileEnvironmentOrLog(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	for _, name := range []string{"GIT_TRACE", "GIT_TRACE_CURL", "GIT_TRACE2", "GIT_TRACE_PACKET"} {
		t.Setenv(name, trace)
	}
	t.Setenv("GIT_TRACE_REDACT", "0")
	program, record := mirrortest.Recorder(t)
	b := setup(t, func(o *mirror.Options) { o.GitPath = program })
	var hunt mirrortest.Hunt
	var sawGit atomic.Int64
	b.server.OnAuthorized(func(*http.Request) { // git and its transport are alive, and wait for us
		hunt.Know(b.server.Minted()...)
		sawGit.Add(int64(hunt.Processes(b.server.URL)))
		hunt.Files(t, b.dir)
	})
	var workspace string
	said := b.everything(t, func(ws *mirrortest.Workspace) {
		workspace = ws.Dir
		write(t, ws, map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
	})
	hunt.Again()
	for _, err := range said {
		hunt.Bytes("an error", fmt.Appendf(nil, "%+v %s", err, core.MessageOf(err)))
	}
	hunt.Bytes("the log", []byte(b.log.String()))
	started, err := os.ReadFile(record)
	if err != nil || bytes.Count(started, []byte("argv: ")) < 20 || !bytes.Contains(started, []byte("git-remote-http")) {
		t.Fatalf("the record of started programs is not complete: %v", err)
	}
	hunt.Bytes("a started program", started)
	if _, err := os.Stat(trace); err == nil {
		t.Error("git obeyed a trace setting of our own environment")
	}
	for _, dir := range []string{b.dir, workspace, b.server.Root} {
		hunt.Files(t, dir)
	}
	places, hits := hunt.Result()
	if minted := len(b.server.Minted()); sawGit.Load() == 0 || minted < 2 || places < 100 {
		t.Fatalf("the hunt saw git %d times, %d tokens were minted, %d places searched: it proves nothing", sawGit.Load(), minted, places)
	}
	if len(hits) > 0 {
		t.Errorf("a token is in %v", hits)
	}
}

// TestInvariant10_NothingRepositoryMadeRunsInTheControlPlane plants the corpus of traps in the base
// commit's files, the session's work tree and its git directory, and in the settings of whoever runs the
// server, and has the mirror do all that it can.
func TestInvariant10_NothingRepositoryMadeRunsInTheControlPlane(t *testing.T) {
	dir, home := filepath.Join(t.TempDir(), "traps"), t.TempDir()
	program := filepath.Join(dir, "run-environment")
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home + "/.config", "GIT_CONFIG_GLOBAL": home + "/.gitconfig", "GIT_TEMPLATE_DIR": dir + "/template",
		"GIT_EXTERNAL_DIFF": program, "GIT_ASKPASS": program, "SSH_ASKPASS": program, "GIT_SSH_COMMAND": program,
		"GIT_PAGER": program, "GIT_EDITOR": program, "GIT_PROXY_COMMAND": program,
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": program,
	} {
		t.Setenv(name, value)
	}
	b := setup(t)
	b.session.BaseSHA = b.server.Commit(t, b.repo, "main", hostileBase(dir))
	planted := 1 // the environment
	b.everything(t, func(ws *mirrortest.Workspace) {
		b.bash(t, ws.Dir, gittrap.Trap{Name: "environment"}.Program(dir))
		write(t, ws, map[string]string{"dir/new.txt": "new\n", "data.bin": "x\n"})
		for _, trap := range gittrap.All() {
			if trap.Local {
				continue
			}
			planted++
			b.bash(t, ws.Dir, trap.Plant(dir))
			write(t, ws, map[string]string{"README.md": trap.Name + "\n"})
			if diff, err := b.mirror.Capture(t.Context(), b.session, ws); err != nil || len(diff.Files) == 0 {
				t.Errorf("%s: %d files, %v", trap.Name, len(diff.Files), err)
			}
		}
	})
	sprung, err := filepath.Glob(gittrap.Sprung(dir) + "/*")
	if err != nil || len(sprung) > 0 {
		t.Errorf("sprung: %v, %v", sprung, err)
	}
	t.Logf("git traps: %d planted, %d sprung", planted, len(sprung))
}

// hostileBase are files that turn on whatever the traps have configured, and that make the repository
// look like a git directory itself.
func hostileBase(dir string) map[string]string {
	attributes := "* filter=clean filter=smudge filter=process diff=command merge=evil text eol=crlf\n*.bin filter=lfs diff=lfs merge=lfs -text\n"
	return map[string]string{
		"README.md": "widgets\n", ".gitattributes": attributes, "dir/.gitattributes": attributes,
		".lfsconfig":  "[lfs]\n\turl = ext::" + dir + "/run-environment\n",
		".gitmodules": "[submodule \"evil\"]\n\tpath = evil\n\turl = ext::" + dir + "/run-environment\n\tupdate = none\n",
		"HEAD":        "ref: refs/heads/main\n", "config": "[core]\n\tfsmonitor = " + dir + "/run-environment\n",
		"objects/info/alternates": dir + "\n", "refs/x": "x\n", "hooks/post-checkout*": "#!/bin/sh\n" + dir + "/run-environment\n",
		"data.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 1\n",
	}
}

// bash runs a shell text in a folder, with this process's HOME and nothing else of it.
func (b *bundle) bash(t *testing.T, dir, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", text)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
