package sandboxtest

import (
	"bytes"
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
		{name: "checkout refuses what is no repository", run: checkoutRefuses},
		{name: "git state sees branch head and dirt", run: gitState},
		{name: "git state runs nothing of the repository", needs: real, run: gitStateTraps},
	}
}

func checkoutState(t *testing.T, ws box) {
	f := newFixture(t)
	_, err := ws.GitState(t.Context())
	wantCode(t, "state without a checkout", err, "checkout_missing")
	ws.checkout(t, f)
	got, err := ws.GitState(t.Context())
	want := core.GitState{Branch: "agent/0190-test", Head: f.base}
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
		{"ignored file", func() { ws.write(t, map[string]string{"x.log": "x"}) }, core.GitState{Branch: "agent/0190-test", Head: f.base}},
		{"new file", func() { ws.write(t, map[string]string{"new": "x"}) }, core.GitState{Branch: "agent/0190-test", Head: f.base, Dirty: true}},
		{"gone again", func() { ws.must(t, "rm new") }, core.GitState{Branch: "agent/0190-test", Head: f.base}},
		{"changed", func() { ws.write(t, map[string]string{"README.md": "x"}) }, core.GitState{Branch: "agent/0190-test", Head: f.base, Dirty: true}},
		{"another branch", func() {
			ws.write(t, map[string]string{".git/HEAD": "ref: refs/heads/other\n", ".git/refs/heads/other": f.base + "\n"})
		}, core.GitState{Branch: "other", Head: f.base, Dirty: true}},
		{"detached", func() { ws.write(t, map[string]string{".git/HEAD": f.base + "\n", "README.md": "# Second\n"}) }, core.GitState{Head: f.base}},
		{"unborn", func() { ws.write(t, map[string]string{".git/HEAD": "ref: refs/heads/none\n"}) }, core.GitState{Branch: "none", Dirty: true}},
		{"nonsense", func() { ws.write(t, map[string]string{".git/HEAD": "\x00\xff"}) }, core.GitState{Dirty: true}},
		{"no repository", func() { ws.must(t, "rm -rf .git") }, core.GitState{Dirty: true}},
	} {
		step.do()
		got, err := ws.GitState(t.Context())
		if diff := cmp.Diff(step.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", step.what, err, diff)
		}
	}
}

// traps plants what git would run for an unwary caller. Each leaves a file in HOME.
const traps = `
	canary() { printf '#!/bin/sh\ntouch "$HOME/canary-%s"\ncat\n' "$1" > "$HOME/$1" && chmod +x "$HOME/$1"; }
	for name in clean smudge process monitor diff textconv hook ssh pager editor; do canary $name; done
	git config filter.trap.clean "$HOME/clean" && git config filter.trap.smudge "$HOME/smudge" && git config filter.trap.process "$HOME/process"
	git config filter.trap.required true && git config core.fsmonitor "$HOME/monitor" && git config diff.external "$HOME/diff"
	git config diff.trap.textconv "$HOME/textconv" && git config core.sshCommand "$HOME/ssh" && git config core.pager "$HOME/pager"
	git config core.editor "$HOME/editor" && mkdir -p .git/hooks && git config core.hooksPath .git/hooks
	git config extensions.partialClone origin && git config remote.origin.promisor true && git config core.worktree /
	for hook in post-checkout post-index-change reference-transaction pre-commit; do cp "$HOME/hook" .git/hooks/$hook; done
	mkdir -p .git/info && echo '* filter=trap diff=trap' > .git/info/attributes
	echo '* filter=trap diff=trap text eol=crlf' > .gitattributes
	rm -f "$HOME"/canary-*`

func gitStateTraps(t *testing.T, ws box) {
	f := newFixture(t)
	ws.checkout(t, f)
	ws.must(t, traps)
	got, err := ws.GitState(t.Context())
	if err != nil || got.Branch != "agent/0190-test" || got.Head != f.base || !got.Dirty {
		t.Errorf("%+v, %v", got, err)
	}
	if out := ws.must(t, `ls "$HOME" | grep canary- || true`); out != "" {
		t.Errorf("it ran %s", out)
	}
}
