// Package gittrap is the corpus of what a repository, or whoever can write to its folders, can make git
// do for an unwary caller. Each trap runs a program, or writes a file, that leaves a canary. Its own
// test shows that git springs every one of them; those of sandboxes and of the mirror, that nothing of
// ours does.
package gittrap

import (
	"fmt"
	"strings"
)

// Trap is one of them.
type Trap struct {
	Name string
	// Local says that it needs a git directory of its own making, none of which leaves a sandbox.
	Local bool

	plant  string // shell, in the repository
	spring string // shell, in the repository: what the unwary caller does, after plant
}

// What the shell texts can use: $T is the folder of programs and canaries, $run the trap's program,
// which leaves its canary.
const prelude = `set -eu
T=%[1]s name=%[2]s
run="$T/run-$name"
mkdir -p "$T/sprung"
printf '#!/bin/sh\ntouch "%%s"\n' "$T/sprung/$name" > "$run" && chmod +x "$run"
set_() { git config -f .git/config "$1" "$2"; }
global() { git config -f "$HOME/.gitconfig" "$1" "$2"; }
hook() { mkdir -p "$1" && cp "$run" "$1/$2"; }
attribute() { echo "* $1" >> .gitattributes; }
`

// Plant is a bash text that plants the trap in the repository of the working folder, with dir for
// programs and canaries, and springs nothing that was planted before.
func (t Trap) Plant(dir string) string {
	return t.script(dir) + t.plant + "\nrm -rf \"$T/sprung\" && mkdir \"$T/sprung\"\n"
}

// Spring is a bash text that does what Plant has prepared for.
func (t Trap) Spring(dir string) string {
	return t.script(dir) + "export GIT_TERMINAL_PROMPT=0 GIT_MERGE_AUTOEDIT=no\nset +e\n" + t.spring + "\ntrue\n"
}

func (t Trap) script(dir string) string { return fmt.Sprintf(prelude, quote(dir), quote(t.Name)) }

// Program is a bash text that makes the trap's program, for what was planted elsewhere.
func (t Trap) Program(dir string) string { return t.script(dir) }

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Sprung is the folder below dir in which every file is a canary.
func Sprung(dir string) string { return dir + "/sprung" }

