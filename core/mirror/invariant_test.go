package mirror_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// recorder is a git whose every start, and every start of git's own helpers, is written down.
func recorder(t *testing.T) (program, record string) {
	t.Helper()
	dir := t.TempDir()
	record = filepath.Join(dir, "record")
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	execPath := mirrortest.Git(t, "", "--exec-path")
	helpers := filepath.Join(dir, "exec")
	if err := os.Mkdir(helpers, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(execPath)
	if err != nil {
		t.Fatal(err)
	}
	script := func(path, target string) {
		text := fmt.Sprintf("#!/bin/sh\n{ echo \"argv: $0 $*\"; cat /proc/$$/environ | tr '\\0' '\\n'; } >>%s\nexec %s \"$@\"\n", record, target)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range entries {
		target := filepath.Join(execPath, e.Name())
		if e.Name() == "git" || strings.HasPrefix(e.Name(), "git-remote-http") {
			script(filepath.Join(helpers, e.Name()), target)
			continue
		}
		if err := os.Symlink(target, filepath.Join(helpers, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(dir, "git")
	script(program, real+" --exec-path="+helpers)
	return program, record
}

// forms are the ways in which a token could lie about.
func forms(token string) [][]byte {
	return [][]byte{
		[]byte(token),
		[]byte(base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token)))[:24],
		[]byte(base64.StdEncoding.EncodeToString([]byte(token)))[:24],
	}
}

func holds(data []byte, tokens []string) bool {
	for _, token := range tokens {
		for _, form := range forms(token) {
			if bytes.Contains(data, form) {
				return true
			}
		}
	}
	return false
}

// processes calls visit with the argv and environment of every process of this machine.
func processes(visit func(what string, data []byte)) {
	for _, what := range []string{"cmdline", "environ"} {
		files, _ := filepath.Glob("/proc/[0-9]*/" + what)
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil {
				visit(f, data)
			}
		}
	}
}

func TestInvariant2_TheTokenIsInNoArgvFileEnvironmentOrLog(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	for _, name := range []string{"GIT_TRACE", "GIT_TRACE_CURL", "GIT_TRACE2", "GIT_TRACE_PACKET"} {
		t.Setenv(name, trace)
	}
	t.Setenv("GIT_TRACE_REDACT", "0")
	program, record := recorder(t)
	b := setup(t, func(o *mirror.Options) { o.GitPath = program })
	var mu sync.Mutex
	sawGit := 0
	b.server.OnAuthorized(func(*http.Request) { // git and its transport are alive, and wait for us
		mu.Lock()
		defer mu.Unlock()
		tokens := b.server.Minted()
		processes(func(what string, data []byte) {
			if bytes.Contains(data, []byte("git-remote-http")) && bytes.Contains(data, []byte(b.server.URL)) {
				sawGit++
			}
			if holds(data, tokens) {
				t.Errorf("%s holds a token", what)
			}
		})
		search(t, b.dir, tokens)
	})
	var workspace string
	said := b.everything(t, func(ws *mirrortest.Workspace) {
		workspace = ws.Dir
		write(t, ws, map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
	})
	tokens := b.server.Minted()
	if sawGit == 0 || len(tokens) < 2 {
		t.Fatalf("the search saw git %d times and %d tokens were minted: it proves nothing", sawGit, len(tokens))
	}
	for _, err := range said {
		if holds([]byte(fmt.Sprintf("%+v %s", err, core.MessageOf(err))), tokens) {
			t.Error("an error holds a token")
		}
	}
	if holds([]byte(b.log.String()), tokens) {
		t.Error("the log holds a token")
	}
	started, err := os.ReadFile(record)
	if err != nil || bytes.Count(started, []byte("argv: ")) < 20 || !bytes.Contains(started, []byte("git-remote-http")) {
		t.Fatalf("the record of started programs is not complete: %v", err)
	}
	if holds(started, tokens) {
		t.Error("a started program was given a token")
	}
	if _, err := os.Stat(trace); err == nil {
		t.Error("git obeyed a trace setting of our own environment")
	}
	for _, dir := range []string{b.dir, workspace, b.server.Root} {
		search(t, dir, tokens)
	}
}

// search looks for tokens in every file below dir.
func search(t *testing.T, dir string, tokens []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return ignoreGone(err)
		}
		files++
		data, err := os.ReadFile(path)
		if err == nil && holds(data, tokens) {
			t.Errorf("%s holds a token", path)
		}
		return ignoreGone(err)
	})
	if err != nil || files == 0 {
		t.Errorf("searched %d files of %s: %v", files, dir, err)
	}
}

// ignoreGone is for a folder that git writes meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
