package sandboxtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
)

// quickly is more than any answer takes that does not look at everything it could.
const quickly = 15 * time.Second

// native is what a case needs that makes very many calls.
var native = []Capability{CommandsReal, NativeFiles}

func fileAttacks() []testCase {
	return []testCase{
		{name: "a hard link is not written through", needs: real, run: hardLink},
		{name: "no hard link to what is another's", needs: contained, run: foreignHardLink},
		{name: "no device can be made", needs: contained, run: noDevices},
		{name: "a link to a device or a process is refused", needs: real, run: linksToSpecial},
		{name: "a pipe swapped in for a file never hangs a read", needs: real, run: pipeSwap},
		{name: "a file that grows while it is read", needs: real, run: growingFile},
		{name: "a huge file that holds nothing", needs: real, run: sparseFile},
		{name: "names that are options newlines or no text", needs: real, run: hostileNames},
		{name: "a tree of 4000 levels", needs: native, run: deepTree},
		{name: "a folder of 100000 entries", needs: []Capability{CommandsReal, Contained, NativeFiles}, run: crowdedFolder},
		{name: "a name of 255 bytes and a path beyond the limit", needs: real, run: longNames},
		{name: "an unreadable folder is named, not passed over", needs: contained, run: unreadableFolder},
		{name: "gitignore rules without end", needs: real, run: endlessIgnores},
		{name: "a pattern that would never end elsewhere", needs: real, run: evilPattern},
	}
}

func hardLink(t *testing.T, ws box) {
	ws.must(t, `echo old > one && chmod 640 one && ln one two`)
	stat, err := ws.Write(t.Context(), core.WriteFile{Path: "one", Data: []byte("new\n")})
	if err != nil || stat.Mode != 0o640 {
		t.Errorf("%+v, %v", stat, err)
	}
	if got := ws.must(t, "cat one two; stat -c '%a %h' one; rm one two"); got != "new\nold\n640 1\n" {
		t.Errorf("%q", got)
	}
}

func foreignHardLink(t *testing.T, ws box) {
	if got := ws.must(t, `for f in /etc/passwd /opt/toolbox/toolboxd /proc/1/status /bin/sh; do ln $f here 2>/dev/null && echo linked $f; done; ls here 2>/dev/null; true`); got != "" {
		t.Errorf("%q", got)
	}
}

func noDevices(t *testing.T, ws box) {
	if got := ws.must(t, `mknod kmsg c 1 11 2>/dev/null && echo made; mknod disk b 8 0 2>/dev/null && echo made; true`); got != "" {
		t.Errorf("%q", got)
	}
}

func linksToSpecial(t *testing.T, ws box) {
	for _, target := range []string{"/dev/zero", "/dev/stdin", "/proc/kmsg", "/proc/self/fd/0", "/proc/1/mem", "/proc/self/cwd/../../etc/passwd", "/sys/kernel/notes"} {
		ws.must(t, "ln -sfT "+target+" special")
		refusedAtOnce(t, ws, "special", "path_outside_workspace")
	}
	ws.must(t, "rm special")
}

// refusedAtOnce tries to read, write and search a file.
func refusedAtOnce(t *testing.T, ws box, name, code string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), quickly)
	defer cancel()
	_, err := ws.Read(ctx, name, 0, 0)
	wantCode(t, "read "+name, err, code)
	_, err = ws.Write(ctx, core.WriteFile{Path: name, Data: []byte("x")})
	wantCode(t, "write "+name, err, code)
	_, err = ws.Search(ctx, core.SearchQuery{Pattern: "x", Path: name})
	wantCode(t, "search "+name, err, code)
}

func pipeSwap(t *testing.T, ws box) {
	ws.must(t, "mkfifo pipe && echo text > file")
	stop := ws.meanwhile(t, `touch swapping; while :; do mv -T file other; mv -T pipe file; mv -T file pipe; mv -T other file; done`, "swapping")
	for range 300 {
		ctx, cancel := context.WithTimeout(t.Context(), quickly)
		_, err := ws.Read(ctx, "file", 0, 0)
		if code := core.CodeOf(err); err != nil && code != "not_regular_file" && code != "not_found" {
			t.Fatal(err)
		}
		cancel()
	}
	stop()
	ws.must(t, "rm -f pipe file other swapping")
}

func growingFile(t *testing.T, ws box) {
	stop := ws.meanwhile(t, `echo begin > log; while :; do echo more >> log; done`, "log")
	for range 100 {
		data, err := ws.Read(t.Context(), "log", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data.Data); data.EOF && (data.SHA256 != hex.EncodeToString(sum[:]) || data.Size != int64(len(data.Data))) {
			t.Fatalf("%d bytes of %d with the hash of others", len(data.Data), data.Size)
		}
		if _, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "begin", Path: "log"}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	ws.must(t, "rm log")
}

