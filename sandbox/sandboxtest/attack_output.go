package sandboxtest

import (
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
)

func outputAttacks() []testCase {
	return []testCase{
		{name: "output without end", needs: real, run: endlessOutput},
		{name: "a line without end", needs: real, run: endlessLine},
		{name: "NUL escapes and no text are kept as they are", needs: real, run: rawOutput},
		{name: "a log that is a link is replaced", needs: real, run: logIsALink},
		{name: "a log that cannot be written costs nothing else", needs: real, run: logIsAFolder},
		{name: "output that poses as the toolbox", needs: real, run: posesAsToolbox},
	}
}

func endlessOutput(t *testing.T, ws box) {
	res, err := ws.Run(t.Context(), core.Command{Shell: "yes", Timeout: 2 * time.Second})
	if err != nil || !res.TimedOut || len(res.Head) != 10<<10 || len(res.Tail) != 40<<10 || res.Total < 1<<20 || res.Omitted != res.Total-50<<10 {
		t.Errorf("head %d, tail %d, total %d, %v", len(res.Head), len(res.Tail), res.Total, err)
	}
	if want := res.Total / 2; res.Lines != want {
		t.Errorf("%d lines of %d bytes", res.Lines, res.Total)
	}
}

func endlessLine(t *testing.T, ws box) {
	res, err := ws.Run(t.Context(), core.Command{Shell: `head -c 20000000 /dev/zero | tr '\0' a`})
	if err != nil || res.Total != 20_000_000 || res.Lines != 0 || string(res.Tail) != strings.Repeat("a", 40<<10) {
		t.Errorf("total %d, lines %d, %v", res.Total, res.Lines, err)
	}
}

func rawOutput(t *testing.T, ws box) {
	const text = "a\x00b\x1b[2J\x1b]0;title\x07\x1b]8;;http://x\x1b\\\u202e\xff\xfe\r\n\x08\x7f"
	ws.write(t, map[string]string{"raw": text})
	if got := ws.must(t, "cat raw; rm raw"); got != text {
		t.Errorf("%q", got)
	}
}

func logIsALink(t *testing.T, ws box) {
	ws.must(t, `mkdir -p /tmp/agent-out && echo mine > "$HOME/mine" && ln -sf "$HOME/mine" /tmp/agent-out/link.log`)
	res, err := ws.Run(t.Context(), core.Command{Shell: count("9000"), LogName: "link.log", KeepHead: 10, KeepTail: 10})
	if err != nil || res.LogPath == "" {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := ws.must(t, `cat "$HOME/mine"; rm "$HOME/mine"; stat -c %F /tmp/agent-out/link.log`); got != "mine\nregular file\n" {
		t.Errorf("%q", got)
	}
}

func logIsAFolder(t *testing.T, ws box) {
	ws.must(t, `mkdir -p /tmp/agent-out/full.log/x`)
	res, err := ws.Run(t.Context(), core.Command{Shell: count("9000"), LogName: "full.log", KeepHead: 10, KeepTail: 10})
	if err != nil || res.LogPath != "" || res.Lines != 9000 {
		t.Errorf("log %q, %d lines, %v", res.LogPath, res.Lines, err)
	}
	ws.must(t, `rm -r /tmp/agent-out && ln -s "$HOME" /tmp/agent-out`)
	res, err = ws.Run(t.Context(), core.Command{Shell: count("9000"), LogName: "home.log", KeepHead: 10, KeepTail: 10})
	if err != nil || res.LogPath != "" {
		t.Errorf("log %q, %v", res.LogPath, err)
	}
	if got := ws.must(t, `ls "$HOME"; rm /tmp/agent-out`); got != "" {
		t.Errorf("home holds %q", got)
	}
}

// posesAsToolbox prints frames of the protocol: output is data, wherever it comes from.
func posesAsToolbox(t *testing.T, ws box) {
	got := ws.must(t, `for i in $(seq 100); do printf '\365\010\0\0\0\001\0\002{}\0\0\0\0\365\012\0\0\0\0\0\0'; done; head -c 65600 /dev/zero | wc -c`)
	if !strings.HasSuffix(got, "65600\n") {
		t.Errorf("%q", got)
	}
}
