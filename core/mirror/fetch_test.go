package mirror_test

import (
	"bytes"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core/mirror"
)

// isPack says that a request asks for a repository's objects.
func isPack(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte("command=fetch"))
}

// A server may answer a fetch in any way and at any speed: it ends with a code, leaves nothing behind,
// and the next one works.
func TestFetch_EndsWhateverTheServerDoes(t *testing.T) {
	t.Parallel()
	noise := incompressible(4 << 20)
	for name, c := range map[string]struct {
		options func(*mirror.Options)
		answer  func(w http.ResponseWriter, r *http.Request) bool
		code    string
	}{
		"stalls before the first byte": {
			func(o *mirror.Options) { o.FetchStall = time.Second },
			func(_ http.ResponseWriter, r *http.Request) bool {
				<-r.Context().Done()
				return true
			}, "clone_timeout",
		},
		"stalls in the middle of a pack": {
			func(o *mirror.Options) { o.FetchStall = time.Second },
			func(w http.ResponseWriter, r *http.Request) bool {
				pack := isPack(r)
				if pack {
					w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
					_, _ = w.Write([]byte("000dpackfile\n"))
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}
				return pack
			}, "clone_timeout",
		},
		"drips for ever": {
			func(o *mirror.Options) { o.FetchTimeout = 2 * time.Second },
			func(w http.ResponseWriter, r *http.Request) bool {
				pack := isPack(r)
				if pack {
					w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
					_, _ = w.Write([]byte("000dpackfile\n"))
				}
				for pack && r.Context().Err() == nil {
					_, _ = w.Write([]byte(strings.Repeat("0005\x02", 400)))
					_ = http.NewResponseController(w).Flush()
					select {
					case <-time.After(200 * time.Millisecond):
					case <-r.Context().Done():
					}
				}
				return pack
			}, "clone_timeout",
		},
		"sends more than is taken": {
			func(o *mirror.Options) { o.MaxBaseBytes = 1 << 20 }, nil, "clone_too_large",
		},
		"never knows the token": {
			nil, func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}, "github_forbidden",
		},
		"says that a pack comes and sends something else": {
			nil, func(w http.ResponseWriter, r *http.Request) bool {
				pack := isPack(r)
				if pack {
					w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
					_, _ = w.Write([]byte("000dpackfile\n0015\x01PACK\x00\x00\x00\x02\xff\xff\xff\xff0000"))
				}
				return pack
			}, "github_unavailable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var change []func(*mirror.Options)
			if c.options != nil {
				change = append(change, c.options)
			}
			b := setup(t, change...)
			b.session.BaseSHA = b.server.Commit(t, b.repo, "main", map[string]string{"noise.bin": noise})
			b.server.Fault(c.answer)
			_, _, err := b.mirror.Checkout(t.Context(), b.session, false)
			wantCode(t, err, c.code)
			if left := partial(t, b.dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			b.open(t) // a busy machine may need longer than the limits that the fault was to meet
			b.server.Fault(nil)
			b.checkout(t, b.session)
		})
	}
}

// partial are the files of fetches that did not end.
func partial(t *testing.T, dir string) []string {
	t.Helper()
	var left []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, ".git/") && (strings.HasPrefix(e.Name(), "tmp_") || strings.HasSuffix(e.Name(), ".lock")) {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// incompressible is text that takes its whole size in a pack.
func incompressible(n int) string {
	noise := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise) // never fails
	return string(noise)
}
