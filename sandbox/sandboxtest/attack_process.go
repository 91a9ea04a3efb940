package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
)

// exhaustion is what a case needs that takes all memory and wants to be told so.
var exhaustion = []Capability{CommandsReal, Contained, ExhaustionContained}

func processAttacks() []testCase {
	return []testCase{
		{name: "a fork bomb that ignores every signal", needs: contained, run: forkBomb},
		{name: "a fork bomb of the shell", needs: contained, run: shellBomb},
		{name: "a bomb of threads", needs: contained, run: threadBomb},
		{name: "a bomb that is cancelled while files are read", needs: contained, run: bombBesideReads},
		{name: "a thousand orphans leave no zombie", needs: contained, run: orphans},
		{name: "a daemon with closed streams", needs: contained, run: daemonised},
		{name: "a child that goes on printing", needs: real, run: chattyChild},
		{name: "busy loops behind a time limit", needs: real, run: busyLoops},
		{name: "a command that stops itself", needs: real, run: stopsItself},
		{name: "a child that is killed for memory", needs: exhaustion, run: childOutOfMemory},
		{name: "children that hold all memory", needs: exhaustion, run: allOutOfMemory},
		{name: "an exit status that looks like a death", needs: real, run: likeADeath},
		{name: "two commands at once leave each other alone", needs: real, run: twoCommands},
	}
}

const bomb = `python3 -c '
import os, signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True:
    try: os.fork()
    except OSError: pass'`

// over demands that a command ended by its time limit.
func over(t *testing.T, ws box, cmd core.Command) {
	t.Helper()
	res, err := ws.within(t, cmd.Timeout+2*quickly, cmd)
	if err != nil && ws.lost(t) {
		return
	}
	if err != nil || !res.TimedOut {
		t.Fatalf("%+v, %v", res, err)
	}
}

func forkBomb(t *testing.T, ws box) {
	for range 3 {
		over(t, ws, core.Command{Shell: bomb, Timeout: time.Second})
		if ws.lost(t) {
			return
		}
		ws.unharmed(t)
	}
}

func shellBomb(t *testing.T, ws box) {
	// The shell that began it may give up, and what it left is ended then.
	res, err := ws.Run(t.Context(), core.Command{Shell: `bomb() { bomb | bomb & }; bomb; while :; do sleep 1; done`, Timeout: time.Second})
	if err != nil && ws.lost(t) {
		return
	}
	if err != nil || !res.TimedOut && res.Survivors == 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

func threadBomb(t *testing.T, ws box) {
	over(t, ws, core.Command{Timeout: time.Second, Shell: `python3 -c '
import threading, time
while True:
    try: threading.Thread(target=time.sleep, args=(99,)).start()
    except RuntimeError: pass'`})
}

// bombBesideReads gives the toolbox much to do when it can make no thread for it any more.
func bombBesideReads(t *testing.T, ws box) {
	ws.must(t, `for i in $(seq 50); do mkdir -p many/d$i; for j in 1 2 3 4; do echo needle > many/d$i/f$j; done; done`)
	bombed, ended := make(chan error, 1), make(chan error, 24)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := ws.Run(ctx, core.Command{Shell: strings.Replace(bomb, "pass'", "open(\"full\", \"w\").close()'", 1), Timeout: time.Minute})
		bombed <- err
	}()
	waitFor(t, func() bool { _, err := ws.Stat(t.Context(), "full"); return err == nil || ws.lost(t) })
	for range cap(ended) {
		go func() {
			hits, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "needle"})
			if err == nil && hits.Matches == 0 {
				err = errors.New("found nothing")
			}
			if err != nil && ws.lost(t) {
				err = nil
			}
			ended <- err
		}()
	}
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Errorf("beside the bomb: %v", err)
		}
	}
	cancel()
	if err := soon(t, bombed, quickly); !errors.Is(err, context.Canceled) && !ws.lost(t) {
		t.Errorf("the bomb ended with %v", err)
	}
	if !ws.lost(t) {
		ws.must(t, "rm -r many full")
	}
}

func orphans(t *testing.T, ws box) {
	got := ws.must(t, `python3 -c '
import os
for i in range(1000):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()'`)
	if got != "" {
		t.Errorf("output %q", got)
	}
	waitFor(t, func() bool {
		return ws.must(t, `n=0; for p in /proc/[0-9]*; do case "$(cat $p/stat 2>/dev/null)" in *") Z "*) n=$((n+1));; esac; done; echo $n`) == "0\n"
	})
}

