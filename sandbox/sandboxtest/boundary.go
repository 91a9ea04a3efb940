package sandboxtest

import (
	"context"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

func boundaryCases() []testCase {
	return []testCase{
		{name: "invariant 8 no path leaves by its text", run: pathsOutside},
		{name: "invariant 8 no path leaves by a link", needs: real, run: linksOutside},
		{name: "invariant 8 no link leads between repository and tmp", needs: real, run: linksBetweenRoots},
		{name: "invariant 8 a swapped folder never leads outside", needs: real, run: swapRace},
		{name: "invariant 8 the repository itself cannot become a link", needs: real, run: repoReplaced},
		{name: "invariant 8 pipes and sockets are refused at once", needs: real, run: specialFiles},
		{name: "links inside the repository are followed", needs: real, run: linksInside},
	}
}

// everyVerb calls each verb that takes a path.
func everyVerb(ctx context.Context, ws box, name string) map[string]error {
	errs := map[string]error{}
	_, errs["read"] = ws.Read(ctx, name, 0, 0)
	_, errs["write"] = ws.Write(ctx, core.WriteFile{Path: name, Data: []byte("overwritten")})
	_, errs["list"] = ws.List(ctx, name, 0)
	_, errs["find"] = ws.Find(ctx, core.FindQuery{Pattern: "*", Path: name})
	_, errs["search"] = ws.Search(ctx, core.SearchQuery{Pattern: ".", Path: name})
	_, errs["run"] = ws.Run(ctx, core.Command{Shell: "true", Dir: name})
	return errs
}

func pathsOutside(t *testing.T, ws box) {
	for _, name := range []string{
		"..", "../", "../x", "a/../../x", "./../x", "/", "/etc/passwd", "/etc", "/workspace", "/workspace/home",
		"/workspace/home/.bashrc", "/workspace/repo/../home", "/workspace/repository", "/tmp/../etc/passwd", "/tmpfile",
		"/proc/self/root/etc/passwd", "/proc/1/environ", "/dev/zero", "//etc/passwd", "/workspace/repo/../../etc/passwd",
		"/workspace/.platform/base",
	} {
		ws.write(t, map[string]string{"a/f": "x"})
		errs := everyVerb(t.Context(), ws, name)
		_, errs["stat"] = ws.Stat(t.Context(), name)
		for verb, err := range errs {
			wantCode(t, verb+" "+name, err, "path_outside_workspace")
		}
	}
	if got, err := ws.Stat(t.Context(), "a/../a/./f"); err != nil || got.Path != "a/f" {
		t.Errorf("a path that stays inside: %+v, %v", got, err)
	}
}

func linksOutside(t *testing.T, ws box) {
	ws.must(t, `echo secret > "$HOME/secret" && mkdir dir &&
		ln -s /etc/passwd absolute && ln -s "$PWD/dir" absolute-inside && ln -s ../home/secret up && ln -s .. parent &&
		ln -s dir/../../home deep && ln -s absolute chain && ln -s loop loop && ln -s /proc/self/root magic`)
	for link, target := range map[string]string{
		"absolute": "/etc/passwd", "up": "../home/secret", "parent": "..", "deep": "dir/../../home", "chain": "/etc/passwd",
		"magic": "/proc/self/root", "parent/home/secret": "..", "deep/secret": "dir/../../home", "magic/etc/passwd": "/proc/self/root",
		"absolute-inside": "/dir", "loop": "loop",
	} {
		for verb, err := range everyVerb(t.Context(), ws, link) {
			wantCode(t, verb+" "+link, err, "path_outside_workspace")
			if !strings.Contains(core.MessageOf(err), target) {
				t.Errorf("%s %s: %q does not name %s", verb, link, core.MessageOf(err), target)
			}
		}
	}
	if got := ws.must(t, `cat "$HOME/secret"; ls "$HOME"`); got != "secret\nsecret\n" {
		t.Errorf("home holds %q", got)
	}
	// A search or walk from above passes them by.
	hits, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "secret"})
	if err != nil || hits.Matches != 0 {
		t.Errorf("%+v, %v", hits, err)
	}
}

