package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
)

// cancelLimit is how long a cancelled command may take to be over.
const cancelLimit = 2 * time.Second

func commandCases() []testCase {
	return []testCase{
		{name: "run gives the exit status", run: runExit},
		{name: "run merges both outputs in order", run: runMerges},
		{name: "run keeps bytes as they are", run: runBytes},
		{name: "run starts anew in the repository", run: runDir},
		{name: "run has a fixed environment", run: runEnv},
		{name: "run has no input", run: runInput},
		{name: "run answers 127 for what is not there", run: runMissing},
		{name: "run cuts output in the middle", run: runCut},
		{name: "run keeps the whole output in a log", run: runLog},
		{name: "run says when it timed out", run: runTimeout},
		{name: "run stops within two seconds of a cancel", run: runCancel},
		{name: "run refuses what is no command", run: runRefuses},
		{name: "requests run side by side with a command", run: runBeside},
		{name: "the toolbox answers a ping", run: ping},
	}
}

func runExit(t *testing.T, ws box) {
	for shell, want := range map[string]int{"true": 0, "false": 1, "exit 3": 3, "exit 255": 255, "(exit 7)": 7} {
		res, err := ws.Run(t.Context(), core.Command{Shell: "echo before; " + shell})
		if err != nil || res.Exit != want || string(res.Head) != "before\n" || res.Duration <= 0 {
			t.Errorf("%s: %+v, %v, want exit %d", shell, res, err, want)
		}
	}
}

