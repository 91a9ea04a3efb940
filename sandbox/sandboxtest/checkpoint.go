package sandboxtest

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
)

const checkpointLimit = 64 << 20

func checkpointCases() []testCase {
	return []testCase{
		{name: "checkpoint and restore give the same tree", run: checkpointTree},
		{name: "checkpoint and restore give every byte mode and folder", needs: real, run: checkpointExact},
		{name: "checkpoint of nothing is small", run: checkpointEmpty},
		{name: "checkpoint names what does not fit", run: checkpointPartial},
		{name: "restore refuses another base and broken archives", run: restoreRefuses},
		{name: "restore writes through no link", needs: real, run: restoreLinks},
	}
}

// runIn runs a script on the host.
func runIn(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// rebuilt makes a checkpoint of ws and restores it in a new workspace.
func (ws box) rebuilt(t *testing.T, f *fixture) (box, core.CheckpointInfo) {
	t.Helper()
	var archive bytes.Buffer
	info, err := ws.Checkpoint(t.Context(), &archive, checkpointLimit)
	if err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	if info.BaseSHA != f.base || info.Bytes != int64(archive.Len()) || len(info.Missing) > 0 {
		t.Errorf("%+v, archive of %d bytes", info, archive.Len())
	}
	other := box{PlatformWorkspace: ws.open(t), open: ws.open}
	other.checkout(t, f)
	if err := other.Restore(t.Context(), info, &archive); err != nil {
		t.Fatalf("restore: %v", err)
	}
	return other, info
}

func checkpointTree(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	ws.write(t, map[string]string{
		"README.md": "# Third\n", "odd/\xff\xfe": "5", "odd/two\nlines": "6", "src/deep/new/x": "", "a.log": "ignored",
		"large": string(bytes.Repeat([]byte("x\n"), 400_000)),
	})
	ws.must(t, "rm -r dist bin crlf.txt link && mkdir crlf.txt && echo now a folder > crlf.txt/file")
	want := ws.snapshot(t, f)
	other, info := ws.rebuilt(t, f)
	if got := other.snapshot(t, f); got.TreeSHA != want.TreeSHA {
		t.Errorf("-want +got\n%s", cmp.Diff(f.files(t, want.TreeSHA), f.files(t, got.TreeSHA)))
	}
	if diff := cmp.Diff([]string{"bin/run.sh", "crlf.txt", "dist/kept.js", "dist/z/kept.js", "link"}, info.Deleted); diff != "" {
		t.Errorf("deleted: -want +got\n%s", diff)
	}
	if info.Files != 6 {
		t.Errorf("%d files, want 6", info.Files)
	}
	if _, err := other.Stat(t.Context(), "bin"); core.CodeOf(err) != "not_found" {
		t.Errorf("an empty folder was left: %v", err)
	}
	if _, err := other.Stat(t.Context(), "a.log"); core.CodeOf(err) != "not_found" {
		t.Errorf("an ignored file came along: %v", err)
	}
}

// everything lists all of a workspace but its .git: kind, mode, size, target, content.
const everything = `find . -path ./.git -prune -o -printf '%y %m %l %p\n' | sort && find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum`

func checkpointExact(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	ws.must(t, `chmod 600 README.md && chmod 700 bin && chmod 755 src/main.go && mkdir -p empty/inner && mkdir -m 700 private && echo x > private/x &&
		ln -s /etc/shadow abs && ln -s ../.. up && rm folder && mkdir folder && echo x > folder/x && rm -r src/deep && ln -s .. src/deep &&
		head -c 3000000 /dev/urandom > noise && printf 'a\xffb' > "$(printf 'odd/\xe9\n')" &&
		mkdir sub && cd sub && git init -q && echo y > y && git add y && git -c user.name=A -c user.email=a@example.com commit -qm y && ln -s HEAD .git/link && mkdir .git/void &&
		mkdir -m 500 locked`)
	want := ws.must(t, everything)
	ws.must(t, "chmod u+s src/main.go") // no checkpoint makes privileged files
	other, _ := ws.rebuilt(t, f)
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(other.must(t, everything), "\n")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := other.must(t, "cd sub && git log --format=%s && git status --porcelain"); got != "y\n" {
		t.Errorf("the nested repository says %q", got)
	}
}

func checkpointEmpty(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	other, info := ws.rebuilt(t, f)
	if info.Files != 0 || len(info.Deleted) != 0 || info.Bytes > 4096 {
		t.Errorf("%+v", info)
	}
	if state, err := other.GitState(t.Context()); err != nil || state.Dirty {
		t.Errorf("%+v, %v", state, err)
	}
}

func checkpointPartial(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 600<<10)
	_, _ = random.Read(noise)
	ws.write(t, map[string]string{
		"small": "small", "noise1": string(noise[:300<<10]), "noise2": string(noise[300<<10:]), "text": strings.Repeat("text\n", 100_000),
	})
	var archive bytes.Buffer
	const limit = 1000 << 10
	info, err := ws.Checkpoint(t.Context(), &archive, limit)
	if err != nil || archive.Len() > limit || info.Files != 4 {
		t.Fatalf("%+v, %d bytes, %v", info, archive.Len(), err)
	}
	archive.Reset()
	info, err = ws.Checkpoint(t.Context(), &archive, 420<<10)
	if err != nil || archive.Len() > 420<<10 {
		t.Fatalf("%d bytes, %v", archive.Len(), err)
	}
	if diff := cmp.Diff([]string{"noise2"}, info.Missing); diff != "" || info.Files != 3 {
		t.Errorf("%d files, missing: -want +got\n%s", info.Files, diff)
	}
	other := box{PlatformWorkspace: ws.open(t)}
	other.checkout(t, f)
	if err := other.Restore(t.Context(), info, &archive); err != nil {
		t.Fatal(err)
	}
	if got := other.read(t, "noise1"); got != string(noise[:300<<10]) {
		t.Error("noise1 differs")
	}
}

