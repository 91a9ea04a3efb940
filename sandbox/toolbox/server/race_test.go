package server

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// A folder and a link that leads out of the workspace take each other's place all the time, ten thousand
// requests long: none of them reads, lists, finds or writes anything outside.
func TestInvariant8_SwappedFolderNeverLeadsOutside(t *testing.T) {
	t.Parallel()
	files, dir := newFiles(t)
	outside, repo := filepath.Join(dir, "outside"), filepath.Join(dir, "workspace/repo")
	for _, d := range []string{outside, filepath.Join(repo, "d")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{outside + "/f": "outside", repo + "/d/f": "inside", outside + "/secret": "outside"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../outside", filepath.Join(repo, "l")); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, repo+"/d", unix.AT_FDCWD, repo+"/l", unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	stop := sync.OnceFunc(func() { close(done); swapping.Wait() })
	t.Cleanup(stop)
	const rounds = 10_000
	inside, refused := 0, 0
	for range rounds / 5 {
		var text strings.Builder
		_, err := files.Read(t.Context(), wire.ReadArgs{Path: wire.Name("d/f"), Limit: 100, Max: 100}, &text)
		switch {
		case strings.Contains(text.String(), "outside"):
			t.Fatal("read a file outside")
		case err == nil:
			inside++
		default:
			refused++
		}
		if list, err := files.List(wire.ListArgs{Path: wire.Name("d"), Limit: 10}); err == nil {
			for _, e := range list.Entries {
				if strings.HasSuffix(string(e.Path), "secret") {
					t.Fatal("listed a folder outside")
				}
			}
		}
		if hits, err := files.Search(t.Context(), wire.SearchArgs{Pattern: []byte("outside"), Path: wire.Name("d"), Limit: 10}); err == nil && hits.Matches > 0 {
			t.Fatal("searched a folder outside")
		}
		if found, err := files.Find(t.Context(), wire.FindArgs{Pattern: wire.Name("secret"), Path: wire.Name("d"), Limit: 10}); err == nil && len(found.Paths) > 0 {
			t.Fatal("found a file outside")
		}
		_, _ = files.Write(wire.WriteArgs{Path: wire.Name("d/new"), Mode: 0o600, Max: 10}, strings.NewReader("x")) // refused or inside
	}
	stop()
	left, err := os.ReadDir(outside)
	if err != nil || len(left) != 2 {
		t.Errorf("outside holds %v, %v", left, err)
	}
	if text, err := os.ReadFile(outside + "/f"); err != nil || string(text) != "outside" {
		t.Errorf("outside holds %q, %v", text, err)
	}
	if inside == 0 || refused == 0 {
		t.Errorf("%d inside, %d refused: there was no race", inside, refused)
	}
}