func daemonised(t *testing.T, ws box) {
	mark := marker()
	res, err := ws.Run(t.Context(), core.Command{Shell: `python3 -c '
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for s in (1, 2, 15, 17, 18, 20): signal.signal(s, signal.SIG_IGN)
        for fd in range(64):
            try: os.close(fd)
            except OSError: pass
        os.chdir("/")
        open("/tmp/daemon", "w").close()
        os.execvp("sleep", ["sleep", "` + mark + `"])
    os._exit(0)
os.wait()
import time
while not os.path.exists("/tmp/daemon"): time.sleep(0.01)'; rm /tmp/daemon; echo done`})
	if err != nil || string(res.Head) != "done\n" || res.Exit != 0 || res.Survivors != 1 {
		t.Errorf("%+v, output %q, %v", res, res.Head, err)
	}
	if n := ws.alive(t, mark); n != "0" {
		t.Errorf("%s processes alive", n)
	}
}

func chattyChild(t *testing.T, ws box) {
	res, err := ws.within(t, quickly, core.Command{Shell: `(while :; do echo tick; sleep 0.1; done) & sleep 0.3; echo front`, Timeout: time.Minute})
	if err != nil || res.Exit != 0 || res.TimedOut || res.Survivors == 0 || !strings.Contains(string(res.Head), "front\n") {
		t.Errorf("%+v, output %q, %v", res, res.Head, err)
	}
}

func busyLoops(t *testing.T, ws box) {
	mark := marker()
	res, err := ws.Run(t.Context(), core.Command{
		Shell:   `for i in 1 2 3; do (exec -a ` + mark + ` bash -c 'while :; do :; done') & done; echo so far; sleep 600`,
		Timeout: time.Second,
	})
	if err != nil || !res.TimedOut || res.Exit < 128 || string(res.Head) != "so far\n" {
		t.Errorf("%+v, output %q, %v", res, res.Head, err)
	}
	if n := ws.alive(t, mark); n != "0" {
		t.Errorf("%s loops alive", n)
	}
}

func stopsItself(t *testing.T, ws box) {
	over(t, ws, core.Command{Shell: "kill -STOP $$; echo never", Timeout: 500 * time.Millisecond})
	over(t, ws, core.Command{Shell: "trap '' TERM CONT TSTP; setsid bash -c 'kill -STOP $$' & kill -STOP 0; echo never", Timeout: 500 * time.Millisecond})
}

// hog takes memory until it is stopped.
const hog = `python3 -c '
x = []
while True: x.append(bytearray(8 << 20))'`

func childOutOfMemory(t *testing.T, ws box) {
	res, err := ws.Run(t.Context(), core.Command{Shell: "echo begin; " + hog + "; echo then $?"})
	if err != nil && ws.lost(t) {
		return
	}
	if err != nil || res.Exit != 0 || !res.OOMKilled ||
		!strings.HasPrefix(string(res.Head), "begin\n") || !strings.HasSuffix(string(res.Head), "then 137\n") {
		t.Errorf("%+v, output %q, %v", res, res.Head, err)
	}
	if res.MemoryLimit <= 0 {
		t.Errorf("memory limit %d", res.MemoryLimit)
	}
	res, err = ws.Run(t.Context(), core.Command{Shell: "exec " + hog})
	if err != nil || res.Exit != 137 || res.Signal != "KILL" || !res.OOMKilled || res.MemoryLimit <= 0 {
		t.Errorf("%+v, %v", res, err)
	}
	// The next one is not blamed for it.
	if res, err := ws.Run(t.Context(), core.Command{Shell: "kill -KILL $$"}); err != nil || res.OOMKilled || res.MemoryLimit != 0 || res.Exit != 137 {
		t.Errorf("%+v, %v", res, err)
	}
}

func allOutOfMemory(t *testing.T, ws box) {
	res, err := ws.Run(t.Context(), core.Command{Shell: "for i in $(seq 12); do " + hog + " & done; wait; echo ended", Timeout: time.Minute})
	if err != nil && ws.lost(t) {
		return
	}
	if err != nil || !res.OOMKilled {
		t.Errorf("%+v, output %q, %v", res, res.Head, err)
	}
}

func likeADeath(t *testing.T, ws box) {
	for shell, exit := range map[string]int{"exit 137": 137, "exit 143": 143, "exit 126": 126, "exit 127": 127} {
		if res, err := ws.Run(t.Context(), core.Command{Shell: shell}); err != nil || res.Exit != exit || res.Signal != "" || res.OOMKilled || res.TimedOut {
			t.Errorf("%s: %+v, %v", shell, res, err)
		}
	}
}

func twoCommands(t *testing.T, ws box) {
	ended := make(chan string, 2)
	for range cap(ended) {
		go func() {
			res, err := ws.Run(t.Context(), core.Command{Shell: "sleep 0.2; echo whole"})
			if err != nil {
				t.Error(err)
			}
			ended <- string(res.Head)
		}()
	}
	for range cap(ended) {
		if got := <-ended; got != "whole\n" {
			t.Errorf("output %q", got)
		}
	}
}
