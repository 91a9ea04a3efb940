package sandboxtest

import (
	"io"
	"testing"

	"agent-sandboxing/core"
)

// canary is where whatever should not have run would leave its mark.
const canary = "/tmp/canary"

func poisonAttacks() []testCase {
	return []testCase{
		{name: "start-up files of the shell", needs: real, run: poisonStartup},
		{name: "a variable that names a file to run", needs: real, run: poisonEnvironment},
		{name: "programs in front of the path", needs: real, run: poisonPath},
		{name: "a library that is loaded first", needs: contained, run: poisonLoader},
		{name: "a loop that waits for the next command", needs: real, run: poisonLoop},
		{name: "functions and options of the last shell", needs: real, run: poisonShell},
		{name: "folders of the commands that are gone", needs: real, run: poisonFolders},
	}
}

// clean fails when the canary has been touched, by commands or by the platform's own programs.
func clean(t *testing.T, ws box) {
	t.Helper()
	ws.must(t, "git --version && ls && echo hello | cat")
	if _, err := ws.GitState(t.Context()); err != nil {
		t.Errorf("state: %v", err)
	}
	if _, err := ws.Snapshot(t.Context(), io.Discard); err != nil {
		t.Errorf("snapshot: %v", err)
	}
	if _, err := ws.Checkpoint(t.Context(), io.Discard, 64<<20); err != nil {
		t.Errorf("checkpoint: %v", err)
	}
	if _, err := ws.Stat(t.Context(), canary); core.CodeOf(err) != "not_found" {
		t.Errorf("something was run: %v", err)
		ws.must(t, "rm -f "+canary)
	}
}

func poisonStartup(t *testing.T, ws box) {
	ws.must(t, `for f in .bashrc .bash_profile .profile .bash_login .bash_logout .inputrc .zshrc .bash_aliases .environment .pam_environment; do echo 'touch `+canary+`' > "$HOME/$f"; done`)
	clean(t, ws)
	ws.must(t, `rm -rf "$HOME"/.[a-z]*`)
}

func poisonEnvironment(t *testing.T, ws box) {
	ws.must(t, `echo 'touch `+canary+`' > /tmp/evil; export BASH_ENV=/tmp/evil ENV=/tmp/evil PROMPT_COMMAND='touch `+canary+`' GIT_SSH_COMMAND=/tmp/evil GIT_EXTERNAL_DIFF=/tmp/evil PYTHONSTARTUP=/tmp/evil`)
	if got := ws.must(t, "env | grep -E 'BASH_ENV|^ENV|PROMPT_COMMAND|GIT_SSH|GIT_EXT|PYTHONSTART|LD_' || true"); got != "" {
		t.Errorf("the environment has %q", got)
	}
	clean(t, ws)
}

func poisonPath(t *testing.T, ws box) {
	ws.must(t, `mkdir -p "$HOME/bin" "$HOME/.local/bin" bin && for p in git ls bash sh cat env; do for d in "$HOME/bin" "$HOME/.local/bin" bin .; do printf '#!/bin/sh\ntouch `+canary+`\n' > $d/$p; chmod +x $d/$p; done; done`)
	if got := ws.must(t, `case ":$PATH:" in *:.:*|*::*|*/home/*|*workspace*|*tmp*) echo "$PATH";; esac`); got != "" {
		t.Errorf("PATH is %q", got)
	}
	clean(t, ws)
	ws.must(t, `rm -rf "$HOME/bin" "$HOME/.local" bin git ls bash sh cat env`)
}

func poisonLoader(t *testing.T, ws box) {
	if got := ws.must(t, `for f in /etc/ld.so.preload /etc/ld.so.conf /etc/profile /etc/bash.bashrc /etc/gitconfig /usr/local/bin/git /etc/environment; do (echo x >> $f) 2>/dev/null && echo wrote $f; done; true`); got != "" {
		t.Errorf("%q", got)
	}
	ws.must(t, "export LD_PRELOAD=/tmp/evil.so LD_LIBRARY_PATH=/tmp; :")
	clean(t, ws)
}

func poisonLoop(t *testing.T, ws box) {
	res, err := ws.Run(t.Context(), core.Command{Shell: `(setsid bash -c 'trap "" TERM; while :; do touch ` + canary + `-loop; sleep 0.01; done' > /dev/null 2>&1 &); sleep 0.2; echo begun`})
	if err != nil || res.Survivors == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	ws.must(t, "rm -f "+canary+"-loop")
	if _, err := ws.KillAll(t.Context()); err != nil {
		t.Error(err)
	}
	if got := ws.must(t, "sleep 0.3; ls "+canary+"-loop 2>/dev/null || true"); got != "" {
		t.Errorf("%q after it was killed", got)
	}
}

func poisonShell(t *testing.T, ws box) {
	ws.must(t, `ls() { touch `+canary+`; }; export -f ls; alias git='touch `+canary+`'; set -o noexec 2>/dev/null; :`)
	limit := ws.must(t, "ulimit -f")
	ws.must(t, `umask 777; ulimit -f 0; ulimit -n 3; cd /; :`)
	if got := ws.must(t, `umask; ulimit -f; pwd | sed 's|.*/||'; echo x > made && cat made && rm made`); got != "0022\n"+limit+"repo\nx\n" {
		t.Errorf("%q", got)
	}
	clean(t, ws)
}

func poisonFolders(t *testing.T, ws box) {
	ws.must(t, `rm -rf "$HOME"/* "$HOME"/.[a-z]* 2>/dev/null; chmod 0 "$HOME" 2>/dev/null; rm -rf ../repo/* 2>/dev/null; rm -rf "$TMPDIR"/* 2>/dev/null; :`)
	if got := ws.must(t, `echo here; chmod 700 "$HOME"`); got != "here\n" {
		t.Errorf("%q", got)
	}
	res, err := ws.Run(t.Context(), core.Command{Shell: "rmdir ../repo 2>/dev/null; mkdir -p sub; cd sub; rmdir ../sub; pwd >/dev/null; echo still"})
	if err != nil || string(res.Head) != "still\n" {
		t.Errorf("%q, %v", res.Head, err)
	}
	clean(t, ws)
}
