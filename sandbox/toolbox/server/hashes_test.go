package server

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// remembered hashes a file until its blob is known without reading it.
func remembered(t *testing.T, root *os.Root, seen *hashes, rel string) leaf {
	t.Helper()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		seen.begin()
		l, ok, err := hashLeaf(t.Context(), root, rel, seen)
		seen.end()
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if _, known := seen.last[rel]; known {
			return l
		}
		if t.Context().Err() != nil {
			t.Fatal("it was never remembered")
		}
	}
}

// Whatever a command does to a file, with the same size and the old times put back: the next scan has
// the hash of what is there now.
func TestHashes_NoChangeIsMissed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"written in place": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("two")
			return errors.Join(err, f.Close())
		},
		"cut and written": func(path string) error { return os.WriteFile(path, []byte("two"), 0o600) },
		"replaced by another": func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("two"), 0o600), os.Rename(path+"2", path))
		},
		"removed and made anew": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("two"), 0o600))
		},
		"a link to another": func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("two"), 0o600), os.Remove(path), os.Link(path+"2", path))
		},
		"written through a map": func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			memory, err := unix.Mmap(int(f.Fd()), 0, 3, unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			copy(memory, "two")
			return errors.Join(unix.Munmap(memory), f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			seen := &hashes{}
			before := remembered(t, root, seen, "f")
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(change(path), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
				t.Fatal(err)
			}
			seen.begin()
			after, _, err := hashLeaf(t.Context(), root, "f", seen)
			if err != nil || after.hash == before.hash || after.hash == "" || after.size != 3 {
				t.Errorf("%+v after %+v, %v", after, before, err)
			}
		})
	}
}

// A file that was written a moment ago is read again: a second change may leave the same time behind.
func TestHashes_FreshFilesAreNotTrusted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	changed := time.Unix(info.Sys().(*syscall.Stat_t).Ctim.Unix())
	for age, want := range map[time.Duration]bool{0: false, settled - time.Millisecond: false, settled: true} {
		seen := &hashes{}
		seen.begin()
		seen.add("f", info, changed.Add(age), make([]byte, 20))
		seen.end()
		if _, known := seen.find("f", info); known != want {
			t.Errorf("after %v: known %t", age, known)
		}
	}
}