func sparseFile(t *testing.T, ws box) {
	size, err := strconv.ParseInt(strings.TrimSpace(ws.must(t, `echo needle > small; (truncate -s 50G huge || truncate -s $(($(ulimit -f) * 1024)) huge) 2>/dev/null; stat -c %s huge`)), 10, 64)
	if err != nil || size < 1<<29 {
		t.Fatalf("%d bytes, %v", size, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), quickly)
	defer cancel()
	data, err := ws.Read(ctx, "huge", 0, 100)
	if err != nil || len(data.Data) != 100 || data.EOF || data.Size != size || data.SHA256 != "" {
		t.Errorf("%d bytes, %+v, %v", len(data.Data), data.FileStat, err)
	}
	if hits, err := ws.Search(ctx, core.SearchQuery{Pattern: "needle"}); err != nil || hits.Matches != 1 {
		t.Errorf("%+v, %v", hits, err)
	}
	_, err = ws.Write(ctx, core.WriteFile{Path: "huge", Data: []byte("x"), Expect: strings.Repeat("0", 64)})
	wantCode(t, "write", err, "file_too_large")
	ws.must(t, "rm huge small")
	if size <= 1<<30 {
		return // the sandbox's own limit is below what a snapshot refuses
	}
	f := newFixture(t)
	other := box{PlatformWorkspace: ws.open(t), open: ws.open}
	other.checkout(t, f)
	other.must(t, "truncate -s 50G huge; echo edited > README.md")
	_, err = other.Snapshot(ctx, io.Discard)
	wantCode(t, "snapshot", err, "snapshot_failed")
	if !strings.Contains(core.MessageOf(err), "huge") {
		t.Errorf("%q does not name the file", core.MessageOf(err))
	}
	info, err := other.Checkpoint(ctx, io.Discard, 64<<20)
	if err != nil || !slices.Equal(info.Missing, []string{"huge"}) || info.Files != 1 {
		t.Errorf("checkpoint %+v, %v", info, err)
	}
}

func hostileNames(t *testing.T, ws box) {
	names := []string{
		"-rf", "--help", "a b", "quote'\"`$(touch pwned)", "new\nline", "esc\x1b[31mred", "rtl\u202egpj.exe", "\xff\xfe\x80", "tab\tname",
		"*", "[a", "~", "a:1:b", "%s%n", "\\", "CON", "ends.", " ",
	}
	ws.must(t, "mkdir names")
	for _, name := range names {
		if _, err := ws.Write(t.Context(), core.WriteFile{Path: "names/" + name, Data: []byte("needle\n")}); err != nil {
			t.Fatalf("write %q: %v", name, err)
		}
	}
	list, err := ws.List(t.Context(), "names", 0)
	if err != nil || len(list.Entries) != len(names) {
		t.Fatalf("%d entries, %v", len(list.Entries), err)
	}
	var got []string
	for _, e := range list.Entries {
		got = append(got, strings.TrimPrefix(e.Path, "names/"))
		if data, err := ws.Read(t.Context(), e.Path, 0, 0); err != nil || string(data.Data) != "needle\n" {
			t.Errorf("read %q: %q, %v", e.Path, data.Data, err)
		}
	}
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("listed %q", got)
	}
	if found, err := ws.Find(t.Context(), core.FindQuery{Pattern: "names/*"}); err != nil || len(found.Paths) != len(names) {
		t.Errorf("found %q, %v", found.Paths, err)
	}
	hits, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "needle", Path: "names"})
	if err != nil || hits.Matches != len(names) {
		t.Errorf("%d matches, %v", hits.Matches, err)
	}
	_, err = ws.Read(t.Context(), "names/\x1b]0;title\x07", 0, 0)
	wantCode(t, "a name of control characters", err, "not_found")
	if strings.ContainsAny(core.MessageOf(err), "\x1b\x07") {
		t.Errorf("the message has control characters: %q", core.MessageOf(err))
	}
	ws.must(t, "test ! -e pwned && test ! -e names/pwned && rm -r names")
}

