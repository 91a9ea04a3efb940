package sandboxtest

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
)

func checkoutCases() []testCase {
	return []testCase{
		{name: "checkout makes a clean repository on the session's branch", run: checkoutState},
		{name: "checkout gives every file its bytes", run: checkoutBytes},
		{name: "checkout gives git a repository to work with", needs: real, run: checkoutGit},
		{name: "checkout takes a shallow history", needs: real, run: checkoutShallow},
		{name: "checkout never resets a workspace", run: checkoutTwice},
		{name: "checkout that broke off can be repeated", run: checkoutBroken},
		{name: "checkout makes a damaged base again and leaves the rest", needs: real, run: checkoutBase},
		{name: "checkout refuses what is no repository", run: checkoutRefuses},
		{name: "git state sees branch head and dirt", run: gitState},
		{name: "switch puts a clean work tree on a branch", needs: real, run: switchBranch},
		{name: "switch overwrites nothing that git does not know", needs: real, run: switchInTheWay},
		{name: "a tree without end is only dirt", needs: real, run: treeBomb},
	}
}

func checkoutState(t *testing.T, ws box) {
	f := newFixture(t)
	_, err := ws.GitState(t.Context())
	wantCode(t, "state without a checkout", err, "checkout_missing")
	ws.checkout(t, f)
	got, err := ws.GitState(t.Context())
	want := core.GitState{Base: f.base, Branch: fixtureBranch, Head: f.base}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

func checkoutBytes(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	for name, want := range map[string]string{
		"README.md": "# Second\n", "src/empty": "", "data.bin": "\x00\x01\xff", "crlf.txt": "one\r\ntwo\r\n", "lf.bat": "echo\n",
		"ident.go": "// $Id$\n", "dist/kept.js": "tracked\n", newlineName: "newline\n", latin1Name: "latin1\n", "link": "package main\n",
	} {
		if got := ws.read(t, name); got != want {
			t.Errorf("%q holds %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"link": "src/main.go", "absolute": "/etc/passwd", "folder": "src", "gone": "nowhere"} {
		stat, err := ws.Stat(t.Context(), name)
		if err != nil || stat.Kind != core.FileLink || stat.Target != want {
			t.Errorf("%s: %+v, %v", name, stat, err)
		}
	}
	if stat, err := ws.Stat(t.Context(), "bin/run.sh"); err != nil || stat.Mode&0o111 == 0 {
		t.Errorf("%+v, %v", stat, err)
	}
}

func checkoutGit(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	got := ws.must(t, `git status --porcelain && git rev-parse HEAD refs/remotes/origin/main && git symbolic-ref HEAD &&
		git remote get-url origin && git log --format=%s | wc -l && git config user.name; git fsck --strict 2>&1 | grep -v notice || true`)
	want := f.base + "\n" + f.base + "\nrefs/heads/agent/0190-test\n" + `https://example.com/o/r"\.git` + "\n2\n"
	if !strings.HasPrefix(got, want) || strings.Contains(got, "error") {
		t.Errorf("%q, want %q", got, want)
	}
	ws.must(t, "echo more >> README.md && git add -A && git -c user.name=A -c user.email=a@example.com commit -qm mine && git diff --exit-code HEAD")
}

func checkoutShallow(t *testing.T, ws box) {
	f := newFixture(t)
	spec, pack := f.shallow(t)
	if err := ws.Checkout(t.Context(), spec, bytes.NewReader(pack)); err != nil {
		t.Fatal(err)
	}
	if got := ws.must(t, "git log --format=%s | wc -l && git status --porcelain && git rev-parse --is-shallow-repository"); got != "1\ntrue\n" {
		t.Errorf("%q", got)
	}
	if snap := ws.snapshot(t, f); snap.TreeSHA != f.git(t, "rev-parse", f.base+"^{tree}") {
		t.Errorf("tree %s", snap.TreeSHA)
	}
}

func checkoutTwice(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	ws.write(t, map[string]string{"work.txt": "mine"})
	spec, pack := f.pack(t)
	wantCode(t, "second checkout", ws.Checkout(t.Context(), spec, bytes.NewReader(pack)), "checkout_exists")
	ws.must(t, "rm -rf .git work.txt")
	wantCode(t, "without .git", ws.Checkout(t.Context(), spec, bytes.NewReader(pack)), "checkout_exists")

	other := box{PlatformWorkspace: ws.open(t)}
	other.write(t, map[string]string{"foreign.txt": "here before"})
	wantCode(t, "over files", other.Checkout(t.Context(), spec, bytes.NewReader(pack)), "checkout_exists")
	if got := other.read(t, "foreign.txt"); got != "here before" {
		t.Errorf("%q", got)
	}
}

func checkoutBroken(t *testing.T, ws box) {
	f := newFixture(t)
	spec, pack := f.pack(t)
	for what, data := range map[string][]byte{
		"nothing": nil, "half an index": pack[:spec.IndexBytes/2], "no pack": pack[:spec.IndexBytes],
		"half a pack": pack[:len(pack)-100], "no end": pack[:len(pack)-1], "too much": append(bytes.Clone(pack), 'x'),
		"no repository": bytes.Repeat([]byte("not a pack "), 1000),
	} {
		wantCode(t, what, ws.Checkout(t.Context(), spec, bytes.NewReader(data)), "checkout_failed")
	}
	missing := spec
	missing.BaseSHA = strings.Repeat("1", 40)
	wantCode(t, "base not in the pack", ws.Checkout(t.Context(), missing, bytes.NewReader(pack)), "checkout_failed")
	ws.checkout(t, f)
	if got := ws.read(t, "README.md"); got != "# Second\n" {
		t.Errorf("%q", got)
	}
}

// DamagedBase are commands that damage the platform's part of a workspace, by what they do.
var DamagedBase = map[string]string{
	"all of it removed":    "rm -r ../.platform/*",
	"no rights":            "chmod 0 ../.platform/base.git ../.platform/base",
	"folder without":       "chmod 0 ../.platform",
	"no commit":            "echo nonsense > ../.platform/base",
	"a pipe":               "rm ../.platform/base && mkfifo ../.platform/base",
	"a huge file":          "truncate -s 60M ../.platform/base",
	"no objects":           "rm -rf ../.platform/base.git/objects",
	"no git directory":     "rm -rf ../.platform/base.git",
	"nonsense for objects": "cd ../.platform/base.git/objects/pack && chmod u+w * && for f in *; do echo x > $f; done",
	"locked folders":       "rm -rf ../.platform/* && mkdir -p ../.platform/a/b/c && chmod 0 ../.platform/a/b ../.platform/a",
	"a link to the work":   "rm -rf ../.platform/base.git && ln -s $PWD/.git ../.platform/base.git && rm ../.platform/base",
}

func checkoutBase(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	spec, pack := f.pack(t)
	spec.BaseOnly = true
	ws.must(t, "git -c user.name=T -c user.email=t@example.com commit -q --allow-empty -m mine && echo mine > README.md && echo kept > x.log && rm lf.bat")
	want := ws.must(t, everything+"; git rev-parse HEAD")
	tree := ws.snapshot(t, f).TreeSHA
	for what, damage := range DamagedBase {
		ws.must(t, damage)
		_, err := ws.GitState(t.Context())
		if err != nil {
			wantCode(t, what, err, "checkout_missing")
			_, err = ws.Snapshot(t.Context(), io.Discard)
			wantCode(t, what+", snapshot", err, "checkout_missing")
			err = ws.Checkout(t.Context(), spec, bytes.NewReader(pack[:len(pack)-1]))
			wantCode(t, what+", half of it sent", err, "checkout_failed")
			err = ws.Checkout(t.Context(), spec, bytes.NewReader(pack))
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if state, err := ws.GitState(t.Context()); err != nil || state.Base != f.base || state.Branch != fixtureBranch || !state.Dirty {
			t.Errorf("%s: afterwards %+v, %v", what, state, err)
		}
		if got := ws.snapshot(t, f).TreeSHA; got != tree {
			t.Errorf("%s: tree %s, want %s", what, got, tree)
		}
		if _, err := ws.Checkpoint(t.Context(), io.Discard, checkpointLimit); err != nil {
			t.Errorf("%s: checkpoint: %v", what, err)
		}
		if diff := cmp.Diff(want, ws.must(t, everything+"; git rev-parse HEAD")); diff != "" {
			t.Errorf("%s: the work: -want +got\n%s", what, diff)
		}
	}
}

func checkoutRefuses(t *testing.T, ws box) {
	f := newFixture(t)
	good, pack := f.pack(t)
	for what, change := range map[string]func(*core.Checkout){
		"short base":         func(c *core.Checkout) { c.BaseSHA = "abc" },
		"no branch":          func(c *core.Checkout) { c.Branch = "" },
		"branch leaves refs": func(c *core.Checkout) { c.Branch = "../../config" },
		"branch is a flag":   func(c *core.Checkout) { c.Branch = "-x" },
		"base with a space":  func(c *core.Checkout) { c.BaseRef = "a b" },
		"remote of 2 lines":  func(c *core.Checkout) { c.RemoteURL = "https://x\n[core]\nfsmonitor=id" },
		"no remote":          func(c *core.Checkout) { c.RemoteURL = "" },
		"no index":           func(c *core.Checkout) { c.IndexBytes = 0 },
	} {
		spec := good
		change(&spec)
		wantCode(t, what, ws.Checkout(t.Context(), spec, bytes.NewReader(pack)), "toolbox_request_invalid")
	}
	ws.checkout(t, f)
}

func gitState(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	for _, step := range []struct {
		what string
		do   func()
		want core.GitState
	}{
		{"ignored file", func() { ws.write(t, map[string]string{"x.log": "x"}) }, core.GitState{Base: f.base, Branch: fixtureBranch, Head: f.base}},
		{"new file", func() { ws.write(t, map[string]string{"new": "x"}) }, core.GitState{Base: f.base, Branch: fixtureBranch, Head: f.base, Dirty: true}},
		{"gone again", func() { ws.must(t, "rm new") }, core.GitState{Base: f.base, Branch: fixtureBranch, Head: f.base}},
		{"changed", func() { ws.write(t, map[string]string{"README.md": "x"}) }, core.GitState{Base: f.base, Branch: fixtureBranch, Head: f.base, Dirty: true}},
		{"another branch", func() {
			ws.write(t, map[string]string{".git/HEAD": "ref: refs/heads/other\n", ".git/refs/heads/other": f.base + "\n"})
		}, core.GitState{Base: f.base, Branch: "other", Head: f.base, Dirty: true}},
		{"detached", func() { ws.write(t, map[string]string{".git/HEAD": f.base + "\n", "README.md": "# Second\n"}) }, core.GitState{Base: f.base, Head: f.base}},
		{"unborn", func() { ws.write(t, map[string]string{".git/HEAD": "ref: refs/heads/none\n"}) }, core.GitState{Base: f.base, Branch: "none", Dirty: true}},
		{"nonsense", func() { ws.write(t, map[string]string{".git/HEAD": "\x00\xff"}) }, core.GitState{Base: f.base, Dirty: true}},
		{"no repository", func() { ws.must(t, "rm -rf .git") }, core.GitState{Base: f.base, Dirty: true}},
	} {
		step.do()
		got, err := ws.GitState(t.Context())
		if diff := cmp.Diff(step.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", step.what, err, diff)
		}
	}
}

func switchBranch(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	const commit = "git add -A && git -c user.name=T -c user.email=t@example.com commit -qm more"
	ws.must(t, `git switch -q -c other && printf 'a\r\n' > crlf.txt && rm -r src && mkdir src && echo x > src/new && chmod +x README.md && ln -s README.md to && `+commit)
	ws.switchesTo(t, f, fixtureBranch)
	if got := ws.must(t, "git status --porcelain; git rev-parse HEAD"); got != f.base+"\n" {
		t.Errorf("git sees %q", got)
	}
	if got := ws.snapshot(t, f).TreeSHA; got != f.git(t, "rev-parse", f.base+"^{tree}") {
		t.Errorf("the work tree differs from the base: %s", f.git(t, "diff", "--stat", f.base, got))
	}
	if err := ws.SwitchBranch(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if got := ws.must(t, "git status --porcelain; git branch --show-current; ls src to; stat -c %a README.md"); got != "other\nto\n\nsrc:\nnew\n755\n" {
		t.Errorf("on the other branch: %q", got)
	}
	if err := ws.SwitchBranch(t.Context(), "new/name"); err != nil {
		t.Fatal(err)
	}
	if got := ws.must(t, "git status --porcelain; git branch --show-current; git diff other"); got != "new/name\n" {
		t.Errorf("on a branch that was missing: %q", got)
	}
	for _, name := range []string{"", "..", "a..b", "-x", "other/below"} {
		if err := ws.SwitchBranch(t.Context(), name); err == nil {
			t.Errorf("switched to %q", name)
		}
	}
}

func switchInTheWay(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	ws.must(t, `git switch -q -c other && echo theirs > kept.log && git add -f kept.log && git -c user.name=T -c user.email=t@example.com commit -qm more`)
	ws.switchesTo(t, f, fixtureBranch)
	ws.write(t, map[string]string{"kept.log": "ours"}) // which git ignores
	wantCode(t, "switch", ws.SwitchBranch(t.Context(), "other"), "branch_switch_failed")
	if got := ws.must(t, "cat kept.log; git branch --show-current; git status --porcelain"); got != "ours"+fixtureBranch+"\n" {
		t.Errorf("a refusal left %q", got)
	}
}

// A few hundred bytes of objects that list to 10^10 paths: the platform stops reading in time, as HEAD and
// as the branch to go to, and works on.
func treeBomb(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	bomb := strings.TrimSpace(ws.must(t, `below=$(echo x | git hash-object -w --stdin) mode='100644 blob'
		for level in 1 2 3 4 5 6 7 8 9 10; do
			below=$(for name in 0 1 2 3 4 5 6 7 8 9; do printf '%s %s\t%s\n' "$mode" "$below" "$name"; done | git mktree) mode='040000 tree'
		done
		git -c user.name=T -c user.email=t@example.com commit-tree -m bomb "$below"`))
	ws.must(t, "git update-ref refs/heads/bomb "+bomb)
	wantCode(t, "switch to it", ws.SwitchBranch(t.Context(), "bomb"), "branch_switch_failed")
	ws.must(t, "git symbolic-ref HEAD refs/heads/bomb")
	want := core.GitState{Base: f.base, Branch: "bomb", Head: bomb, Dirty: true}
	if got, err := ws.GitState(t.Context()); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	wantCode(t, "switch from it", ws.SwitchBranch(t.Context(), fixtureBranch), "branch_switch_failed")
	if got := ws.snapshot(t, f).TreeSHA; got != f.git(t, "rev-parse", f.base+"^{tree}") {
		t.Errorf("tree %s", got)
	}
}