func linksBetweenRoots(t *testing.T, ws box) {
	ws.must(t, `echo in-tmp > "$TMPDIR/f" && echo in-repo > f && ln -s "$TMPDIR/f" to-tmp && ln -s "$PWD/f" "$TMPDIR/to-repo" && ln -s "$TMPDIR" folder`)
	for _, name := range []string{"to-tmp", "/tmp/to-repo", "folder/f"} {
		for verb, err := range everyVerb(t.Context(), ws, name) {
			wantCode(t, verb+" "+name, err, "path_outside_workspace")
		}
	}
	if got := ws.must(t, `cat f "$TMPDIR/f"`); got != "in-repo\nin-tmp\n" {
		t.Errorf("files hold %q", got)
	}
}

func linksInside(t *testing.T, ws box) {
	ws.must(t, "mkdir -p a/b && echo text > a/b/f && ln -s a/b short && ln -s ../../a/b/f a/b/self && ln -s short/f chain")
	for _, name := range []string{"short/f", "a/b/self", "chain", "short/../b/f"} {
		data, err := ws.Read(t.Context(), name, 0, 0)
		if err != nil || string(data.Data) != "text\n" || data.Path != "a/b/f" {
			t.Errorf("%s: %q of %s, %v", name, data.Data, data.Path, err)
		}
	}
}

func swapRace(t *testing.T, ws box) {
	ws.must(t, `mkdir -p "$HOME/outside" real && echo outside > "$HOME/outside/f" && echo inside > real/f && cp -r real d && ln -s ../home/outside l`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	swapping := make(chan error, 1)
	go func() {
		_, err := ws.Run(ctx, core.Command{Shell: `touch started; while :; do mv -T d e && mv -T l d && mv -T d l && mv -T e d; done`})
		swapping <- err
	}()
	waitFor(t, func() bool { _, err := ws.Stat(t.Context(), "started"); return err == nil })
	refused, inside := 0, 0
	for i := 0; i < 2000 && (i < 300 || refused == 0 || inside == 0); i++ {
		data, err := ws.Read(t.Context(), "d/f", 0, 0)
		switch {
		case err == nil && string(data.Data) == "outside\n":
			t.Fatal("read a file outside")
		case err == nil:
			inside++
		default:
			refused++
		}
		if _, err := ws.Write(t.Context(), core.WriteFile{Path: "d/new", Data: []byte("x")}); core.CodeOf(err) == "sandbox_lost" {
			t.Fatal(err)
		}
	}
	cancel()
	<-swapping //nolint:errcheck // it was cancelled
	if got := ws.must(t, `ls "$HOME/outside"; cat "$HOME/outside/f"`); got != "f\noutside\n" {
		t.Errorf("the folder outside holds %q", got)
	}
	t.Logf("%d refused, %d inside", refused, inside)
}

func repoReplaced(t *testing.T, ws box) {
	if out := ws.must(t, `echo secret > "$HOME/secret"; cd ..; mv repo old 2>/dev/null && ln -s home repo || echo refused`); out == "refused\n" {
		return // the folder above is not the commands' to write: better still
	}
	for verb, err := range everyVerb(t.Context(), ws, "secret") {
		wantCode(t, verb, err, "path_outside_workspace")
	}
	if _, err := ws.Stat(t.Context(), "/tmp"); err != nil {
		t.Errorf("the other root: %v", err)
	}
}

func specialFiles(t *testing.T, ws box) {
	ws.must(t, `mkfifo pipe && ln -s pipe linked && mkdir sub && mkfifo sub/.gitignore && echo x > file &&
		python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'`)
	for _, name := range []string{"pipe", "linked", "sock"} {
		refusedAtOnce(t, ws, name, "not_regular_file")
	}
	ctx, cancel := context.WithTimeout(t.Context(), quickly)
	defer cancel()
	if hits, err := ws.Search(ctx, core.SearchQuery{Pattern: "x"}); err != nil || hits.Matches != 1 {
		t.Errorf("%+v, %v", hits, err)
	}
}