func deepTree(t *testing.T, ws box) {
	ws.must(t, `mkdir deep && python3 -c '
import os
os.chdir("deep")
for i in range(4000):
    os.mkdir("d"); os.chdir("d")
open("needle", "w").write("needle")'`)
	ctx, cancel := context.WithTimeout(t.Context(), 6*quickly)
	defer cancel()
	if found, err := ws.Find(ctx, core.FindQuery{Pattern: "needle", Path: "deep"}); err != nil || !found.More {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := ws.Search(ctx, core.SearchQuery{Pattern: "needle", Path: "deep"}); err != nil {
		t.Error(err)
	}
	if list, err := ws.List(ctx, "deep"+strings.Repeat("/d", 1000), 0); err != nil || len(list.Entries) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	ws.must(t, `mv deep "$HOME/deep"; rm -rf "$HOME/deep"`)
}

func crowdedFolder(t *testing.T, ws box) {
	ws.must(t, `mkdir crowd && python3 -c '
for i in range(100001): open("crowd/%06d" % i, "w").close()'`)
	ctx, cancel := context.WithTimeout(t.Context(), 4*quickly)
	defer cancel()
	list, err := ws.List(ctx, "crowd", 100)
	if err != nil || len(list.Entries) != 100 || !list.More {
		t.Errorf("%d entries, more %t, %v", len(list.Entries), list.More, err)
	}
	found, err := ws.Find(ctx, core.FindQuery{Pattern: "crowd/*", Limit: 5000})
	if err != nil || len(found.Paths) != 5000 || !found.More {
		t.Errorf("%d paths, more %t, %v", len(found.Paths), found.More, err)
	}
	ws.must(t, "rm -r crowd")
}

func longNames(t *testing.T, ws box) {
	longest := strings.Repeat("n", 255)
	ws.write(t, map[string]string{longest: "x"})
	_, err := ws.Write(t.Context(), core.WriteFile{Path: longest + "n", Data: []byte("x")})
	wantCode(t, "256 bytes", err, "path_invalid")
	_, err = ws.Stat(t.Context(), strings.Repeat("a/", 4000))
	wantCode(t, "8000 bytes", err, "path_invalid")
	_, err = ws.Write(t.Context(), core.WriteFile{Path: "a\x00b", Data: []byte("x")})
	wantCode(t, "NUL", err, "path_invalid")
	ws.must(t, "rm "+longest)
}

func unreadableFolder(t *testing.T, ws box) {
	f := newFixture(t)
	other := box{PlatformWorkspace: ws.open(t), open: ws.open}
	other.checkout(t, f)
	other.must(t, "chmod 0 src")
	_, err := other.Snapshot(t.Context(), io.Discard)
	wantCode(t, "snapshot", err, "snapshot_failed")
	if !strings.Contains(core.MessageOf(err), "src") {
		t.Errorf("%q does not name the folder", core.MessageOf(err))
	}
	if _, err := other.Search(t.Context(), core.SearchQuery{Pattern: "x"}); err != nil {
		t.Errorf("search: %v", err)
	}
}

func endlessIgnores(t *testing.T, ws box) {
	ws.must(t, `python3 -c '
open(".gitignore", "w").write("a*b*c*d*e*f*g*h*\n" * 200000 + "[" * 10000 + "\n" + "**/" * 5000 + "x\n")'; for i in $(seq 200); do echo needle > aaaaaaaaaaaaaaaaaaaaaaaaaaaa$i; done`)
	ctx, cancel := context.WithTimeout(t.Context(), 3*quickly)
	defer cancel()
	if _, err := ws.Find(ctx, core.FindQuery{Pattern: "*"}); err != nil {
		t.Errorf("find: %v", err)
	}
	if _, err := ws.Search(ctx, core.SearchQuery{Pattern: "needle"}); err != nil {
		t.Errorf("search: %v", err)
	}
	ws.must(t, "rm .gitignore aaaa*")
}

func evilPattern(t *testing.T, ws box) {
	ws.write(t, map[string]string{"a": strings.Repeat("a", 100_000) + "\n"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*quickly)
	defer cancel()
	for _, pattern := range []string{`(a+)+$b`, `(a|aa)+c`, `(?:a{1,30}){1,30}b`, `.*.*.*.*=.*`} {
		if _, err := ws.Search(ctx, core.SearchQuery{Pattern: pattern}); err != nil && core.CodeOf(err) != "pattern_invalid" {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	glob := strings.Repeat("*a", 500) + "b"
	if _, err := ws.Find(ctx, core.FindQuery{Pattern: glob}); err != nil {
		t.Errorf("glob: %v", err)
	}
	ws.must(t, "rm a")
}

// meanwhile runs a command until stop is called; it returns once the file that marks its begin is there.
func (ws box) meanwhile(t *testing.T, shell, begun string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := ws.Run(ctx, core.Command{Shell: shell})
		ended <- err
	}()
	waitFor(t, func() bool { _, err := ws.Stat(t.Context(), begun); return err == nil })
	return func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("what ran meanwhile ended with %v", err)
		}
	}
}