func restoreRefuses(t *testing.T, ws box) {
	f := newFixture(t)
	wantCode(t, "without a checkout", ws.Restore(t.Context(), core.CheckpointInfo{BaseSHA: f.base}, strings.NewReader("")), "checkout_missing")
	ws.checkout(t, f)
	ws.write(t, map[string]string{"x": "x"})
	var archive bytes.Buffer
	info, err := ws.Checkpoint(t.Context(), &archive, checkpointLimit)
	if err != nil {
		t.Fatal(err)
	}
	other := info
	other.BaseSHA = strings.Repeat("1", 40)
	wantCode(t, "another base", ws.Restore(t.Context(), other, bytes.NewReader(archive.Bytes())), "restore_failed")
	wantCode(t, "no archive", ws.Restore(t.Context(), info, strings.NewReader("not zstd at all")), "restore_failed")
	wantCode(t, "half an archive", ws.Restore(t.Context(), info, bytes.NewReader(archive.Bytes()[:archive.Len()/2])), "restore_failed")
	if err := ws.Restore(t.Context(), info, bytes.NewReader(archive.Bytes())); err != nil {
		t.Errorf("the whole archive: %v", err)
	}
}

func restoreLinks(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	ws.must(t, "mkdir d && echo new > d/f && rm absolute && echo new > absolute")
	var archive bytes.Buffer
	info, err := ws.Checkpoint(t.Context(), &archive, checkpointLimit)
	if err != nil {
		t.Fatal(err)
	}
	other := box{PlatformWorkspace: ws.open(t)}
	other.checkout(t, f)
	other.must(t, `mkdir "$HOME/out" && echo old > "$HOME/out/f" && ln -s ../home/out d && ln -sfn ../home/out/f absolute`)
	if err := other.Restore(t.Context(), info, &archive); err != nil {
		t.Fatal(err)
	}
	if got := other.must(t, `cat d/f absolute "$HOME/out/f"`); got != "new\nnew\nold\n" {
		t.Errorf("%q", got)
	}
}
