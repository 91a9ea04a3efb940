package mirrortest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Hunt looks for secrets wherever they could lie about. It is safe for concurrent use.
type Hunt struct {
	mu     sync.Mutex
	forms  map[string]bool
	seen   map[[sha256.Size]byte]bool // contents that need not be looked at again
	places int
	hits   map[string]bool
}

// Know makes secrets known, in the ways in which they could be written.
func (h *Hunt) Know(secrets ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.forms == nil {
		h.forms, h.seen, h.hits = map[string]bool{}, map[[sha256.Size]byte]bool{}, map[string]bool{}
	}
	for _, s := range secrets {
		h.forms[s], h.forms[url.QueryEscape(s)] = true, true
		for _, before := range []string{"", "x", "xy", "x-access-token:"} {
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				// Without its first and last letters, which the neighbours decide.
				text := encoding.EncodeToString([]byte(before + s))
				h.forms[text[len(before)*4/3+2:len(text)-2]] = true
			}
		}
	}
}

// Again makes every place be looked at once more, now that all secrets are known.
func (h *Hunt) Again() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.seen)
}

// Bytes looks at the content of one place. A content that was looked at counts no second time.
func (h *Hunt) Bytes(place string, data []byte) {
	sum := sha256.Sum256(data)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[sum] {
		return
	}
	h.seen[sum] = true
	h.places++
	for form := range h.forms {
		if bytes.Contains(data, []byte(form)) {
			h.hits[place] = true
		}
	}
}

// Files looks at the name and content of every file below a folder, which may change meanwhile.
func (h *Hunt) Files(tb testing.TB, dir string) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var data []byte
			if data, err = os.ReadFile(path); err == nil {
				h.Bytes(path, append([]byte(path+"\n"), data...))
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		tb.Errorf("hunt in %s: %v", dir, err)
	}
}

// Processes looks at the arguments and the environment of every process of this machine, and returns how
// many of them are git's transport to that address.
func (h *Hunt) Processes(address string) (transports int) {
	for _, what := range []string{"cmdline", "environ"} {
		files, _ := filepath.Glob("/proc/[0-9]*/" + what)
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				continue // it has ended, or is none of ours
			}
			h.Bytes(f, data)
			if bytes.Contains(data, []byte("git-remote-http")) && bytes.Contains(data, []byte(address)) {
				transports++
			}
		}
	}
	return transports
}

// Result is how many places were looked at, and where something was.
func (h *Hunt) Result() (places int, hits []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for place := range h.hits {
		hits = append(hits, place)
	}
	return h.places, hits
}

// Recorder is a git whose every start, and every start of git's own programs, is written down with its
// arguments and environment.
func Recorder(tb testing.TB) (program, record string) {
	tb.Helper()
	dir := tb.TempDir()
	record = filepath.Join(dir, "record")
	real, err := exec.LookPath("git")
	must(tb, err)
	execPath := Git(tb, "", "--exec-path")
	helpers := filepath.Join(dir, "exec")
	must(tb, os.Mkdir(helpers, 0o700))
	entries, err := os.ReadDir(execPath)
	must(tb, err)
	script := func(path, target string) {
		text := fmt.Sprintf("#!/bin/sh\n{ echo \"argv: $0 $*\"; cat /proc/$$/environ | tr '\\0' '\\n'; } >>%s\nexec %s \"$@\"\n", record, target)
		must(tb, os.WriteFile(path, []byte(text), 0o700))
	}
	for _, e := range entries {
		target := filepath.Join(execPath, e.Name())
		if e.Name() == "git" || strings.HasPrefix(e.Name(), "git-remote-http") {
			script(filepath.Join(helpers, e.Name()), target)
			continue
		}
		must(tb, os.Symlink(target, filepath.Join(helpers, e.Name())))
	}
	program = filepath.Join(dir, "git")
	script(program, real+" --exec-path="+helpers)
	return program, record
}
