package mirror_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/mirror/mirrortest"
)

// TestMirror_ServesManySessionsAtOnce races sessions of two workers, as two Mirrors on one folder
// are, on one repository.
func TestMirror_ServesManySessionsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, err := mirror.New(mirror.Options{Dir: b.dir, GitURL: b.server.GitURL, Tokens: b.server, CloneDepth: 50, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 12 {
		m := []*mirror.Mirror{b.mirror, other}[i%2]
		wg.Go(func() {
			s, ws := newSession(b.repo, b.session.BaseSHA), mirrortest.NewWorkspace(t)
			spec, pack, err := m.Checkout(t.Context(), s, false)
			if err != nil {
				t.Errorf("Checkout: %v", err)
				return
			}
			defer pack.Close()
			if err := ws.Checkout(t.Context(), spec, pack); err != nil {
				t.Errorf("workspace: %v", err)
				return
			}
			if err := os.WriteFile(filepath.Join(ws.Dir, "n"), []byte(strconv.Itoa(i)), 0o644); err != nil {
				t.Error(err)
			}
			if diff, err := m.Capture(t.Context(), s, ws); err != nil || len(diff.Files) != 1 {
				t.Errorf("Capture: %+v, %v", diff.Files, err)
			}
		})
	}
	wg.Wait()
}

func TestMirror_GoesOnAfterAKilledGit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.checkout(t, b.session)
	repo := filepath.Join(b.dir, "repos", "7.git")
	abandoned := []string{"shallow.lock", "packed-refs.lock", "config.lock", "refs/agent/sessions/" + string(b.session.ID) + ".lock", "objects/pack/tmp_pack_x"}
	for _, name := range abandoned {
		if err := os.WriteFile(filepath.Join(repo, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(repo+".new", 0o700); err != nil { // half made, of another start
		t.Fatal(err)
	}
	s := newSession(b.repo, b.server.Commit(t, b.repo, "main", map[string]string{"x": "x"}))
	b.checkout(t, s)
	for _, name := range abandoned {
		if _, err := os.Stat(filepath.Join(repo, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestMirror_CancelEndsGitAndFreesTheRepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	arrived, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.server.Fault(func(_ http.ResponseWriter, r *http.Request) bool {
		once.Do(func() { close(arrived) })
		<-r.Context().Done() // hangs until its client is gone
		return true
	})
	go func() {
		defer close(ended)
		<-arrived
		cancel(core.ErrCancelledByUser)
	}()
	_, _, err := b.mirror.Checkout(ctx, b.session, false)
	<-ended
	if !errors.Is(err, core.ErrCancelledByUser) {
		t.Errorf("err = %v, want the cause of the cancel", err)
	}
	b.server.Fault(nil)
	b.checkout(t, b.session) // would wait for ever if the lock were held
	running, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range running {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), "--git-dir="+b.dir) {
			t.Errorf("%s still runs: %q", f, data)
		}
	}
}

func TestNew_SweepsOldQuarantinesOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old, fresh := filepath.Join(b.dir, "quarantine", "q-old"), filepath.Join(b.dir, "quarantine", "q-new")
	for _, d := range []string{old, fresh} {
		if err := os.MkdirAll(filepath.Join(d, "objects"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := mirror.New(mirror.Options{Dir: b.dir, GitURL: b.server.GitURL, Tokens: b.server, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Error("the old quarantine is still there")
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("a quarantine in use is gone")
	}
}