// All is the corpus. Planted in this order, each one is in force once: later ones may take the place
// of earlier ones.
func All() []Trap {
	return []Trap{
		{Name: "hook-post-checkout", plant: `hook .git/hooks post-checkout`, spring: `git checkout -q -b new`},
		{Name: "hook-reference-transaction", plant: `hook .git/hooks reference-transaction`, spring: `git update-ref refs/heads/new HEAD`},
		{Name: "hook-post-index-change", plant: `hook .git/hooks post-index-change`, spring: `git add -A`},
		{Name: "hook-pre-commit", plant: `hook .git/hooks pre-commit`, spring: `git commit -q --allow-empty -m x`},
		{Name: "hook-fsmonitor-watchman", plant: `hook .git/hooks fsmonitor-watchman && set_ core.fsmonitor .git/hooks/fsmonitor-watchman`, spring: `git status`},
		{Name: "core.hooksPath", plant: `for h in post-checkout reference-transaction post-index-change pre-commit pre-push update; do hook "$T/hooks" $h; done; set_ core.hooksPath "$T/hooks"`, spring: `git checkout -q -b new`},
		{Name: "core.fsmonitor", plant: `set_ core.fsmonitor "$run"`, spring: `git status`},
		{Name: "filter.clean", plant: `attribute filter=clean; set_ filter.clean.clean "$run"; set_ filter.clean.required true`, spring: `echo more >> README.md; git add -A`},
		{Name: "filter.smudge", plant: `attribute filter=smudge; set_ filter.smudge.smudge "$run"`, spring: `rm README.md; git checkout README.md`},
		{Name: "filter.process", plant: `attribute filter=process; set_ filter.process.process "$run"`, spring: `echo more >> README.md; git add -A`},
		{Name: "filter.lfs", plant: `attribute "filter=lfs diff=lfs merge=lfs -text"; set_ filter.lfs.clean "$run"; set_ filter.lfs.smudge "$run"; set_ filter.lfs.process "$run"; printf '[lfs]\n\turl = ext::%s\n' "$run" > .lfsconfig`, spring: `echo more >> README.md; git add -A`},
		{Name: "info-attributes", plant: `mkdir -p .git/info; echo '* filter=info text eol=crlf' > .git/info/attributes; set_ filter.info.clean "$run"; set_ filter.info.smudge "$run"`, spring: `echo more >> README.md; git add -A`},
		{Name: "core.attributesFile", plant: `echo '* filter=file' > "$T/attributes"; set_ core.attributesFile "$T/attributes"; set_ filter.file.clean "$run"`, spring: `echo more >> README.md; git add -A`},
		{Name: "diff.external", plant: `set_ diff.external "$run"`, spring: `echo more >> README.md; git diff`},
		{Name: "diff.command", plant: `attribute diff=command; set_ diff.command.command "$run"`, spring: `echo more >> README.md; git diff`},
		{Name: "diff.textconv", plant: `attribute diff=textconv; set_ diff.textconv.textconv "$run"`, spring: `echo more >> README.md; git diff`},
		{Name: "difftool", plant: `set_ diff.tool evil; set_ difftool.evil.cmd "$run"`, spring: `echo more >> README.md; git difftool -y`},
		{Name: "merge.driver", plant: `attribute merge=evil; set_ merge.evil.driver "$run"; set_ merge.default evil`, spring: `git checkout -q -b left; echo left > README.md; git commit -qam left; git checkout -q -b right HEAD~1; echo right > README.md; git commit -qam right; git merge left`},
		{Name: "gpg.program", plant: `set_ gpg.program "$run"; set_ commit.gpgSign true; set_ push.gpgSign if-asked`, spring: `git commit -q --allow-empty -m x`},
		{Name: "gpg.ssh.defaultKeyCommand", plant: `set_ gpg.format ssh; set_ gpg.ssh.defaultKeyCommand "$run"; set_ commit.gpgSign true`, spring: `git commit -q --allow-empty -m x`},
		{Name: "core.editor", plant: `set_ core.editor "$run"`, spring: `git commit --allow-empty`},
		{Name: "sequence.editor", plant: `set_ sequence.editor "$run"`, spring: `git rebase -i HEAD~1`},
		{Name: "core.pager", plant: `set_ core.pager "$run"; set_ pager.diff-tree "$run"`, spring: `git grep -O .`},
		{Name: "core.sshCommand", plant: `set_ core.sshCommand "$run"`, spring: `git ls-remote ssh://host.invalid/x`},
		{Name: "core.gitProxy", plant: `set_ core.gitProxy "$run"`, spring: `git ls-remote git://host.invalid/x`},
		{Name: "core.askPass", plant: `set_ core.askPass "$run"`, spring: `printf 'protocol=https\nhost=host.invalid\n\n' | git credential fill`},
		{Name: "credential.helper", plant: `set_ credential.helper "!$run"`, spring: `printf 'protocol=https\nhost=host.invalid\n\n' | git credential fill`},
		{Name: "trace2.normalTarget", plant: `global trace2.normalTarget "$T/sprung/$name"`, spring: `git status`},
		{Name: "alias", plant: `for verb in st ls-tree index-pack read-tree; do set_ alias.$verb "!$run"; done`, spring: `git st`},
		{Name: "url.insteadOf", plant: `set_ "url.ext::$run .insteadOf" https://; set_ protocol.ext.allow always`, spring: `git ls-remote https://host.invalid/x`},
		{Name: "url.pushInsteadOf", plant: `set_ "url.ext::$run .pushInsteadOf" https://; set_ protocol.ext.allow always`, spring: `git push https://host.invalid/x HEAD`},
		{Name: "remote.url", plant: `set_ remote.origin.url "ext::$run"; set_ protocol.ext.allow always`, spring: `git fetch`},
		{Name: "remote.uploadpack", plant: `set_ remote.origin.url "$PWD"; set_ remote.origin.uploadpack "$run"; set_ remote.origin.receivepack "$run"`, spring: `git fetch`},
		{Name: "partial-clone", plant: `set_ core.repositoryFormatVersion 1; set_ extensions.partialClone evil; set_ remote.evil.promisor true; set_ remote.evil.url "ext::$run"; set_ protocol.ext.allow always`, spring: `git cat-file -p 0123456789012345678901234567890123456789`},
		{Name: "alternates", plant: `mkdir -p "$T/other/objects/info" "$T/other/refs" .git/objects/info; echo "ref: refs/heads/main" > "$T/other/HEAD"; echo "$T/other/objects" > .git/objects/info/alternates; set_ core.alternateRefsCommand "$run"`, spring: `git rev-list --alternate-refs`},
		{Name: "trailer.command", plant: `set_ trailer.x.command "$run"`, spring: `echo x | git interpret-trailers --trailer x=1`},
		{Name: "tar.command", plant: `set_ tar.evil.command "$run"`, spring: `git archive --format=evil HEAD`},
		{Name: "include.path", plant: `git config -f "$T/included" core.fsmonitor "$run"; set_ include.path "$T/included"`, spring: `git status`},
		{Name: "includeIf", plant: `git config -f "$T/included-if" core.fsmonitor "$run"; set_ 'includeIf.gitdir:**.path' "$T/included-if"`, spring: `git status`},
		{Name: "config.worktree", plant: `set_ core.repositoryFormatVersion 1; set_ extensions.worktreeConfig true; git config -f .git/config.worktree core.fsmonitor "$run"`, spring: `git status`},
		{Name: "global-config", plant: `global core.fsmonitor "$run"; global core.hooksPath "$T/hooks"; global diff.external "$run"; global credential.helper "!$run"; global http.proxy http://127.0.0.1:1`, spring: `git status`},
		{Name: "xdg-config", plant: `mkdir -p "$HOME/.config/git"; git config -f "$HOME/.config/git/config" core.fsmonitor "$run"`, spring: `git status`},
		{Name: "uploadpack.packObjectsHook", plant: `global uploadpack.packObjectsHook "$run"`, spring: `git clone -q "file://$PWD" "$T/clone"`},
		{Name: "init.templateDir", plant: `hook "$T/template/hooks" reference-transaction; global init.templateDir "$T/template"`, spring: `git clone -q . "$T/copy"`},
		{Name: "envrc-external-diff", plant: `echo "export GIT_EXTERNAL_DIFF=$run" >> .envrc`, spring: `. ./.envrc; echo more >> README.md; git diff`},
		{Name: "envrc-config-count", plant: `echo "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=$run" >> .envrc; cp .envrc .env; cp .envrc "$HOME/.bashrc"; cp .envrc "$HOME/.profile"`, spring: `. ./.env; git status`},
		{Name: "envrc-ssh-command", plant: `echo "export GIT_SSH_COMMAND=$run GIT_PROXY_COMMAND=$run GIT_ASKPASS=$run" >> .envrc; cp .envrc "$HOME/.bash_profile"`, spring: `. ./.envrc; git ls-remote ssh://host.invalid/x`},
		{Name: "core.worktree", plant: `set_ core.worktree "$T/sprung"`, spring: `git checkout -q -f HEAD`},
		{Name: "nested-repository", Local: true, plant: `mkdir -p vendor/lib/.git/objects vendor/lib/.git/refs; echo 'ref: refs/heads/main' > vendor/lib/.git/HEAD; git config -f vendor/lib/.git/config core.fsmonitor "$run"; echo code > vendor/lib/code`, spring: `git -C vendor/lib status`},
		{Name: "embedded-bare-repository", Local: true, plant: `mkdir -p bare/objects bare/refs; echo 'ref: refs/heads/main' > bare/HEAD; git config -f bare/config core.bare true; git config -f bare/config core.sshCommand "$run"`, spring: `git -C bare fetch ssh://host.invalid/x`},
		{Name: "submodule.update", Local: true, plant: `printf '[submodule "evil"]\n\tpath = evil\n\turl = ext::%s\n' "$run" > .gitmodules; set_ submodule.evil.url "$PWD"; set_ submodule.evil.update "!$run"; set_ submodule.recurse true; mkdir -p evil/.git/objects evil/.git/refs; echo 'ref: refs/heads/main' > evil/.git/HEAD; printf '[core]\n\trepositoryformatversion = 0\n' > evil/.git/config`, spring: `git -C evil commit -q --allow-empty -m x; git update-index --add --cacheinfo 160000,"$(git -C evil rev-parse HEAD)",evil; git -C evil commit -q --allow-empty -m y; git submodule update`},
		{Name: "gitdir-file", Local: true, plant: `mkdir -p linked "$T/linked/objects" "$T/linked/refs"; echo 'ref: refs/heads/main' > "$T/linked/HEAD"; git config -f "$T/linked/config" core.fsmonitor "$run"; echo "gitdir: $T/linked" > linked/.git; echo code > linked/code`, spring: `git -C linked status`},
		{Name: "moved-git-dir", Local: true, plant: `git config -f .git/config core.fsmonitor "$run"; cp -a .git "$T/moved.git"; rm -rf .git; echo "gitdir: $T/moved.git" > .git`, spring: `git status`},
	}
}