func runMerges(t *testing.T, ws box) {
	got := ws.must(t, "echo 1; echo 2 >&2; echo 3; echo 4 >&2")
	if want := "1\n2\n3\n4\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

func runBytes(t *testing.T, ws box) {
	got := ws.must(t, `printf 'a\377\000b\n\033[1mc'`)
	if want := "a\xff\x00b\n\x1b[1mc"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

func runDir(t *testing.T, ws box) {
	ws.must(t, "mkdir -p sub && cd sub && X=1 && echo here > file")
	if got := ws.must(t, "cat sub/file; echo $X"); got != "here\n\n" {
		t.Errorf("output %q: folder or variable of the last command was kept", got)
	}
	res, err := ws.Run(t.Context(), core.Command{Shell: "cat file", Dir: "sub"})
	if err != nil || string(res.Head) != "here\n" {
		t.Errorf("in sub: %q, %v", res.Head, err)
	}
}

func runEnv(t *testing.T, ws box) {
	res, err := ws.Run(t.Context(), core.Command{
		Shell: `echo "$LANG $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $TERM $NO_COLOR $CI $MINE"; test -n "$HOME" && test -d "$TMPDIR"`,
		Env:   []string{"MINE=two words", "TERM=xterm"},
	})
	if want := "C.UTF-8 cat cat 0 xterm 1 1 two words\n"; err != nil || res.Exit != 0 || string(res.Head) != want {
		t.Errorf("output %q, exit %d, %v, want %q", res.Head, res.Exit, err, want)
	}
}

func runInput(t *testing.T, ws box) {
	if got := ws.must(t, "cat; echo end"); got != "end\n" {
		t.Errorf("output %q", got)
	}
}

func runMissing(t *testing.T, ws box) {
	res, err := ws.Run(t.Context(), core.Command{Shell: "no-such-program-here"})
	if err != nil || res.Exit != 127 || !strings.Contains(string(res.Head), "no-such-program-here") {
		t.Errorf("exit %d, output %q, %v", res.Exit, res.Head, err)
	}
}

// count prints the numbers below n, each on a line.
func count(n string) string {
	return "i=0; while [ $i -lt " + n + " ]; do echo $i; i=$((i+1)); done"
}

func runCut(t *testing.T, ws box) {
	res, err := ws.Run(t.Context(), core.Command{Shell: count("3000"), KeepHead: 10, KeepTail: 12})
	if err != nil {
		t.Fatal(err)
	}
	want := core.CommandResult{
		Head:     []byte("0\n1\n2\n3\n4\n"),
		Tail:     []byte("7\n2998\n2999\n"),
		Total:    10*2 + 90*3 + 900*4 + 2000*5,
		Lines:    3000,
		Omitted:  10*2 + 90*3 + 900*4 + 2000*5 - 22,
		Duration: res.Duration,
	}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func runLog(t *testing.T, ws box) {
	res, err := ws.Run(t.Context(), core.Command{Shell: count("3000"), KeepHead: 10, KeepTail: 10, LogName: "17.log"})
	if err != nil || res.LogPath != core.OutputDir+"/17.log" {
		t.Fatalf("log %q, %v", res.LogPath, err)
	}
	whole := ws.read(t, res.LogPath)
	if int64(len(whole)) != res.Total || !strings.HasPrefix(whole, "0\n1\n") || !strings.HasSuffix(whole, "\n2999\n") {
		t.Errorf("the log has %d bytes, want %d", len(whole), res.Total)
	}
	res, err = ws.Run(t.Context(), core.Command{Shell: "echo short", LogName: "18.log"})
	if err != nil || res.LogPath != "" || res.Omitted != 0 {
		t.Errorf("short output: log %q, %v", res.LogPath, err)
	}
	_, err = ws.Run(t.Context(), core.Command{Shell: "true", LogName: "../../x"})
	wantCode(t, "log name with a path", err, "path_invalid")
}

func runTimeout(t *testing.T, ws box) {
	const timeout = 2 * time.Second // long enough for the first word on a busy machine
	res, err := ws.within(t, timeout+quickly, core.Command{Shell: "echo so far; sleep 60; echo never", Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	if !res.TimedOut || res.Exit < 128 || res.Signal == "" || string(res.Head) != "so far\n" {
		t.Errorf("%+v, output %q", res, res.Head)
	}
	if got := ws.must(t, "echo next"); got != "next\n" {
		t.Errorf("next command: %q", got)
	}
}

func runCancel(t *testing.T, ws box) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan core.CommandResult, 1)
	go func() {
		res, err := ws.Run(ctx, core.Command{Shell: "echo so far; echo > started; sleep 60"})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want the context's", err)
		}
		ended <- res
	}()
	waitFor(t, func() bool { _, err := ws.Stat(t.Context(), "started"); return err == nil })
	cancel()
	res := soon(t, ended, cancelLimit)
	if string(res.Head) != "so far\n" || res.TimedOut {
		t.Errorf("output so far %q, timed out %t", res.Head, res.TimedOut)
	}
	if got := ws.must(t, "echo next"); got != "next\n" {
		t.Errorf("next command: %q", got)
	}
}

func runRefuses(t *testing.T, ws box) {
	_, err := ws.Run(t.Context(), core.Command{Shell: "true", Dir: "missing"})
	wantCode(t, "missing folder", err, "not_found")
	_, err = ws.Run(t.Context(), core.Command{Shell: "true", Dir: "/etc"})
	wantCode(t, "folder outside", err, "path_outside_workspace")
	_, err = ws.Run(t.Context(), core.Command{Shell: "echo a\x00b"})
	wantCode(t, "NUL in the text", err, "toolbox_request_invalid")
	_, err = ws.Run(t.Context(), core.Command{Shell: strings.Repeat("x", 1<<20)})
	wantCode(t, "a megabyte of text", err, "command_too_long")
	if got := ws.must(t, "echo next"); got != "next\n" {
		t.Errorf("next command: %q", got)
	}
}

func runBeside(t *testing.T, ws box) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := ws.Run(ctx, core.Command{Shell: "sleep 60"})
		ended <- err
	}()
	ws.write(t, map[string]string{"a.txt": "text"})
	if got := ws.read(t, "a.txt"); got != "text" {
		t.Errorf("read %q", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's", err)
	}
}

func ping(t *testing.T, ws box) {
	if err := ws.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
